package storetest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/store"
)

// cast adds people: alice, an admin, bob and carol, who approve, dora too until keeping, olga, an operator, and
// vera, who looks on; and tools: lookup, which contacts nobody, peek, which reads, deploy,
// which writes, other and moved as well, wipe, which is dangerous, and shy, which reads
// and asks.
func cast(t *testing.T, db *store.DB) {
	t.Helper()
	change(t, db, func(tx *store.Tx) error {
		for _, p := range []struct{ name, role string }{{"alice", "admin"}, {"bob", "approver"}, {"carol", "approver"}, {"dora", "approver"}, {"olga", "operator"}, {"vera", "viewer"}} {
			if ok, err := tx.AddPerson(store.Person{Name: p.name, Role: p.role, Passphrase: alice.Passphrase, Created: early}); !ok || err != nil {
				return fmt.Errorf("add %s: %v, %v", p.name, ok, err)
			}
		}
		for _, r := range []store.Registered{
			{Key: "lookup", Class: "none"}, {Key: "peek", Class: "read_only"}, {Key: "shy", Class: "read_only", RequiresApproval: true},
			{Key: "deploy", Class: "write"}, {Key: "other", Class: "write"}, {Key: "moved", Class: "write"}, {Key: "wipe", Class: "write", Dangerous: true},
		} {
			r.Definition, r.Unwaived, r.UnwaivedDangerous, r.Updated = defAfter, r.Class, r.Dangerous, early
			if err := tx.Register(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// request is a call of deploy that waits; its digests follow from its name.
func request(name string) store.Invocation {
	return store.Invocation{ID: name, Tool: "deploy", Definition: defAfter, Agent: "coder", Person: "alice", Token: "good", Session: "open", Task: "task-open", Door: "api",
		Action: "run", Risk: "high", Class: "write", ArgsDigest: "args-" + name, ArgsBytes: 2, Asked: "asked-" + name, Subject: "subject-" + name, Digest: "digest-" + name,
		Quorum: 1, Requested: early, Expires: late, Status: "pending", Approval: "pending", Sealed: []byte("sealed " + name)}
}

// reading is a call of peek that waits, though nobody would have to be asked.
func reading(name string) store.Invocation {
	i := request(name)
	i.Tool, i.Class, i.Reads = "peek", "read_only", true
	return i
}

// begun is a call of lookup that runs.
func begun(name string) store.Invocation {
	return store.Invocation{ID: name, Tool: "lookup", Definition: defAfter, Agent: "coder", Person: "alice", Door: "api", Action: "run", Risk: "low", Class: "none", Reads: true,
		ArgsDigest: "args-" + name, Requested: now, Started: now, Claimed: now, Lease: late, Worker: "w", Fence: 1, Status: "running", Approval: "not_required"}
}

// denied is a call that was refused.
func denied(name string) store.Invocation {
	i := begun(name)
	i.Status, i.Outcome, i.Completed, i.Started, i.Claimed, i.Lease, i.Worker, i.Fence = "denied", "denied", now, "", "", "", "", 0
	return i
}

func add(t *testing.T, db *store.DB, i store.Invocation) {
	t.Helper()
	if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.AddInvocation(&i) }) {
		t.Fatalf("%s was not added", i.ID)
	}
}

func find(t *testing.T, db *store.DB, id string) store.Invocation {
	t.Helper()
	i, ok, err := db.Invocation(t.Context(), id)
	if err != nil || !ok {
		t.Fatalf("invocation %s: found %v, %v", id, ok, err)
	}
	return i
}

func vote(id, person, decision string) store.Vote {
	return store.Vote{Invocation: id, Person: person, Decision: decision, Digest: "digest-" + id, Factor: "passphrase", At: now, Proof: []byte("proof")}
}

func ended(id, status string) store.Ended {
	return store.Ended{ID: id, Worker: "w", Fence: 1, Status: status, Outcome: "so", At: late}
}

// The ways through a life; each reports whether it was taken.
type move = func(*store.Tx) (bool, error)

func approves(id string) move {
	return func(tx *store.Tx) (bool, error) {
		if ok, err := tx.AddVote(vote(id, "alice", "approve")); !ok || err != nil {
			return ok, err
		}
		return tx.ApproveInvocation(id, "alice", now)
	}
}

func rejects(id string) move {
	return func(tx *store.Tx) (bool, error) {
		if ok, err := tx.AddVote(vote(id, "bob", "reject")); !ok || err != nil {
			return ok, err
		}
		return tx.RejectInvocation(id, "bob", "because", now)
	}
}

func claims(id, worker string) move {
	return func(tx *store.Tx) (bool, error) {
		_, ok, err := tx.ClaimInvocation(id, "subject-"+id, worker, now, late)
		return ok, err
	}
}

func finishes(e store.Ended) move {
	return func(tx *store.Tx) (bool, error) { return tx.FinishInvocation(e) }
}

func cancels(id string) move {
	return func(tx *store.Tx) (bool, error) { return tx.CancelInvocation(id, "cancelled", now) }
}

func expires(id string) move {
	return func(tx *store.Tx) (bool, error) { return tx.ExpireInvocation(id, over) }
}

func releases(id string) move {
	return func(tx *store.Tx) (bool, error) { return tx.ReleaseInvocation(id, "w") }
}

func walk(t *testing.T, db *store.DB, moves ...move) {
	t.Helper()
	for n, m := range moves {
		if !try(t, db, m) {
			t.Fatalf("step %d was not taken", n)
		}
	}
}

// life fills a store with an invocation in every state, each named for it: pending
// (nobody answered), voted (alice for it, bob against, and neither counted yet), two
// (takes two, alice agreed), approved, claimed, held (claimed, and it reads), released
// (its worker is gone), completed, failed, stopped (while it ran), unknown, rejected,
// expired, void, withdrawn (approved, then cancelled), lapsed (approved, and nobody came),
// running, done and denied (which nobody was asked about).
func life(t *testing.T, db *store.DB) {
	t.Helper()
	cast(t, db)
	for _, id := range []string{"pending", "voted", "approved", "claimed", "completed", "failed", "stopped", "unknown", "rejected", "expired", "void", "withdrawn", "lapsed"} {
		i := request(id)
		if id == "void" {
			i.Agent = "gone"
		}
		add(t, db, i)
	}
	two := request("two")
	two.Quorum = 2
	add(t, db, two)
	for _, i := range []store.Invocation{reading("held"), reading("released"), begun("running"), begun("done"), denied("denied")} {
		add(t, db, i)
	}
	for _, v := range []store.Vote{vote("voted", "alice", "approve"), vote("voted", "bob", "reject"), vote("two", "alice", "approve")} {
		walk(t, db, func(tx *store.Tx) (bool, error) { return tx.AddVote(v) })
	}
	for _, id := range []string{"approved", "claimed", "completed", "failed", "stopped", "unknown", "withdrawn", "lapsed", "held", "released"} {
		walk(t, db, approves(id))
	}
	for _, id := range []string{"claimed", "completed", "failed", "stopped", "unknown", "held"} {
		walk(t, db, claims(id, "w"))
	}
	walk(t, db, func(tx *store.Tx) (bool, error) {
		_, ok, err := tx.ClaimInvocation("released", "subject-released", "w", noon, late)
		return ok, err
	}, finishes(ended("completed", "completed")), finishes(ended("failed", "failed")), finishes(ended("stopped", "cancelled")), finishes(ended("unknown", "unknown")),
		finishes(ended("done", "completed")), releases("released"), rejects("rejected"), expires("expired"), expires("lapsed"), cancels("void"), cancels("withdrawn"))
}

// An invocation is kept as it was given, and found in every way there is.
func (e Engine) testInvocations(t *testing.T) {
	db := e.open(t, t.TempDir())
	cast(t, db)
	cost := 0.25
	full := request("full")
	full.Key, full.Cost, full.NotBy, full.EditOf, full.Dangerous, full.Tool = "key", &cost, "carol", "before", true, "wipe"
	add(t, db, full)
	add(t, db, begun("plain"))
	full.N = 1
	for name, look := range map[string]func() (store.Invocation, bool, error){
		"by id":    func() (store.Invocation, bool, error) { return db.Invocation(t.Context(), "full") },
		"standing": func() (store.Invocation, bool, error) { return db.Standing(t.Context(), "full") },
		"asked":    func() (store.Invocation, bool, error) { return db.AskedInvocation(t.Context(), "full") },
		"open":     func() (store.Invocation, bool, error) { return db.OpenInvocation(t.Context(), "asked-full") },
		"by key":   func() (store.Invocation, bool, error) { return db.KeyedInvocation(t.Context(), "coder", "key") },
	} {
		want := full
		if name != "by id" && name != "asked" {
			want.Sealed = nil // whoever waits does not need what it shows
		}
		if name == "asked" || name == "open" { // nor to know more than what it is about
			want.N, want.Person, want.Token, want.Door, want.Action, want.Reads, want.ArgsBytes, want.Cost, want.Approval = 0, "", "", "", "", false, 0, nil, ""
		}
		if got, ok, err := look(); err != nil || !ok || !cmp.Equal(got, want) {
			t.Errorf("%s: %v, %v\n%s", name, ok, err, cmp.Diff(want, got))
		}
	}
	for name, look := range map[string]func() (store.Invocation, bool, error){
		"by another id":         func() (store.Invocation, bool, error) { return db.Invocation(t.Context(), "%") },
		"open, of nothing":      func() (store.Invocation, bool, error) { return db.OpenInvocation(t.Context(), "") },
		"by no key":             func() (store.Invocation, bool, error) { return db.KeyedInvocation(t.Context(), "coder", "") },
		"by the key of another": func() (store.Invocation, bool, error) { return db.KeyedInvocation(t.Context(), "gone", "key") },
	} {
		if got, ok, err := look(); err != nil || ok {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	change(t, db, func(tx *store.Tx) error {
		if open, err := tx.IsOpen("asked-full"); !open || err != nil {
			t.Errorf("open: %v %v", open, err)
		}
		if open, err := tx.IsOpen(""); open || err != nil {
			t.Errorf("nothing is open: %v %v", open, err)
		}
		id, definition, args, err := tx.Keyed("coder", "key")
		if id != "full" || definition != defAfter || args != "args-full" || err != nil {
			t.Errorf("keyed: %q %q %q %v", id, definition, args, err)
		}
		if id, _, _, err := tx.Keyed("coder", "other"); id != "" || err != nil {
			t.Errorf("keyed otherwise: %q %v", id, err)
		}
		return nil
	})
	micros, cpu, bytes := int64(7), int64(0), int64(9)
	end := ended("plain", "completed")
	end.Micros, end.CPU, end.Bytes = &micros, &cpu, &bytes
	walk(t, db, finishes(end))
	want := begun("plain")
	want.N, want.Status, want.Outcome, want.Completed, want.Micros, want.CPU, want.Bytes = 2, "completed", "so", late, &micros, &cpu, &bytes
	if got := find(t, db, "plain"); !cmp.Equal(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	e.unregistered(t, db)
}

// unregistered: what is not registered as it was decided about is reported, not added.
func (e Engine) unregistered(t *testing.T, db *store.DB) {
	t.Helper()
	for name, alter := range map[string]func(*store.Invocation){
		"a tool that is not registered":    func(i *store.Invocation) { i.Tool = "nothing" },
		"another definition":               func(i *store.Invocation) { i.Definition = defBefore },
		"a class that was raised":          func(i *store.Invocation) { i.Tool = "peek" },
		"a danger that was added":          func(i *store.Invocation) { i.Tool, i.Class = "wipe", "write" },
		"a tool that asks by now":          func(i *store.Invocation) { i.Tool, i.Class = "shy", "read_only" },
		"a tool in other letters":          func(i *store.Invocation) { i.Tool = "LOOKUP" },
		"a tool with something after it":   func(i *store.Invocation) { i.Tool = "lookup " },
		"a tool with SQL in its name (O7)": func(i *store.Invocation) { i.Tool = "lookup' OR '1'='1" },
	} {
		i := begun("new")
		alter(&i)
		if try(t, db, func(tx *store.Tx) (bool, error) { return tx.AddInvocation(&i) }) {
			t.Errorf("%s: was added", name)
		}
	}
	add(t, db, begun("new")) // control
}

// Lists for the daemon's housekeeping hold what they say.
func listed(t *testing.T, name string, list []store.Invocation, err error, want ...string) {
	t.Helper()
	var got []string
	for _, i := range list {
		got = append(got, i.ID)
	}
	if slices.Sort(got); err != nil || !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v: %v", name, got, want, err)
	}
}
