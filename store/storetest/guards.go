package storetest

import (
	"fmt"
	"slices"
	"strings"
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
	{"rename the chain", `UPDATE ledger_chain SET chain = 'other'`},
	{"forget the chain", `DELETE FROM ledger_chain`},
	{"add a chain", `INSERT INTO ledger_chain VALUES ('other')`},

	{"delete a request", `DELETE FROM approvals WHERE id = 'pending'`},
	{"delete a used approval", `DELETE FROM approvals WHERE id = 'used'`},
	{"delete all requests", `DELETE FROM approvals`},
	{"insert an approved one", insertApproval(`'approved'`, `'2026-01-02'`, `'mallory'`)},
	{"insert a used one", insertApproval(`'used'`, `'2026-01-02'`, `'mallory'`)},
	{"insert a rejected one", insertApproval(`'rejected'`, `'2026-01-02'`, `'mallory'`)},
	{"insert a pending one with its answer in it", insertApproval(`'pending'`, `'2026-01-02'`, `'alice'`)},
	{"insert a pending one with a date of answer", insertApproval(`'pending'`, `'2026-01-02'`, `''`)},
	{"insert in no state", insertApproval(`'granted'`, `''`, `''`)},
	{"upsert into approved", strings.Replace(insertApproval(`'pending'`, `''`, `''`), "'new'", "'pending'", 1) + ` ON CONFLICT (id) DO UPDATE SET digest = excluded.digest`},
	{"a second open request of a subject", strings.Replace(insertApproval(`'pending'`, `''`, `''`), "'subject-new'", "'subject-pending'", 1)},
	{"reuse of an id", strings.Replace(insertApproval(`'pending'`, `''`, `''`), "'new'", "'used'", 1)},
	{"approve without a name", answer("pending", "approved", ``, `2026-01-02`)},
	{"approve without a time", answer("pending", "approved", `alice`, ``)},
	{"approve after its time", answer("pending", "approved", `alice`, over)},
	{"reject without a name", answer("pending", "rejected", ``, `2026-01-02`)},
	{"approve and keep nothing to show", `UPDATE approvals SET state = 'approved', decided_by = 'alice', decided_at = '2026-01-02', sealed = NULL WHERE id = 'pending'`},
	{"approve another call than was shown", `UPDATE approvals SET state = 'approved', decided_by = 'alice', decided_at = '2026-01-02', sealed = x'00' WHERE id = 'pending'`},
	{"change what an open request shows", `UPDATE approvals SET sealed = x'00' WHERE id = 'pending'`},
	{"change what an approved request shows", `UPDATE approvals SET sealed = x'00' WHERE id = 'approved'`},
	{"use and keep the arguments", `UPDATE approvals SET state = 'used' WHERE id = 'approved'`},
	{"use and put arguments back", `UPDATE approvals SET sealed = x'00' WHERE id = 'used'`},
	{"use and change who approved", `UPDATE approvals SET state = 'used', sealed = NULL, decided_by = 'bob' WHERE id = 'approved'`},
	{"use and forget who approved", `UPDATE approvals SET state = 'used', sealed = NULL, decided_by = '' WHERE id = 'approved'`},
	{"use and change when", `UPDATE approvals SET state = 'used', sealed = NULL, decided_at = '2026-01-01' WHERE id = 'approved'`},
	{"use and change why", `UPDATE approvals SET state = 'used', sealed = NULL, reason = 'forged' WHERE id = 'approved'`},
	{"expire in somebody's name", `UPDATE approvals SET state = 'expired', sealed = NULL, decided_by = 'alice', decided_at = '2026-01-02' WHERE id = 'pending'`},
	{"change the reason of an ended one", `UPDATE approvals SET reason = 'forged' WHERE id = 'rejected'`},

	{"bring a token back", `UPDATE tokens SET revoked_at = '' WHERE id = 'revoked'`},
	{"change a revocation's time", `UPDATE tokens SET revoked_at = '2027' WHERE id = 'revoked'`},
	{"give a token to another agent", `UPDATE tokens SET agent = 'admin' WHERE id = 'good'`},
	{"change a token's secret", `UPDATE tokens SET hash = zeroblob(32) WHERE id = 'good'`},
	{"forget a token", `DELETE FROM tokens WHERE id = 'revoked'`},
	{"insert half a token", `INSERT INTO tokens SELECT 'half', agent, substr(hash, 1, 16), created_at, '' FROM tokens WHERE id = 'good'`},
}

