package storetest

import (
	"testing"

	"github.com/writ-run/writ/store"
)

// testClaims: who runs what, and whose word ends it.
func (e Engine) testClaims(t *testing.T) {
	db := e.open(t, t.TempDir())
	life(t, db)
	worker := func(e store.Ended, worker string) store.Ended { e.Worker = worker; return e }
	fence := func(e store.Ended, n int64) store.Ended { e.Fence = n; return e }
	for name, m := range map[string]move{
		"complete what waits (E6)":                  finishes(ended("pending", "completed")),
		"complete what waits, in nobody's name":     finishes(fence(worker(ended("pending", "completed"), ""), 0)),
		"complete what was rejected (E6)":           finishes(ended("rejected", "completed")),
		"complete what has ended (E6)":              finishes(ended("completed", "failed")),
		"complete what was cancelled (E11)":         finishes(ended("void", "completed")),
		"complete what was stopped (E11)":           finishes(ended("stopped", "completed")),
		"complete what is unknown":                  finishes(ended("unknown", "completed")),
		"complete what nobody took up":              finishes(fence(worker(ended("approved", "completed"), ""), 0)),
		"complete what was released":                finishes(worker(ended("released", "completed"), "")),
		"complete what was released, as its worker": finishes(ended("released", "completed")),
		"complete another's (E7)":                   finishes(worker(ended("claimed", "completed"), "x")),
		"complete with a later fence":               finishes(fence(ended("claimed", "completed"), 2)),
		"complete with an earlier fence (E5)":       finishes(fence(ended("claimed", "completed"), 0)),
		"claim what is held (E4)":                   claims("claimed", "x"),
		"claim what one holds":                      claims("claimed", "w"),
		"claim what waits":                          claims("pending", "x"),
		"claim what was rejected":                   claims("rejected", "x"),
		"claim what has ended (A11)":                claims("completed", "x"),
		"claim what was withdrawn":                  claims("withdrawn", "x"),
		"claim nothing":                             claims("nothing", "x"),
		"claim for another call (A12)": func(tx *store.Tx) (bool, error) {
			_, ok, err := tx.ClaimInvocation("approved", "subject-other", "x", now, late)
			return ok, err
		},
		"claim after its time": func(tx *store.Tx) (bool, error) {
			_, ok, err := tx.ClaimInvocation("approved", "subject-approved", "x", late, over)
			return ok, err
		},
		"release what writes":         releases("claimed"),
		"release what was not asked":  releases("running"),
		"release what has ended":      releases("completed"),
		"release another's":           func(tx *store.Tx) (bool, error) { return tx.ReleaseInvocation("held", "x") },
		"cancel what runs":            cancels("claimed"),
		"cancel what has ended":       cancels("completed"),
		"cancel nothing":              cancels("nothing"),
		"expire what runs":            expires("claimed"),
		"expire what has ended":       expires("completed"),
		"expire before its time":      func(tx *store.Tx) (bool, error) { return tx.ExpireInvocation("pending", now) },
		"escalate twice at once":      func(tx *store.Tx) (bool, error) { return tx.EscalateInvocation("pending", 2) },
		"escalate what is approved":   func(tx *store.Tx) (bool, error) { return tx.EscalateInvocation("approved", 1) },
		"replace what is approved":    func(tx *store.Tx) (bool, error) { return tx.ReplaceInvocation("approved", "other", now) },
		"replace after its time (A5)": func(tx *store.Tx) (bool, error) { return tx.ReplaceInvocation("pending", "other", late) },
	} {
		if try(t, db, m) {
			t.Errorf("%s: was taken", name)
		}
	}
	e.zombie(t, db)
	e.changedTool(t, db)
	e.housekeeping(t, db)
}

// zombie (E5): a worker that was given up comes back with an old fence.
func (e Engine) zombie(t *testing.T, db *store.DB) {
	t.Helper()
	add(t, db, reading("z"))
	walk(t, db, approves("z"), claims("z", "w"), releases("z"))
	old := ended("z", "completed")
	if try(t, db, finishes(old)) {
		t.Error("a worker that was given up completed")
	}
	change(t, db, func(tx *store.Tx) error {
		fence, ok, err := tx.ClaimInvocation("z", "subject-z", "w", now, late) // the same worker, again
		if !ok || fence != 2 {
			t.Errorf("claimed again: %v, fence %d", ok, fence)
		}
		return err
	})
	if try(t, db, finishes(old)) {
		t.Error("an old fence completed")
	}
	old.Fence = 2
	walk(t, db, finishes(old))
	if i := find(t, db, "z"); i.Status != "completed" || i.Fence != 2 || i.Sealed != nil {
		t.Errorf("%+v", i)
	}
}

