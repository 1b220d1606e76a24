package storetest

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
)

func session(id string) store.Session {
	return store.Session{ID: id, Token: "good", Agent: "coder", Name: "of " + id, Opened: early}
}

func task(id, session string) store.Task {
	return store.Task{ID: id, Session: session, Agent: "coder", Name: "of " + id, Opened: early}
}

func counted(call, tool, task, at string) store.Use {
	return store.Use{Call: call, Agent: "coder", Tool: tool, Session: "open", Task: task, At: at}
}

func delegation(name, parent string) store.Delegation {
	return store.Delegation{Name: name, Parent: parent, ParentToken: "good", Session: "open", Task: "open", Token: "token-" + name, Request: "{}", Made: early, Expires: late}
}

// scopes adds to a scene: an open and an ended session, task and delegation, a
// counted call that succeeded and one that did not, an accepted definition.
func scopes(t *testing.T, db *store.DB) {
	t.Helper()
	change(t, db, func(tx *store.Tx) error {
		for _, s := range []string{"open", "ended"} {
			if err := tx.AddSession(session(s)); err != nil {
				return err
			}
			if err := tx.AddTask(task("task-"+s, "open")); err != nil {
				return err
			}
			if ok, err := tx.AddDelegation(delegation("coder/"+s, "coder"), 10, 10); !ok || err != nil {
				return fmt.Errorf("delegate: %v, %v", ok, err)
			}
		}
		if ok, err := tx.EndSession("ended", "ended", now); !ok || err != nil {
			return fmt.Errorf("end session: %v, %v", ok, err)
		}
		if ok, err := tx.EndTask("task-ended", "idle", now); !ok || err != nil {
			return fmt.Errorf("end task: %v, %v", ok, err)
		}
		if ok, err := tx.EndDelegation("coder/ended", "ended", now); !ok || err != nil {
			return fmt.Errorf("end delegation: %v, %v", ok, err)
		}
		for _, call := range []string{"started", "succeeded"} {
			if err := tx.AddUse(counted(call, "deploy", "task-open", now)); err != nil {
				return err
			}
		}
		if err := tx.SucceedUse("succeeded"); err != nil {
			return err
		}
		return tx.AddDefinition(accepted("deploy", early))
	})
}

func accepted(name, at string) store.Definition {
	return store.Definition{Name: name, Digest: fmt.Sprintf("%064x", len(at)), Body: "{}", Accepted: at, By: "alice"}
}

var scopeAttacks = []Attack{
	{"open a session again", `UPDATE sessions SET ended_at = '', why = '' WHERE id = 'ended'`},
	{"end a session at another time", `UPDATE sessions SET ended_at = '2027' WHERE id = 'ended'`},
	{"give a session to another token", `UPDATE sessions SET token = 'mallory' WHERE id = 'open'`},
	{"give a session to another agent while it ends", `UPDATE sessions SET agent = 'admin', ended_at = '2026', why = 'ended' WHERE id = 'open'`},
	{"end a session without a reason", `UPDATE sessions SET ended_at = '2026' WHERE id = 'open'`},
	{"forget a session", `DELETE FROM sessions WHERE id = 'ended'`},
	{"begin with an ended session", `INSERT INTO sessions VALUES ('new', 't', 'coder', '', '2026', '2026', 'ended')`},
	{"open a task again", `UPDATE tasks SET ended_at = '', why = '' WHERE id = 'task-ended'`},
	{"move a task to another session", `UPDATE tasks SET session = 'ended' WHERE id = 'task-open'`},
	{"rate a task in nobody's name", `UPDATE tasks SET rating = 10 WHERE id = 'task-open'`},
	{"rate a task and end it otherwise", `UPDATE tasks SET rating = 10, rated_by = 'alice', why = 'x', ended_at = '2026' WHERE id = 'task-open'`},
	{"take a rating back", `UPDATE tasks SET rating = NULL, rated_by = '' WHERE id = 'task-open'`},
	{"forget a task", `DELETE FROM tasks WHERE id = 'task-open'`},
	{"a task in an ended session", `INSERT INTO tasks VALUES ('new', 'ended', 'coder', 'n', '2026', '', '', NULL, '')`},
	{"a task of another agent", `INSERT INTO tasks VALUES ('new', 'open', 'admin', 'n', '2026', '', '', NULL, '')`},
	{"a second open task of a name", `INSERT INTO tasks VALUES ('new', 'open', 'coder', 'of task-open', '2026', '', '', NULL, '')`},
	{"uncount a call", `DELETE FROM uses WHERE call = 'started'`},
	{"uncount all calls", `DELETE FROM uses`},
	{"count a call elsewhere", `UPDATE uses SET session = 'ended' WHERE call = 'started'`},
	{"count a call for another tool", `UPDATE uses SET tool = 'other' WHERE call = 'started'`},
	{"count a call at another time", `UPDATE uses SET at = '2020' WHERE call = 'started'`},
	{"take a success back", `UPDATE uses SET done = 0 WHERE call = 'succeeded'`},
	{"begin with a success", `INSERT INTO uses VALUES ('new', 'coder', 'deploy', 'open', 'task-open', '2026', 3, 3, 3, 1)`},
	{"count a call out of its turn", `INSERT INTO uses VALUES ('new', 'coder', 'deploy', 'open', 'task-open', '2026', 3, 3, 9, 0)`},
	{"count a call twice in a place", `INSERT INTO uses VALUES ('new', 'coder', 'deploy', 'open', 'task-open', '2026', 2, 3, 3, 0)`},
	{"renumber a counted call", `UPDATE uses SET of_agent = 7, done = 1 WHERE call = 'started'`},
	{"accept before the last", `INSERT INTO definitions SELECT name, digest, body, '2020', accepted_by FROM definitions`},
	{"change what was accepted", `UPDATE definitions SET body = '{"forged":1}'`},
	{"change which was accepted", `UPDATE definitions SET digest = '` + fmt.Sprintf("%064d", 1) + `'`},
	{"forget what was accepted", `DELETE FROM definitions`},
	{"bring a delegation back", `UPDATE delegations SET ended_at = '', why = '' WHERE name = 'coder/ended'`},
	{"make a delegation last longer", `UPDATE delegations SET expires_at = '2030' WHERE name = 'coder/open'`},
	{"widen a delegation", `UPDATE delegations SET request = '{"level":"elevated"}' WHERE name = 'coder/open'`},
	{"give a delegation another parent", `UPDATE delegations SET parent = 'admin' WHERE name = 'coder/open'`},
	{"give a delegation another parent while it ends", `UPDATE delegations SET parent = 'admin', ended_at = '2026', why = 'x' WHERE name = 'coder/open'`},
	{"move a delegation to another session", `UPDATE delegations SET session = 'x' WHERE name = 'coder/open'`},
	{"forget a delegation", `DELETE FROM delegations WHERE name = 'coder/ended'`},
}

