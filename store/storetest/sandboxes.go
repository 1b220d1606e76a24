package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/store"
)

func boxed(id string) store.Sandbox {
	return store.Sandbox{ID: id, Driver: "docker", Agent: "coder", Person: "alice", Session: "s", Task: "t", Kept: true, Container: "c0ffee", Sidecar: "5ide", Image: "image",
		Since: early, State: "live", Calls: 1, Used: early}
}

// boxes are one that is live, one that has ended and one that was lost.
func boxes(t *testing.T, db *store.DB) {
	t.Helper()
	change(t, db, func(tx *store.Tx) error {
		for _, id := range []string{"lost", "ended"} {
			if err := tx.AddSandbox(boxed(id)); err != nil {
				return err
			}
		}
		if err := tx.EndSandbox("ended", 7, now, noon); err != nil {
			return err
		}
		if err := tx.LoseSandboxes(late); err != nil {
			return err
		}
		return tx.AddSandbox(boxed("live"))
	})
}

// testSandboxes: what there is, and what became of what was.
func (e Engine) testSandboxes(t *testing.T) {
	db := e.open(t, t.TempDir())
	boxes(t, db)
	live, ended, lost := boxed("live"), boxed("ended"), boxed("lost")
	live.N = 3
	ended.N, ended.State, ended.Calls, ended.Used, ended.Ended = 2, "ended", 7, now, noon
	lost.N, lost.State, lost.Ended = 1, "lost", late
	for _, want := range []store.Sandbox{live, ended, lost} {
		if got, ok, err := db.Sandbox(t.Context(), want.ID); err != nil || !ok || !cmp.Equal(got, want) {
			t.Errorf("%v %v: %s", ok, err, cmp.Diff(want, got))
		}
	}
	if _, ok, err := db.Sandbox(t.Context(), "%"); ok || err != nil {
		t.Errorf("one that is not there: %v %v", ok, err)
	}
	if got, err := db.EndedSandboxes(t.Context(), 0, 9); err != nil || !cmp.Equal(got, []store.Sandbox{ended, lost}) {
		t.Errorf("%v: %s", err, cmp.Diff([]store.Sandbox{ended, lost}, got))
	}
	if got, err := db.EndedSandboxes(t.Context(), 2, 9); err != nil || !cmp.Equal(got, []store.Sandbox{lost}) {
		t.Errorf("a page: %v: %s", err, cmp.Diff([]store.Sandbox{lost}, got))
	}
}

// sandboxAttacks must change nothing where boxes are in the store; without their guard each
// goes through.
var sandboxAttacks = []guardedAttack{
	{Attack{"bring one back", `UPDATE sandboxes SET state = 'live', ended_at = '' WHERE id = 'ended'`}, "sandboxes_steps"},
	{Attack{"end one again", `UPDATE sandboxes SET ended_at = '2027' WHERE id = 'ended'`}, "sandboxes_steps"},
	{Attack{"give one to another agent", `UPDATE sandboxes SET agent = 'other', state = 'ended', ended_at = '2027' WHERE id = 'live'`}, "sandboxes_steps"},
	{Attack{"name another container", `UPDATE sandboxes SET container = 'x' WHERE id = 'live'`}, "sandboxes_steps"},
	{Attack{"forget one", `DELETE FROM sandboxes WHERE id = 'lost'`}, "sandboxes_keep"},
	{Attack{"replace one", `REPLACE INTO sandboxes SELECT 4, id, driver, 'other', acts_for, session, task, kept, container, sidecar, image, since, 'live', calls, used_at, '' FROM sandboxes WHERE id = 'ended'`}, "sandboxes_begin"},
	{Attack{"begin as ended", `INSERT INTO sandboxes SELECT 4, 'new', driver, agent, acts_for, session, task, kept, container, sidecar, image, since, state, calls, used_at, ended_at FROM sandboxes WHERE id = 'ended'`}, "sandboxes_begin"},
	{Attack{"begin out of turn", `INSERT INTO sandboxes SELECT 9, 'new', driver, agent, acts_for, session, task, kept, container, sidecar, image, since, state, calls, used_at, ended_at FROM sandboxes WHERE id = 'live'`}, "sandboxes_begin"},
}

// sandboxChecked are what constraints refuse.
var sandboxChecked = []string{
	`UPDATE sandboxes SET state = 'ended' WHERE id = 'live'`,
	`UPDATE sandboxes SET state = 'gone', ended_at = '2027' WHERE id = 'live'`,
	`UPDATE sandboxes SET state = 'ended', ended_at = '2027', calls = -1 WHERE id = 'live'`,
}

func (e Engine) testSandboxGuards(t *testing.T) {
	dir := t.TempDir()
	boxes(t, e.open(t, dir))
	e.guards(t, dir, sandboxAttacks, sandboxChecked, []string{`UPDATE sandboxes SET state = 'ended', ended_at = '2027' WHERE id = 'live'`})
}