// changedTool (A13, A14): what was approved is not run as something else.
func (e Engine) changedTool(t *testing.T, db *store.DB) {
	t.Helper()
	register := func(definition, class string) {
		t.Helper()
		change(t, db, func(tx *store.Tx) error {
			return tx.Register(store.Registered{Key: "peek", Definition: definition, Class: class, Unwaived: class, Updated: now})
		})
	}
	add(t, db, reading("was"))
	walk(t, db, approves("was"))
	register(defBefore, "read_only")
	if try(t, db, claims("was", "x")) {
		t.Error("claimed under another definition")
	}
	register(defAfter, "write")
	if try(t, db, claims("was", "x")) {
		t.Error("claimed under a higher class")
	}
	raised := reading("is")
	raised.Class, raised.Reads = "write", false
	add(t, db, raised)
	walk(t, db, approves("is"), claims("is", "w"), finishes(ended("is", "completed")), cancels("was"))
}

// housekeeping: what is over, unclaimed and held is found, and ends.
func (e Engine) housekeeping(t *testing.T, db *store.DB) {
	t.Helper()
	list, err := db.UnclaimedInvocations(t.Context())
	listed(t, "unclaimed", list, err, "approved", "released")
	list, err = db.HeldInvocations(t.Context(), "x")
	listed(t, "held", list, err, "claimed", "held", "running")
	list, err = db.HeldInvocations(t.Context(), "w")
	listed(t, "held by others", list, err)
	list, err = db.PendingInvocations(t.Context(), early)
	listed(t, "pending", list, err, "pending", "two", "voted")
	list, err = db.PendingInvocations(t.Context(), "2025")
	listed(t, "pending before", list, err)
	list, err = db.OverInvocations(t.Context(), now)
	listed(t, "over now", list, err)
	list, err = db.OverInvocations(t.Context(), late)
	listed(t, "over later", list, err, "approved", "pending", "released", "two", "voted")
	list, err = db.LedTo(t.Context(), find(t, db, "two"), 2)
	listed(t, "led to two", list, err, "lapsed", "withdrawn")

	walk(t, db, func(tx *store.Tx) (bool, error) { return tx.EscalateInvocation("pending", 1) },
		func(tx *store.Tx) (bool, error) { return tx.EscalateInvocation("pending", 2) },
		func(tx *store.Tx) (bool, error) { return tx.ReplaceInvocation("voted", "edited", now) },
		expires("released"), expires("approved"), expires("pending"))
	for id, want := range map[string][4]string{
		"pending":  {"expired", "expired", "expired", ""},
		"approved": {"cancelled", "approved", "expired", ""},
		"released": {"cancelled", "approved", "expired", ""}, // nobody took it up again in time
		"voted":    {"cancelled", "pending", "edited", "edited"},
	} {
		i := find(t, db, id)
		if got := [4]string{i.Status, i.Approval, i.Outcome, i.Replaced}; got != want || i.Sealed != nil {
			t.Errorf("%s: %q, want %q", id, got, want)
		}
	}
	change(t, db, func(tx *store.Tx) error { return tx.RenewInvocations("w", over) })
	change(t, db, func(tx *store.Tx) error { return tx.RenewInvocations("w", now) }) // never shortened
	for id, want := range map[string]string{"claimed": over, "running": over, "completed": late} {
		if got := find(t, db, id).Lease; got != want {
			t.Errorf("%s is held until %s, want %s", id, got, want)
		}
	}
	e.cancelsMany(t, db)
}

// cancelsMany: a stop ends what waits and what nobody holds (A4), of whom it names.
func (e Engine) cancelsMany(t *testing.T, db *store.DB) {
	t.Helper()
	for _, id := range []string{"s1", "s2", "s3", "s4", "s5"} {
		i := request(id)
		switch id {
		case "s1":
			i.Session = "other"
		case "s2":
			i.Task = "other"
		case "s3":
			i.Agent = "gone"
		case "s4":
			i = reading("s4")
			i.Tool, i.Class = "deploy", "write"
		}
		add(t, db, i)
	}
	walk(t, db, approves("s4"))
	for _, tt := range []struct {
		agent, session, task string
		want                 []string
	}{
		{"*", "other", "", []string{"s1"}},
		{"*", "", "other", []string{"s2"}},
		{"gone", "", "", []string{"s3"}},
		{"nobody", "", "", nil},
		{"coder' OR '1'='1", "", "", nil},
		{"*", "", "", []string{"s4", "s5", "two"}},
	} {
		change(t, db, func(tx *store.Tx) error {
			list, err := tx.CancelInvocations(tt.agent, tt.session, tt.task, "stopped", now)
			listed(t, "cancelled of "+tt.agent, list, err, tt.want...)
			return nil
		})
	}
	for _, id := range []string{"claimed", "held", "running"} {
		if got := find(t, db, id).Status; got != "running" {
			t.Errorf("%s, which runs, is %s", id, got)
		}
	}
}
