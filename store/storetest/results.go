package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/store"
)

func kept(id, at, delivered string) store.Kept {
	return store.Kept{Invocation: id, Asked: "asked-" + id, At: at, Delivered: delivered, Sealed: []byte("outcome")}
}

// keeping adds to a scene: the outcome of completed, which waits, and of stopped, which
// was handed over; what was found out about unknown; unknown2, of which nobody knows;
// keyed, a call with a key; eyes, a request that bob may not approve; and requests that
// were approved and nobody took up: danger, both (by two), seen (not by bob); lost, which
// takes two and has the word of alice and of dora, who may not approve any more; acts,
// which runs, contacts nobody, and is no reading.
func keeping(t *testing.T, db *store.DB) {
	t.Helper()
	eyes, danger, both, seen, keyed := request("eyes"), request("danger"), request("both"), request("seen"), begun("keyed")
	lost, acts := request("lost"), reading("acts")
	lost.Quorum, acts.Reads = 2, false
	eyes.NotBy, seen.NotBy, both.Quorum, keyed.Key = "bob", "bob", 2, "key"
	danger.Tool, danger.Dangerous = "wipe", true
	for _, i := range []store.Invocation{request("unknown2"), eyes, danger, both, seen, keyed, lost, acts} {
		add(t, db, i)
	}
	walk(t, db, func(tx *store.Tx) (bool, error) { return tx.AddVote(vote("both", "bob", "approve")) },
		votes(vote("lost", "alice", "approve")), votes(vote("lost", "dora", "approve")), func(tx *store.Tx) (bool, error) { return tx.SetRole("dora", "viewer") },
		approves("acts"), claims("acts", "w"), approves("danger"), approves("both"), approves("seen"), approves("unknown2"), claims("unknown2", "w"), finishes(ended("unknown2", "unknown")),
		func(tx *store.Tx) (bool, error) {
			return tx.AddResolution(store.Resolution{Invocation: "unknown", Happened: "yes", Note: "it is there", By: "olga", At: over})
		})
	change(t, db, func(tx *store.Tx) error {
		if err := tx.KeepResult(kept("completed", late, "")); err != nil {
			return err
		}
		return tx.KeepResult(kept("stopped", late, late))
	})
}

func (e Engine) testResults(t *testing.T) {
	dir := t.TempDir()
	db := e.open(t, dir)
	life(t, db)
	keeping(t, db)
	want := kept("completed", late, "")
	if got, ok, err := db.Result(t.Context(), "completed"); err != nil || !ok || !cmp.Equal(got, want) {
		t.Errorf("%v %v\n%s", ok, err, cmp.Diff(want, got))
	}
	if got, ok, err := db.Undelivered(t.Context(), "asked-completed"); err != nil || !ok || !cmp.Equal(got, want) {
		t.Errorf("%v %v\n%s", ok, err, cmp.Diff(want, got))
	}
	for _, asked := range []string{"asked-stopped", "", "%", "asked-failed"} {
		if k, ok, err := db.Undelivered(t.Context(), asked); err != nil || ok {
			t.Errorf("%q waits: %+v %v", asked, k, err)
		}
	}
	refuses(t, db, "kept twice", func(tx *store.Tx) error { return tx.KeepResult(kept("completed", over, "")) })
	refuses(t, db, "kept of what runs", func(tx *store.Tx) error { return tx.KeepResult(kept("claimed", over, "")) })
	for _, want := range []bool{true, false} {
		if try(t, db, func(tx *store.Tx) (bool, error) { return tx.DeliverResult("completed", over) }) != want {
			t.Errorf("handed over: not %v", want)
		}
	}
	if _, ok, err := db.Undelivered(t.Context(), "asked-completed"); ok || err != nil {
		t.Errorf("what was handed over waits: %v", err)
	}
	change(t, db, func(tx *store.Tx) error { return tx.KeepResult(kept("failed", over, "")) })
	for before, want := range map[string]bool{late: false, over: true} {
		if old, err := db.OldResults(t.Context(), before); err != nil || old != want {
			t.Errorf("older than %s: %v %v", before, old, err)
		}
	}
	change(t, db, func(tx *store.Tx) error { return tx.DropResults(over) })
	for id, want := range map[string]bool{"completed": false, "stopped": false, "failed": true} {
		if _, ok, err := db.Result(t.Context(), id); err != nil || ok != want {
			t.Errorf("%s is kept: %v %v", id, ok, err)
		}
	}
}

// refuses demands that the store refuses a change, and takes changes after it.
func refuses(t *testing.T, db *store.DB, name string, f func(*store.Tx) error) {
	t.Helper()
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if f(tx) == nil {
		t.Errorf("%s: was taken", name)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
}

func (e Engine) testResolutions(t *testing.T) {
	db := e.open(t, t.TempDir())
	life(t, db)
	resolves := func(id, by string) bool {
		return try(t, db, func(tx *store.Tx) (bool, error) {
			return tx.AddResolution(store.Resolution{Invocation: id, Happened: "partly", Note: "x'); DROP TABLE people; --", By: by, At: over})
		})
	}
	for _, id := range lives {
		if id != "unknown" && id != "granted" && resolves(id, "olga") {
			t.Errorf("%s was resolved", id)
		}
	}
	for _, by := range []string{"vera", "coder", "", "nobody"} {
		if resolves("unknown", by) {
			t.Errorf("%q resolved it", by)
		}
	}
	if !resolves("unknown", "olga") || resolves("unknown", "alice") {
		t.Error("what is unknown is resolved once")
	}
	want := store.Resolution{Invocation: "unknown", Happened: "partly", Note: "x'); DROP TABLE people; --", By: "olga", At: over}
	if got, ok, err := db.Resolution(t.Context(), "unknown"); err != nil || !ok || got != want {
		t.Errorf("%+v %v %v", got, ok, err)
	}
	if _, ok, err := db.Resolution(t.Context(), "completed"); err != nil || ok {
		t.Errorf("of what is known: %v %v", ok, err)
	}
	if got := find(t, db, "unknown").Status; got != "unknown" {
		t.Errorf("resolving made it %s", got)
	}
}
