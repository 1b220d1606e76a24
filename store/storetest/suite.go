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
	t.Run("invocations", e.testInvocations)
	t.Run("beginnings", e.testBeginnings)
	t.Run("steps", e.testSteps)
	t.Run("columns", e.testColumns)
	t.Run("answers", e.testAnswers)
	t.Run("claims", e.testClaims)
	t.Run("grants", e.testGrants)
	t.Run("results", e.testResults)
	t.Run("resolutions", e.testResolutions)
	t.Run("people", e.testPeople)
	t.Run("people's guards", e.testPeopleGuards)
	t.Run("registry", e.testRegistry)
	t.Run("tokens", e.testTokens)
	t.Run("stops", e.testStops)
	t.Run("scopes", e.testScopes)
	t.Run("uses", e.testUses)
	t.Run("definitions", e.testDefinitions)
	t.Run("delegations", e.testDelegations)
	t.Run("pages", e.testPages)
	t.Run("states", e.testStates)
	t.Run("egress", e.testEgress)
	t.Run("egress's guards", e.testEgressGuards)
	t.Run("secrets", e.testSecrets)
	t.Run("webhooks", e.testWebhooks)
	t.Run("webhooks' guards", e.testWebhookGuards)
	t.Run("sandboxes", e.testSandboxes)
	t.Run("sandboxes' guards", e.testSandboxGuards)
	t.Run("ledger", e.testLedger)
	t.Run("transactions", e.testTransactions)
	t.Run("guards", e.testGuards)
	t.Run("guards of invocations", e.testInvocationGuards)
	t.Run("checks", e.testChecks)
	t.Run("races", e.testRaces)
	t.Run("pending limit", e.testLimit)
	t.Run("one key", e.testOneKey)
	t.Run("one grant", e.testOneGrant)
}

// Times that the suite's requests live in.
const (
	early = "2026-01-01T00:00:00.000000000Z"
	now   = "2026-01-02T00:00:00.000000000Z"
	noon  = "2026-01-02T12:00:00.000000000Z"
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

// scene fills a store: invocations in every state and grants (see life and granting);
// three entries; a head of the second; a good and a revoked token; a stop.
func scene(t *testing.T, db *store.DB) {
	t.Helper()
	life(t, db)
	granting(t, db)
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
		return tx.AddStop(store.Stop{Agent: "gone", At: now})
	})
	scopes(t, db)
}

var alice = store.Person{Name: "alice", Role: "admin", Passphrase: "$argon2id$v=19$…", Created: early}

func token(id string, n byte) store.Token {
	hash := make([]byte, 32)
	hash[0] = n
	return store.Token{ID: id, Agent: "coder", Hash: hash, Created: early}
}

// guarded are the tables whose rows attacks are measured by.
var guarded = []string{"tool_invocations", "tool_approvals", "grants", "invocation_results", "invocation_resolutions", "egress_events", "webhooks", "sandboxes",
	"ledger", "ledger_heads", "ledger_calls", "ledger_chain", "tokens", "sessions", "tasks", "uses", "definitions", "delegations"}

// asker is a connection, or many.
type asker interface {
	QueryContext(ctx context.Context, text string, args ...any) (*sql.Rows, error)
}

// content is every row of the tables that guards protect, as text.
func content(t *testing.T, raw asker) string {
	t.Helper()
	return contentOf(t, raw, guarded)
}

func contentOf(t *testing.T, raw asker, tables []string) string {
	t.Helper()
	var out strings.Builder
	for _, table := range tables {
		order := "1, 2"
		if table == "ledger_chain" {
			order = "1"
		}
		for _, row := range rowsOf(t, raw, "SELECT * FROM "+table+" ORDER BY "+order) {
			fmt.Fprintf(&out, "%s %q\n", table, row)
		}
	}
	return out.String()
}

func rowsOf(t *testing.T, raw asker, text string) (out [][]any) {
	t.Helper()
	rows, err := raw.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		cells, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		out = append(out, cells)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return out
}