var scopeControls = []Attack{
	{"end a session", `UPDATE sessions SET ended_at = '2026', why = 'ended' WHERE id = 'open'`},
	{"end a task", `UPDATE tasks SET ended_at = '2026', why = 'ended' WHERE id = 'task-open'`},
	{"rate a task", `UPDATE tasks SET rating = 10, rated_by = 'alice' WHERE id = 'task-ended'`},
	{"open a task", `INSERT INTO tasks VALUES ('new', 'open', 'coder', 'of task-ended', '2026', '', '', NULL, '')`},
	{"count a call", `INSERT INTO uses VALUES ('new', 'coder', 'deploy', 'open', 'task-open', '2026', 3, 3, 3, 0)`},
	{"succeed", `UPDATE uses SET done = 1 WHERE call = 'started'`},
	{"accept", `INSERT INTO definitions SELECT name, digest, body, '2027', accepted_by FROM definitions`},
	{"end a delegation", `UPDATE delegations SET ended_at = '2026', why = 'ended' WHERE name = 'coder/open'`},
}

func (e Engine) testScopes(t *testing.T) {
	db := e.open(t, t.TempDir())
	scopes(t, db)
	open, err := db.OpenSessions(t.Context())
	if err != nil || len(open) != 1 || !cmp.Equal(open[0], session("open")) {
		t.Errorf("open sessions %+v, %v", open, err)
	}
	tasks, err := db.OpenTasks(t.Context())
	if err != nil || len(tasks) != 1 || !cmp.Equal(tasks[0], task("task-open", "open")) {
		t.Errorf("open tasks %+v, %v", tasks, err)
	}
	if try(t, db, func(tx *store.Tx) (bool, error) { return tx.EndSession("ended", "again", over) }) {
		t.Error("a session ended twice")
	}
	if try(t, db, func(tx *store.Tx) (bool, error) { return tx.EndTask("task-ended", "again", over) }) {
		t.Error("a task ended twice")
	}
	if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.EndSession("open", "idle", over) }) {
		t.Error("the session did not end")
	}
	got, ok, err := db.Task(t.Context(), "task-open")
	if err != nil || !ok || got.Ended != over || got.Why != "idle" {
		t.Errorf("a task outlives its session: %+v %v %v", got, ok, err)
	}
	change(t, db, func(tx *store.Tx) error {
		for i := range 5 {
			s := session(fmt.Sprint("more", i))
			s.Opened, s.Token = now, fmt.Sprint("token", i%2)
			if err := tx.AddSession(s); err != nil {
				return err
			}
		}
		return nil
	})
	pages := func(token string, want ...string) {
		t.Helper()
		var got []string
		opened, id := "", ""
		for {
			page, err := db.SessionsBefore(t.Context(), token, opened, id, 2)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page {
				got = append(got, s.ID)
				opened, id = s.Opened, s.ID
			}
			if len(page) < 2 {
				break
			}
		}
		if !cmp.Equal(got, want) {
			t.Errorf("sessions of %q: %v, want %v", token, got, want)
		}
	}
	pages("", "more4", "more3", "more2", "more1", "more0", "open", "ended")
	pages("token1", "more3", "more1")
	pages("nobody")
	if ts, err := db.TasksBefore(t.Context(), "good", "", "", 10); err != nil || len(ts) != 2 || ts[0].ID != "task-open" {
		t.Errorf("tasks %+v %v", ts, err)
	}
	if ts, err := db.TasksBefore(t.Context(), "token1", "", "", 10); err != nil || len(ts) != 0 {
		t.Errorf("tasks of another token %+v %v", ts, err)
	}
}

