// Package storetest is the suite that every store engine passes: the queries, the
// guards that the schema itself holds against whoever can speak SQL to it, and
// the races. Each attack is refused beside a control that is not: the same
// statement, legal, over the same connection.
//
// What no engine's guards can stop is somebody who can replace the database's
// files, drop a guard and put it back, or write pages by hand. Opening refuses a
// schema that is not exactly ours, and the ledger's signed heads and witness show
// what was changed behind it.
package storetest

import (
	"context"
	"crypto/ed25519"
	"database/sql"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
)

// Engine is an engine under test.
type Engine struct {
	// Open opens the store that lives in dir, making it if need be.
	Open func(ctx context.Context, dir string) (*store.DB, error)
	// Raw is another program's connection to the same database, with none of our
	// settings.
	Raw func(t *testing.T, dir string) *sql.DB
	// Writer lets many callers change the store at once, as package ledger does:
	// each change as a whole or, when it returns an error, not at all.
	Writer func(t *testing.T, db *store.DB) func(change func(*store.Tx) error) error
	// Attacks are statements in the engine's own dialect that must change nothing
	// in the scene that the suite sets: see scene.
	Attacks []Attack
}

// Attack is one attempt to get past a guard with SQL.
type Attack struct{ Name, SQL string }

// Run runs the suite.
func Run(t *testing.T, e Engine) {
	t.Run("approvals", e.testApprovals)
	t.Run("people", e.testPeople)
	t.Run("tokens", e.testTokens)
	t.Run("stops", e.testStops)
	t.Run("scopes", e.testScopes)
	t.Run("uses", e.testUses)
	t.Run("definitions", e.testDefinitions)
	t.Run("delegations", e.testDelegations)
	t.Run("pages", e.testPages)
	t.Run("ledger", e.testLedger)
	t.Run("transactions", e.testTransactions)
	t.Run("guards", e.testGuards)
	t.Run("steps", e.testSteps)
	t.Run("races", e.testRaces)
	t.Run("pending limit", e.testLimit)
}

// Times that the suite's requests live in.
const (
	early = "2026-01-01T00:00:00.000000000Z"
	now   = "2026-01-02T00:00:00.000000000Z"
	late  = "2026-01-03T00:00:00.000000000Z"
	over  = "2026-01-04T00:00:00.000000000Z"
)

func (e Engine) open(t *testing.T, dir string) *store.DB {
	t.Helper()
	db, err := e.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// change runs f in a transaction of its own.
func change(t *testing.T, db *store.DB, f func(*store.Tx) error) {
	t.Helper()
	tx, err := db.Begin(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := f(tx); err != nil {
		t.Fatal(err, tx.Rollback())
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
}

// try is change for one statement that reports whether it did anything.
func try(t *testing.T, db *store.DB, f func(*store.Tx) (bool, error)) bool {
	t.Helper()
	var did bool
	change(t, db, func(tx *store.Tx) (err error) {
		did, err = f(tx)
		return err
	})
	return did
}

// asked is a request whose id, subject and digest follow from its name.
func asked(name string) store.Approval {
	return store.Approval{ID: name, Digest: "digest-" + name, Subject: "subject-" + name, Agent: "coder", Tool: "shell_command",
		State: "pending", Requested: early, Expires: late, Sealed: []byte("sealed " + name)}
}

func add(t *testing.T, db *store.DB, a store.Approval) {
	t.Helper()
	if !try(t, db, func(tx *store.Tx) (bool, error) { return tx.AddApproval(a, 100) }) {
		t.Fatalf("request %s was not added", a.ID)
	}
}

func state(t *testing.T, db *store.DB, id string) string {
	t.Helper()
	a, ok, err := db.Approval(t.Context(), id)
	if err != nil || !ok {
		t.Fatalf("request %s: found %v, %v", id, ok, err)
	}
	return a.State
}

// states are all that an approval can be in; scene has a request of each name in it.
var states = []string{"pending", "approved", "rejected", "expired", "void", "used"}

// scene fills a store: a request in each state, named for it; three entries; a
// head of the second; a good and a revoked token; a person; a stop.
func scene(t *testing.T, db *store.DB) {
	t.Helper()
	for _, s := range states {
		a := asked(s)
		if s == "void" {
			a.Agent = "gone"
		}
		add(t, db, a)
	}
	change(t, db, func(tx *store.Tx) error {
		for _, id := range []string{"approved", "used", "rejected"} {
			to := "approved"
			if id == "rejected" {
				to = "rejected"
			}
			if ok, err := tx.DecideApproval(id, "digest-"+id, to, "alice", "because", now); !ok || err != nil {
				return fmt.Errorf("decide %s: %v, %v", id, ok, err)
			}
		}
		if ok, err := tx.UseApproval("used", "subject-used", now); !ok || err != nil {
			return fmt.Errorf("use: %v, %v", ok, err)
		}
		if ok, err := tx.ExpireApproval("expired", over); !ok || err != nil {
			return fmt.Errorf("expire: %v, %v", ok, err)
		}
		return nil
	})
	change(t, db, func(tx *store.Tx) error { return tx.VoidApprovals("gone") })
	chain, _, _, err := db.Chain(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	change(t, db, func(tx *store.Tx) error {
		for i := range int64(3) {
			err := tx.Append(store.Entry{Chain: chain, Seq: i + 1, Kind: "test", Call: fmt.Sprint("call", i), Agent: "coder", At: now, Body: "{}", Hash: writ.Digest{byte(i)}})
			if err != nil {
				return err
			}
		}
		if err := tx.SetHead(store.Head{Chain: chain, Seq: 2, Body: "{}", Signature: make([]byte, ed25519.SignatureSize)}); err != nil {
			return err
		}
		if err := tx.AddToken(token("good", 1)); err != nil {
			return err
		}
		if err := tx.AddToken(token("revoked", 2)); err != nil {
			return err
		}
		if _, err := tx.RevokeToken("revoked", now); err != nil {
			return err
		}
		if err := tx.AddStop(store.Stop{Agent: "gone", At: now}); err != nil {
			return err
		}
		_, err := tx.AddFirstPerson(alice)
		return err
	})
	scopes(t, db)
}

var alice = store.Person{Name: "alice", Role: "admin", Passphrase: "$argon2id$v=19$…", Created: early}

func token(id string, n byte) store.Token {
	hash := make([]byte, 32)
	hash[0] = n
	return store.Token{ID: id, Agent: "coder", Hash: hash, Created: early}
}

// content is every row of the tables that guards protect, as text.
func content(t *testing.T, raw *sql.DB) string {
	t.Helper()
	var out strings.Builder
	for _, table := range []string{"approvals", "ledger", "ledger_heads", "ledger_chain", "tokens", "sessions", "tasks", "uses", "definitions", "delegations"} {
		rows, err := raw.QueryContext(t.Context(), "SELECT * FROM "+table+" ORDER BY 1, 2")
		if table == "ledger_chain" {
			rows, err = raw.QueryContext(t.Context(), "SELECT * FROM "+table+" ORDER BY 1")
		}
		if err != nil {
			t.Fatal(err)
		}
		columns, err := rows.Columns()
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			cells := make([]any, len(columns))
			into := make([]any, len(columns))
			for i := range cells {
				into[i] = &cells[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&out, "%s %q\n", table, cells)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}