func insertApproval(state, at, by string) string {
	return `INSERT INTO approvals (id, digest, subject, agent, tool, state, requested_at, expires_at, decided_at, decided_by, reason, sealed)
		VALUES ('new', 'digest-new', 'subject-new', 'coder', 'tool', ` + state + `, '` + early + `', '` + late + `', ` + at + `, ` + by + `, '', x'01')`
}

func answer(id, state, by, at string) string {
	sealed := "NULL"
	if state == "approved" {
		sealed = "sealed"
	}
	return fmt.Sprintf(`UPDATE approvals SET state = '%s', decided_by = '%s', decided_at = '%s', sealed = %s WHERE id = '%s'`, state, by, at, sealed, id)
}

// controls are what the guards let through, over the same connection.
var controls = []Attack{
	{"append", `INSERT INTO ledger SELECT chain, 4, kind, call, agent, at, body, hash FROM ledger WHERE seq = 3`},
	{"sign", `INSERT INTO ledger_heads SELECT chain, 3, body, signature FROM ledger_heads WHERE seq = 2`},
	{"ask", insertApproval(`'pending'`, `''`, `''`)},
	{"approve", answer("pending", "approved", "alice", "2026-01-02")},
	{"reject", answer("pending", "rejected", "alice", "2026-01-02")},
	{"use", `UPDATE approvals SET state = 'used', sealed = NULL WHERE id = 'approved'`},
	{"revoke", `UPDATE tokens SET revoked_at = '2026-01-02' WHERE id = 'good'`},
	{"add a token", `INSERT INTO tokens SELECT 'new', agent, zeroblob(32), created_at, '' FROM tokens WHERE id = 'good'`},
}

func (e Engine) testGuards(t *testing.T) {
	dir := t.TempDir()
	scene(t, e.open(t, dir))
	raw := e.Raw(t, dir)
	all := slices.Concat(attacks, scopeAttacks, e.Attacks)
	for _, column := range []string{"id", "digest", "subject", "agent", "tool", "requested_at", "expires_at"} {
		all = append(all,
			Attack{"change " + column, fmt.Sprintf(`UPDATE approvals SET %s = '2026-01-09' WHERE id = 'pending'`, column)},
			Attack{"approve and change " + column, strings.Replace(answer("pending", "approved", "alice", "2026-01-02"), "SET", "SET "+column+" = '2026-01-09',", 1)},
			Attack{"use and change " + column, fmt.Sprintf(`UPDATE approvals SET state = 'used', sealed = NULL, %s = '2026-01-09' WHERE id = 'approved'`, column)})
	}
	for _, a := range all {
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

// testSteps tries every pair of states: seven steps are legal.
func (e Engine) testSteps(t *testing.T) {
	dir := t.TempDir()
	scene(t, e.open(t, dir))
	raw := e.Raw(t, dir)
	legal := map[string][]string{"pending": {"approved", "rejected", "expired", "void"}, "approved": {"used", "expired", "void"}}
	for _, from := range states {
		for _, to := range states {
			set := "sealed = NULL"
			if to == "approved" {
				set = "sealed = sealed"
			}
			if from == "pending" && (to == "approved" || to == "rejected" || to == "used") {
				set += ", decided_by = 'alice', decided_at = '2026-01-02'"
			}
			tx, err := raw.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.ExecContext(t.Context(), fmt.Sprintf(`UPDATE approvals SET state = '%s', %s WHERE id = '%s'`, to, set, from))
			if want := slices.Contains(legal[from], to); (err == nil) != want {
				t.Errorf("%s → %s: legal %v, answer: %v", from, to, want, err)
			}
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
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