// Quotas count what they say, and no more than they need to.
func (e Engine) testUses(t *testing.T) {
	db := e.open(t, t.TempDir())
	scopes(t, db)
	change(t, db, func(tx *store.Tx) error {
		other := counted("elsewhere", "deploy", "task-other", early)
		other.Session = "other"
		return tx.AddUse(other)
	})
	counts := db.Counts(t.Context())
	u := counted("", "deploy", "task-open", "")
	for name, tt := range map[string]struct {
		q     writ.Quota
		since string
		want  bool
	}{
		"a session's last place is taken":  {writ.Quota{Max: 2, Per: writ.PerSession}, "", true},
		"a session has a place":            {writ.Quota{Max: 3, Per: writ.PerSession}, "", false},
		"a lower limit than was used":      {writ.Quota{Max: 1, Per: writ.PerSession}, "", true},
		"a task's last place is taken":     {writ.Quota{Max: 2, Per: writ.PerTask}, "", true},
		"a task has a place":               {writ.Quota{Max: 3, Per: writ.PerTask}, "", false},
		"a window counts every session":    {writ.Quota{Max: 3, Per: writ.PerWindow}, early, true},
		"a window has a place":             {writ.Quota{Max: 4, Per: writ.PerWindow}, early, false},
		"a window that began since":        {writ.Quota{Max: 1, Per: writ.PerWindow}, now, false},
		"a clock that went back is no way": {writ.Quota{Max: 1, Per: writ.PerWindow}, early, true},
	} {
		if got, _, err := counts.Full(u, tt.q, tt.since); err != nil || got != tt.want {
			t.Errorf("%s: %v, want %v: %v", name, got, tt.want, err)
		}
	}
	for task, want := range map[string]bool{"task-open": true, "task-other": false} {
		if ok, err := counts.Succeeded(task, "deploy"); err != nil || ok != want {
			t.Errorf("succeeded in %s: %v %v", task, ok, err)
		}
	}
	if ok, err := counts.Succeeded("task-open", "other"); err != nil || ok {
		t.Errorf("another tool succeeded: %v %v", ok, err)
	}
}

func (e Engine) testDefinitions(t *testing.T) {
	db := e.open(t, t.TempDir())
	change(t, db, func(tx *store.Tx) error {
		for _, d := range []store.Definition{accepted("a", early), accepted("b", early), accepted("a", late+"x")} {
			if err := tx.AddDefinition(d); err != nil {
				return err
			}
		}
		return nil
	})
	got, err := db.Definitions(t.Context())
	if want := []store.Definition{accepted("a", late+"x"), accepted("b", early)}; err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
}

func (e Engine) testDelegations(t *testing.T) {
	db := e.open(t, t.TempDir())
	add := func(name, parent string, limit int) bool {
		return try(t, db, func(tx *store.Tx) (bool, error) {
			ok, err := tx.AddDelegation(delegation(name, parent), limit, 4)
			if ok && err == nil {
				err = tx.AddToken(store.Token{ID: "token-" + name, Agent: name, Hash: append(make([]byte, 32-len(name)), name...), Created: early})
			}
			return ok, err
		})
	}
	if !add("a/b", "a", 2) || !add("a/c", "a", 2) || add("a/d", "a", 2) || add("a/b", "x", 2) || !add("a/b/c", "a/b", 2) {
		t.Error("the limit is not held, or a name is used twice")
	}
	if !add("a/b/c/d", "a/b/c", 2) || add("a/b/c/d/e", "a/b/c/d", 2) || !add("b/x", "b", 2) {
		t.Error("the limit of all below one is not held")
	}
	live, err := db.Delegations(t.Context())
	if err != nil || len(live) != 5 || live[0].Name != "a/b" {
		t.Errorf("%+v %v", live, err)
	}
	if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.EndDelegation("a/b", "ended", now) }) {
		t.Error("it did not end")
	}
	tokens, err := db.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tok := range tokens {
		if (tok.Revoked != "") != (tok.Agent == "a/b") {
			t.Errorf("token of %s: revoked %q", tok.Agent, tok.Revoked)
		}
	}
	if add("a/b", "a", 9) {
		t.Error("the name of an ended one was used again")
	}
}
