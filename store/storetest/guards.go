package storetest

import (
	"slices"
	"testing"
)

// attacks must change nothing, whatever they answer.
var attacks = []Attack{
	{"edit an entry", `UPDATE ledger SET body = '{"forged":1}' WHERE seq = 2`},
	{"edit an entry's hash", `UPDATE ledger SET hash = (SELECT hash FROM ledger WHERE seq = 1) WHERE seq = 2`},
	{"renumber an entry", `UPDATE ledger SET seq = 99 WHERE seq = 3`},
	{"set an entry to itself", `UPDATE ledger SET body = body || ' '`},
	{"delete the last entry", `DELETE FROM ledger WHERE seq = 3`},
	{"delete a middle entry", `DELETE FROM ledger WHERE seq = 2`},
	{"delete all entries", `DELETE FROM ledger`},
	{"upsert an entry", `INSERT INTO ledger SELECT chain, seq, kind, call, agent, at, '{"forged":1}', hash FROM ledger WHERE seq = 2 ON CONFLICT (seq) DO UPDATE SET body = excluded.body`},
	{"leave a gap", `INSERT INTO ledger SELECT chain, 9, kind, call, agent, at, body, hash FROM ledger WHERE seq = 3`},
	{"insert before the first", `INSERT INTO ledger SELECT chain, 0, kind, call, agent, at, body, hash FROM ledger WHERE seq = 3`},
	{"insert far below", `INSERT INTO ledger SELECT chain, -9223372036854775808, kind, call, agent, at, body, hash FROM ledger WHERE seq = 3`},
	{"start a second chain", `INSERT INTO ledger SELECT 'other', 4, kind, call, agent, at, body, hash FROM ledger WHERE seq = 3`},
	{"an entry with half a hash", `INSERT INTO ledger SELECT chain, 4, kind, call, agent, at, body, substr(hash, 1, 16) FROM ledger WHERE seq = 3`},
	{"edit a head", `UPDATE ledger_heads SET body = 'x'`},
	{"delete a head", `DELETE FROM ledger_heads`},
	{"upsert a head", `INSERT INTO ledger_heads SELECT chain, seq, 'x', signature FROM ledger_heads WHERE seq = 2 ON CONFLICT (chain, seq) DO UPDATE SET body = excluded.body`},
	{"a head before the last", `INSERT INTO ledger_heads SELECT chain, 1, body, signature FROM ledger_heads WHERE seq = 2`},
	{"a head of nothing", `INSERT INTO ledger_heads SELECT chain, 4, body, signature FROM ledger_heads WHERE seq = 2`},
	{"a head of another chain", `INSERT INTO ledger_heads SELECT 'other', seq, body, signature FROM ledger_heads WHERE seq = 2`},
	{"hide an entry from its call", `DELETE FROM ledger_calls WHERE seq = 2`},
	{"list an entry under another call", `UPDATE ledger_calls SET call = 'other'`},
	{"list an entry twice", `INSERT INTO ledger_calls VALUES ('other', 2)`},
	{"rename the chain", `UPDATE ledger_chain SET chain = 'other'`},
	{"forget the chain", `DELETE FROM ledger_chain`},
	{"add a chain", `INSERT INTO ledger_chain VALUES ('other')`},

	{"bring a token back", `UPDATE tokens SET revoked_at = '' WHERE id = 'revoked'`},
	{"change a revocation's time", `UPDATE tokens SET revoked_at = '2027' WHERE id = 'revoked'`},
	{"give a token to another agent", `UPDATE tokens SET agent = 'admin' WHERE id = 'good'`},
	{"change a token's secret", `UPDATE tokens SET hash = zeroblob(32) WHERE id = 'good'`},
	{"forget a token", `DELETE FROM tokens WHERE id = 'revoked'`},
	{"insert half a token", `INSERT INTO tokens SELECT 'half', agent, substr(hash, 1, 16), created_at, '' FROM tokens WHERE id = 'good'`},
}

// controls are what the guards let through, over the same connection.
var controls = []Attack{
	{"append", `INSERT INTO ledger SELECT chain, 4, kind, call, agent, at, body, hash FROM ledger WHERE seq = 3`},
	{"sign", `INSERT INTO ledger_heads SELECT chain, 3, body, signature FROM ledger_heads WHERE seq = 2`},
	{"revoke", `UPDATE tokens SET revoked_at = '2026-01-02' WHERE id = 'good'`},
	{"add a token", `INSERT INTO tokens SELECT 'new', agent, zeroblob(32), created_at, '' FROM tokens WHERE id = 'good'`},
}

func (e Engine) testGuards(t *testing.T) {
	dir := t.TempDir()
	scene(t, e.open(t, dir))
	raw := e.Raw(t, dir)
	for _, a := range slices.Concat(attacks, scopeAttacks, e.Attacks) {
		e.attack(t, dir, a)
	}
	for _, c := range slices.Concat(controls, scopeControls) {
		tx, err := raw.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := tx.ExecContext(t.Context(), c.SQL)
		if err != nil {
			t.Errorf("control %s: %v", c.Name, err)
		} else if n, _ := res.RowsAffected(); n != 1 {
			t.Errorf("control %s changed %d rows", c.Name, n)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

// attack runs an attack on a connection of its own, in a transaction that is
// rolled back, so that one that goes through does not spoil the next.
func (e Engine) attack(t *testing.T, dir string, a Attack) {
	t.Helper()
	raw := e.Raw(t, dir)
	defer raw.Close()
	raw.SetMaxOpenConns(1)
	before := content(t, raw)
	if _, err := raw.ExecContext(t.Context(), "BEGIN"); err != nil {
		t.Fatal(err)
	}
	_, err := raw.ExecContext(t.Context(), a.SQL)
	switch after := content(t, raw); {
	case after != before:
		t.Errorf("%s: went through (%v)\n%s", a.Name, err, a.SQL)
	case err == nil:
		t.Errorf("%s: changed nothing and did not say so\n%s", a.Name, a.SQL)
	}
	if _, err := raw.ExecContext(t.Context(), "ROLLBACK"); err != nil {
		t.Error(err)
	}
}
