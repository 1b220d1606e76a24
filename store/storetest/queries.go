package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
)

func (e Engine) testPeople(t *testing.T) {
	db := e.open(t, t.TempDir())
	if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.AddFirstPerson(alice) }) {
		t.Fatal("the first person was not added")
	}
	bob := alice
	bob.Name = "bob"
	if try(t, db, func(tx *store.Tx) (bool, error) { return tx.AddFirstPerson(bob) }) {
		t.Error("there are two first people")
	}
	got, err := db.People(t.Context())
	if err != nil || !cmp.Equal(got, []store.Person{alice}) {
		t.Errorf("%v: %s", err, cmp.Diff([]store.Person{alice}, got))
	}
}

func (e Engine) testTokens(t *testing.T) {
	db := e.open(t, t.TempDir())
	change(t, db, func(tx *store.Tx) error { return tx.AddToken(token("a", 1)) })
	if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.RevokeToken("a", now) }) {
		t.Error("a token was not revoked")
	}
	for _, id := range []string{"a", "b"} {
		if try(t, db, func(tx *store.Tx) (bool, error) { return tx.RevokeToken(id, over) }) {
			t.Errorf("token %s was revoked", id)
		}
	}
	want := token("a", 1)
	want.Revoked = now
	got, err := db.Tokens(t.Context())
	if err != nil || !cmp.Equal(got, []store.Token{want}) {
		t.Errorf("%v: %s", err, cmp.Diff([]store.Token{want}, got))
	}
}

func (e Engine) testStops(t *testing.T) {
	dir := t.TempDir()
	db, err := e.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	first := store.Stop{Agent: "coder", At: early, Reason: "odd"}
	change(t, db, func(tx *store.Tx) error { return tx.AddStop(first) })
	change(t, db, func(tx *store.Tx) error { return tx.AddStop(store.Stop{Agent: "coder", At: now}) })
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = e.open(t, dir) // a stop survives
	got, err := db.Stops(t.Context())
	if err != nil || !cmp.Equal(got, []store.Stop{first}) {
		t.Errorf("%v: %s", err, cmp.Diff([]store.Stop{first}, got))
	}
	for _, want := range []bool{true, false} {
		if try(t, db, func(tx *store.Tx) (bool, error) { return tx.LiftStop("coder") }) != want {
			t.Errorf("lifting: not %v", want)
		}
	}
}

func (e Engine) testLedger(t *testing.T) {
	dir := t.TempDir()
	db, err := e.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	chain, seq, last, err := db.Chain(t.Context())
	if err != nil || chain == "" || seq != 0 || !last.IsZero() {
		t.Errorf("an empty chain: %q, %d, %v, %v", chain, seq, last, err)
	}
	// More than a page, with texts that SQL or a reader of columns could trip over.
	odd := "a\x00b'\"; DROP TABLE ledger; --\r\n\u2028\u202e"
	var want []store.Entry
	change(t, db, func(tx *store.Tx) error {
		for i := range int64(2100) {
			want = append(want, store.Entry{Chain: chain, Seq: i + 1, Kind: "test", Call: fmt.Sprint("call", i/2), Agent: odd, At: now, Body: odd, Hash: writ.Digest{byte(i), byte(i >> 8)}})
			if err := tx.Append(want[i]); err != nil {
				return err
			}
		}
		return tx.SetHead(store.Head{Chain: chain, Seq: 3, Body: "{}", Signature: make([]byte, 64)})
	})
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = e.open(t, dir)
	again, seq, last, err := db.Chain(t.Context())
	if err != nil || again != chain || seq != 2100 || last != want[2099].Hash {
		t.Errorf("the chain afterwards: %q, %d, %v, %v", again, seq, last, err)
	}
	var all []store.Entry
	for e, err := range db.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	for name, list := range map[string][2][]store.Entry{
		"all":                  {all, want},
		"after":                {must(db.After(t.Context(), 10, 5)), want[10:15]},
		"call":                 {must(db.OfCall(t.Context(), "call7")), want[14:16]},
		"under a head":         {must(db.OfCall(t.Context(), "call0")), want[0:2]},
		"on both sides of one": {must(db.OfCall(t.Context(), "call1")), want[2:4]},
		"none":                 {must(db.OfCall(t.Context(), "%")), []store.Entry{}},
	} {
		if !cmp.Equal(list[0], list[1]) {
			t.Errorf("%s: %s", name, cmp.Diff(list[1], list[0]))
		}
	}
	for call, want := range map[string]int64{"call0": 1, "call1": 3, "call7": 15, "none": 1} {
		if got, err := db.FirstOf(t.Context(), call); got != want || err != nil {
			t.Errorf("the first of %s: %d, %v", call, got, err)
		}
	}
	if n, err := db.Unlisted(t.Context()); n != 0 || err != nil {
		t.Errorf("unlisted: %d, %v", n, err)
	}
	heads := must(db.Heads(t.Context()))
	if wantHeads := []store.Head{{Chain: chain, Seq: 3, Body: "{}", Signature: make([]byte, 64)}}; !cmp.Equal(heads, wantHeads) {
		t.Errorf("heads: %s", cmp.Diff(wantHeads, heads))
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (e Engine) testTransactions(t *testing.T) {
	db := e.open(t, t.TempDir())
	cast(t, db)
	a := begun("a")
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := tx.AddInvocation(&a); !ok || err != nil {
		t.Fatal(ok, err)
	}
	if _, ok, err := db.Invocation(t.Context(), "a"); ok || err != nil {
		t.Errorf("what is not committed shows: %v, %v", ok, err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := db.Invocation(t.Context(), "a"); ok || err != nil {
		t.Errorf("what was rolled back shows: %v, %v", ok, err)
	}
	// A caller who goes away inside a transaction leaves the connection usable.
	ctx, cancel := context.WithCancel(t.Context())
	if tx, err = db.Begin(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := tx.AddInvocation(&a); err == nil {
		t.Error("a cancelled transaction took a change")
	}
	if err := tx.Commit(); writ.KindOf(err) != writ.StoreUnavailable {
		t.Errorf("a cancelled transaction committed: %v", err)
	}
	add(t, db, a)
	if got := find(t, db, "a").Status; got != "running" {
		t.Error(got)
	}
}
