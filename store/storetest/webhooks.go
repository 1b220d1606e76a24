package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/store"
)

// hooked is a scene with a webhook in the middle of it.
func hooked(t *testing.T, db *store.DB) {
	t.Helper()
	if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.AddWebhook("early") }) {
		t.Fatal("a webhook cannot be added to an empty ledger")
	}
	scene(t, db)
	set(t, db, store.Webhook{Name: "early", Seq: 2, Part: 1}, true)
}

func set(t *testing.T, db *store.DB, w store.Webhook, want bool) {
	t.Helper()
	if got := try(t, db, func(tx *store.Tx) (bool, error) { return tx.SetWebhook(w) }); got != want {
		t.Errorf("to %+v: %v", w, got)
	}
}

// testWebhooks: each begins at the end of the ledger, goes forward, and is forgotten.
func (e Engine) testWebhooks(t *testing.T) {
	db := e.open(t, t.TempDir())
	hooked(t, db)
	for _, want := range []bool{true, false} {
		if got := try(t, db, func(tx *store.Tx) (bool, error) { return tx.AddWebhook("late") }); got != want {
			t.Errorf("added: %v, want %v", got, want)
		}
	}
	set(t, db, store.Webhook{Name: "nobody", Seq: 3}, false)
	set(t, db, store.Webhook{Name: "early", Seq: 4}, false)
	set(t, db, store.Webhook{Name: "early", Seq: 2, Part: 0}, false)
	set(t, db, store.Webhook{Name: "early", Seq: 1, Part: 9}, false)
	failing := store.Webhook{Name: "early", Seq: 2, Part: 1, Delivered: early, Failing: now, Failure: "it answers 500", Stopped: noon}
	set(t, db, failing, true)
	want := []store.Webhook{failing, {Name: "late", Seq: 3}}
	if got, err := db.Webhooks(t.Context()); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v: %s", err, cmp.Diff(want, got))
	}
	set(t, db, store.Webhook{Name: "early", Seq: 3, Delivered: now}, true)
	change(t, db, func(tx *store.Tx) error { return tx.DropWebhook("early") })
	if got, err := db.Webhooks(t.Context()); err != nil || !cmp.Equal(got, want[1:]) {
		t.Errorf("%v: %s", err, cmp.Diff(want[1:], got))
	}
}

// webhookAttacks must change nothing where hooked is in the store; without their guard
// each goes through.
var webhookAttacks = []guardedAttack{
	{Attack{"say it again", `UPDATE webhooks SET seq = 0, part = 0`}, "webhooks_forward"},
	{Attack{"say a part again", `UPDATE webhooks SET part = 0`}, "webhooks_forward"},
	{Attack{"keep quiet about what comes", `UPDATE webhooks SET seq = 99, part = 0`}, "webhooks_forward"},
	{Attack{"be another", `UPDATE webhooks SET name = 'other'`}, "webhooks_forward"},
	{Attack{"begin again", `REPLACE INTO webhooks VALUES ('early', 0, 0, '', '', '', '')`}, "webhooks_begin"},
	{Attack{"begin beyond the end", `INSERT INTO webhooks VALUES ('new', 99, 0, '', '', '', '')`}, "webhooks_begin"},
}

// webhookChecked are what constraints refuse.
var webhookChecked = []string{
	`INSERT INTO webhooks VALUES ('', 0, 0, '', '', '', '')`,
	`INSERT INTO webhooks VALUES ('new', -1, 0, '', '', '', '')`,
	`INSERT INTO webhooks VALUES ('new', 0, -1, '', '', '', '')`,
	`INSERT INTO webhooks VALUES ('new', 0, 0, '', '', 'for no time', '')`,
	`INSERT INTO webhooks VALUES ('new', 0, 0, '', '2026', '', '')`,
	`INSERT INTO webhooks VALUES ('new', 0, 0, '', '', '', '2026')`,
}

func (e Engine) testWebhookGuards(t *testing.T) {
	dir := t.TempDir()
	hooked(t, e.open(t, dir))
	e.guards(t, dir, webhookAttacks, webhookChecked, []string{`UPDATE webhooks SET seq = 3, part = 0`, `INSERT INTO webhooks VALUES ('new', 3, 0, '', '2026', 'x', '2026')`})
}

// guards tries what triggers, each by itself, and constraints refuse, and what neither does.
func (e Engine) guards(t *testing.T, dir string, attacks []guardedAttack, checked, controls []string) {
	t.Helper()
	e.refusals(t, dir, "", func(refused func(string) string) {
		for _, a := range attacks {
			if why := refused(a.SQL); why != "" {
				t.Errorf("%s: %s\n%s", a.Name, why, a.SQL)
			}
		}
		for _, text := range checked {
			if why := refused(text); why != "" {
				t.Errorf("%s\n%s", why, text)
			}
		}
		for _, text := range controls {
			if refused(text) == "" {
				t.Errorf("control: what may be is refused\n%s", text)
			}
		}
	})
	for _, a := range attacks {
		e.refusals(t, dir, a.by, func(refused func(string) string) {
			if why := refused(a.SQL); why == "" {
				t.Errorf("%s: refused without %s too, which therefore guards nothing here\n%s", a.Name, a.by, a.SQL)
			}
		})
	}
}
