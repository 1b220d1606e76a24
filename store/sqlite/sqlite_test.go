package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/store/storetest"
)

// raw is what any program that can open the file has: SQLite with its own
// defaults, none of ours.
func raw(t *testing.T, dir string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqlite.Name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func writer(t *testing.T, db *store.DB) func(func(*store.Tx) error) error {
	t.Helper()
	l := openLedger(t, db, filepath.Join(t.TempDir(), "witness.jsonl"))
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(change func(*store.Tx) error) error {
		return l.Write(t.Context(), func(tx *store.Tx) (ledger.Entry, error) { return ledger.Entry{Kind: "test"}, change(tx) })
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, storetest.Engine{Open: sqlite.Open, Raw: raw, Writer: writer, Attacks: []storetest.Attack{
		// REPLACE removes the row in its way without firing DELETE triggers, unless
		// the connection turned recursive_triggers on. Nobody else's connection did.
		{Name: "replace an entry", SQL: `INSERT OR REPLACE INTO ledger SELECT chain, seq, kind, call, agent, at, '{"forged":1}', hash FROM ledger WHERE seq = 2`},
		{Name: "replace the last entry", SQL: `REPLACE INTO ledger SELECT chain, seq, kind, call, agent, at, '{"forged":1}', hash FROM ledger WHERE seq = 3`},
		{Name: "replace by rowid", SQL: `REPLACE INTO ledger (rowid, chain, kind, call, agent, at, body, hash) SELECT 2, chain, kind, call, agent, at, '{"forged":1}', hash FROM ledger WHERE seq = 2`},
		{Name: "an entry without a number", SQL: `INSERT OR REPLACE INTO ledger (chain, kind, call, agent, at, body, hash) SELECT chain, kind, call, agent, at, body, hash FROM ledger WHERE seq = 3`},
		{Name: "move an entry by its row", SQL: `UPDATE OR REPLACE ledger SET rowid = 1 WHERE seq = 2`},
		{Name: "a text for a hash", SQL: `INSERT INTO ledger SELECT chain, 4, kind, call, agent, at, body, '0123456789abcdef0123456789abcdef' FROM ledger WHERE seq = 3`},
		{Name: "a blob for a body", SQL: `INSERT INTO ledger SELECT chain, 4, kind, call, agent, at, CAST(body AS BLOB), hash FROM ledger WHERE seq = 3`},
		{Name: "replace a head", SQL: `REPLACE INTO ledger_heads SELECT chain, seq, 'x', signature FROM ledger_heads`},
		{Name: "replace where an entry is found", SQL: `REPLACE INTO ledger_calls SELECT call, seq FROM ledger_calls; UPDATE OR REPLACE ledger_calls SET seq = 1`},
		{Name: "replace the chain", SQL: `REPLACE INTO ledger_chain SELECT chain FROM ledger_chain; REPLACE INTO ledger_chain (rowid, chain) VALUES (1, 'other')`},
		{Name: "replace a revoked token", SQL: `REPLACE INTO tokens SELECT id, agent, hash, created_at, '' FROM tokens WHERE id = 'revoked'`},
		{Name: "push a token out by its hash", SQL: `REPLACE INTO tokens SELECT 'new', agent, hash, created_at, '' FROM tokens WHERE id = 'revoked'`},
		{Name: "push a token out by its row", SQL: `REPLACE INTO tokens (rowid, id, agent, hash, created_at, revoked_at) SELECT rowid, 'new', agent, zeroblob(32), created_at, '' FROM tokens WHERE id = 'revoked'`},
		{Name: "replace a session", SQL: `REPLACE INTO sessions SELECT id, token, agent, name, opened_at, '', '' FROM sessions WHERE id = 'ended'`},
		{Name: "rate a task beyond the scale", SQL: `PRAGMA ignore_check_constraints = 1; UPDATE tasks SET rating = 11, rated_by = 'alice' WHERE id = 'task-open'`},
		{Name: "replace a counted call", SQL: `REPLACE INTO uses SELECT call, agent, 'other', session, task, at, 1, 1, 1, 0 FROM uses WHERE call = 'succeeded'`},
		{Name: "accept in nobody's name", SQL: `PRAGMA ignore_check_constraints = 1; INSERT INTO definitions SELECT name, digest, body, '2027', '' FROM definitions`},
		{Name: "replace what was accepted", SQL: `REPLACE INTO definitions SELECT name, '` + strings.Repeat("0", 64) + `', body, accepted_at, accepted_by FROM definitions`},
		{Name: "replace a delegation", SQL: `REPLACE INTO delegations SELECT name, parent, parent_token, session, task, token, request, made_at, expires_at, '', '' FROM delegations WHERE name = 'coder/ended'`},
		{Name: "disable triggers by recursion", SQL: `PRAGMA recursive_triggers = 0; REPLACE INTO ledger SELECT chain, seq, kind, call, agent, at, 'x', hash FROM ledger WHERE seq = 1`},
	}})
}
