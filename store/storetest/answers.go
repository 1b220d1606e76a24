package storetest

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ/store"
)

func votes(v store.Vote) move {
	return func(tx *store.Tx) (bool, error) { return tx.AddVote(v) }
}

// testAnswers: who may answer, about what, when, and how often.
func (e Engine) testAnswers(t *testing.T) {
	db := e.open(t, t.TempDir())
	life(t, db)
	keeping(t, db)
	role := func(v store.Vote, role string) store.Vote { v.Role = role; return v }
	at := func(v store.Vote, at string) store.Vote { v.At = at; return v }
	digest := func(v store.Vote, d string) store.Vote { v.Digest = d; return v }
	for name, v := range map[string]store.Vote{
		"somebody who looks on":             vote("pending", "vera", "approve"),
		"an operator":                       vote("pending", "olga", "approve"),
		"an agent (A6)":                     vote("pending", "coder", "approve"),
		"nobody":                            vote("pending", "", "approve"),
		"an approver in other letters":      vote("pending", "Bob", "approve"),
		"SQL for a name (O7)":               vote("pending", "x' OR '1'='1", "approve"),
		"an operator who rejects":           vote("pending", "olga", "reject"),
		"one person twice (A7)":             vote("two", "alice", "approve"),
		"one person, then otherwise":        vote("two", "alice", "reject"),
		"whom it is asked for (four eyes)":  vote("eyes", "bob", "approve"),
		"an approver where an admin has to": role(vote("pending", "bob", "approve"), "admin"),
		"an answer to another digest":       digest(vote("pending", "bob", "approve"), "digest-voted"),
		"an answer to no digest":            digest(vote("pending", "bob", "approve"), ""),
		"an answer after its time (A5)":     at(vote("pending", "bob", "approve"), over),
		"an answer at the last moment":      at(vote("pending", "bob", "approve"), late),
		"an answer before it was asked":     at(vote("pending", "bob", "approve"), "2025"),
		"an answer after cancelling (A4)":   vote("void", "alice", "approve"),
		"an answer after an answer":         vote("rejected", "alice", "approve"),
		"an answer to what is approved":     vote("approved", "bob", "reject"),
		"an answer to what has expired":     vote("expired", "bob", "approve"),
		"an answer to what runs":            vote("claimed", "bob", "approve"),
		"an answer to what nobody is asked": digest(vote("running", "bob", "approve"), ""),
		"an answer to nothing (A9)":         vote("nothing", "bob", "approve"),
	} {
		if try(t, db, votes(v)) {
			t.Errorf("%s: counted", name)
		}
		if try(t, db, func(tx *store.Tx) (bool, error) { return tx.CanVote(v) }) {
			t.Errorf("%s: would count", name)
		}
	}
	if n, err := db.Approvers(t.Context()); n != 3 || err != nil {
		t.Errorf("%d approvers, %v", n, err)
	}
	for _, v := range []store.Vote{vote("eyes", "bob", "reject"), vote("eyes", "carol", "approve"), role(vote("pending", "alice", "approve"), "admin")} {
		if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.CanVote(v) }) {
			t.Errorf("control: %+v would not count", v)
		}
	}
	approved := func(id, by, at string) bool {
		return try(t, db, func(tx *store.Tx) (bool, error) { return tx.ApproveInvocation(id, by, at) })
	}
	if approved("pending", "alice", now) || approved("two", "alice", now) || approved("voted", "carol", now) || approved("voted", "alice", late) || approved("nothing", "alice", now) {
		t.Error("approved without enough votes, or too late, or by another")
	}
	for _, by := range []string{"carol", "alice"} {
		if try(t, db, func(tx *store.Tx) (bool, error) { return tx.RejectInvocation("voted", by, "", now) }) {
			t.Errorf("rejected by %s, who did not", by)
		}
	}
	e.rolesLost(t, db)
	want := []store.Vote{vote("two", "alice", "approve"), vote("two", "bob", "approve"), vote("two", "carol", "approve")}
	if got, err := db.Votes(t.Context(), "two"); err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v\n%s", err, cmp.Diff(want, got))
	}
	i := find(t, db, "two")
	if i.Status != "running" || i.Approval != "approved" || i.By != "carol" || i.Decided != now || i.Started != now || i.Worker != "" || i.Sealed == nil {
		t.Errorf("approved: %+v", i)
	}
	walk(t, db, votes(vote("pending", "bob", "reject")), func(tx *store.Tx) (bool, error) { return tx.RejectInvocation("pending", "bob", "no'; --", now) })
	if i := find(t, db, "pending"); i.Status != "rejected" || i.Approval != "rejected" || i.Reason != "no'; --" || i.By != "bob" || i.Sealed != nil {
		t.Errorf("rejected: %+v", i)
	}
}

// rolesLost (A8): whoever loses the role between looking and answering does not count,
// nor does the answer that they gave before a quorum was reached.
func (e Engine) rolesLost(t *testing.T, db *store.DB) {
	t.Helper()
	demote := func(name, role string) {
		t.Helper()
		walk(t, db, func(tx *store.Tx) (bool, error) { return tx.SetRole(name, role) })
	}
	approve := func(by string) bool {
		return try(t, db, func(tx *store.Tx) (bool, error) { return tx.ApproveInvocation("two", by, now) })
	}
	demote("bob", "viewer")
	if try(t, db, votes(vote("two", "bob", "approve"))) {
		t.Error("somebody who lost the role answered")
	}
	demote("bob", "approver")
	walk(t, db, votes(vote("two", "bob", "approve")))
	demote("bob", "operator")
	if approve("bob") || approve("alice") {
		t.Error("the answer of somebody who lost the role counted")
	}
	walk(t, db, votes(vote("two", "carol", "approve")))
	if !approve("carol") {
		t.Error("two who may approve did, and it did not count")
	}
	demote("bob", "approver")
}
