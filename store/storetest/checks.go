package storetest

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

const (
	quiet      = "changed nothing and did not say so"
	heedChecks = `PRAGMA ignore_check_constraints = 0`
	invBegin   = "invocations_begin"
	invSteps   = "invocations_steps"
	invFixed   = "invocations_fixed"
	voteBegin  = "tool_approvals_begin"
	grantBegin = "grants_begin"
	grantSteps = "grants_steps"
	resBegin   = "invocation_results_begin"
	resSteps   = "invocation_results_steps"
	foundBegin = "invocation_resolutions_begin"
)

func insertVote(id, person, decision, digest, factor, at string) string {
	return fmt.Sprintf(`INSERT INTO tool_approvals (invocation, person, decision, digest, factor, at, proof) VALUES ('%s', '%s', '%s', '%s', '%s', '%s', x'01')`, id, person, decision, digest, factor, at)
}

// insertGrant is a grant from a request; what follows replaces its columns.
func insertGrant(from string, but ...string) string {
	with := map[string]string{"id": "'new'", "invocation": "id", "agent": "agent", "tool_key": "tool_key", "definition": "definition", "policy": "'p'", "confinement": "'c'",
		"egress_class": "egress_class", "max_uses": "2", "used": "0", "made_at": "'" + now + "'", "made_by": "'alice'", "expires_at": "'" + late + "'", "revoked_at": "''", "revoked_by": "''", "sealed": "x'01'"}
	for _, pair := range but {
		column, value, _ := strings.Cut(pair, " = ")
		with[column] = value
	}
	columns := slices.Sorted(maps.Keys(with))
	var values []string
	for _, c := range columns {
		values = append(values, with[c])
	}
	return `INSERT INTO grants (` + strings.Join(columns, ", ") + `) SELECT ` + strings.Join(values, ", ") + ` FROM tool_invocations WHERE id = '` + from + `'`
}

func insertResult(id, asked, delivered string) string {
	return fmt.Sprintf(`INSERT INTO invocation_results (invocation, asked, kept_at, delivered_at, sealed) VALUES ('%s', '%s', '%s', '%s', x'01')`, id, asked, now, delivered)
}

func insertFound(id, happened, by string) string {
	return fmt.Sprintf(`INSERT INTO invocation_resolutions (invocation, happened, note, resolved_by, resolved_at) VALUES ('%s', '%s', '', '%s', '%s')`, id, happened, by, now)
}

// invocationAttacks must change nothing in a scene where outcomes are kept too (see
// keeping); without their guard each goes through.
var invocationAttacks = []guardedAttack{
	{Attack{"approve without a vote", onRow("pending", toRunning)}, invSteps},
	{Attack{"approve with fewer than it takes (A7)", onRow("two", toRunning)}, invSteps},
	{Attack{"approve with the word of one who may not any more (A8)", onRow("lost", toRunning)}, invSteps},
	{Attack{"approve in the name of somebody who did not", onRow("voted", strings.Replace(toRunning, "alice", "carol", 1))}, invSteps},
	{Attack{"approve in the name of somebody who rejected", onRow("voted", strings.Replace(toRunning, "alice", "bob", 1))}, invSteps},
	{Attack{"approve in nobody's name", ignoreChecks + onRow("voted", strings.Replace(toRunning, "alice", "", 1))}, invSteps},
	{Attack{"approve after its time (A5)", ignoreChecks + onRow("voted", strings.ReplaceAll(toRunning, now, late))}, invSteps},
	{Attack{"approve another call than was shown", onRow("voted", toRunning+`, sealed = x'00'`)}, invSteps},
	{Attack{"approve what was rejected", ignoreChecks + onRow("rejected", toRunning)}, invSteps},
	{Attack{"approve what was cancelled (A4)", ignoreChecks + onRow("void", toRunning)}, invSteps},
	{Attack{"approve what has expired", ignoreChecks + onRow("expired", toRunning)}, invSteps},
	{Attack{"let a write run unasked", ignoreChecks + onRow("pending", `status = 'running', approval_status = 'not_required', started_at = '`+now+`'`)}, invSteps},
	{Attack{"reject in the name of somebody who did not", onRow("voted", strings.Replace(toRejected, "bob", "carol", 1))}, invSteps},
	{Attack{"reject in the name of somebody who agreed", onRow("voted", strings.Replace(toRejected, "bob", "alice", 1))}, invSteps},
	{Attack{"expire before its time", onRow("pending", strings.Replace(toExpired, over, now, 1))}, invSteps},
	{Attack{"expire in somebody's name", onRow("pending", toExpired+`, decided_by = 'alice'`)}, invSteps},
	{Attack{"claim what waits", ignoreChecks + onRow("pending", toClaimed)}, invSteps},
	{Attack{"claim a second time (A11)", onRow("claimed", toClaimed)}, invSteps},
	{Attack{"claim what has ended (A11)", ignoreChecks + onRow("completed", `status = 'running', completed_at = '', `+toClaimed)}, invSteps},
	{Attack{"claim after its time", onRow("approved", strings.Replace(toClaimed, noon, late, 1))}, invSteps},
	{Attack{"claim before it was approved", onRow("approved", strings.Replace(toClaimed, noon, early, 1))}, invSteps},
	{Attack{"claim before the claim before", onRow("released", strings.Replace(toClaimed, noon, now, 1))}, invSteps},
	{Attack{"claim with a fence that was used", onRow("released", strings.Replace(toClaimed, "fence + 1", "fence", 1))}, invSteps},
	{Attack{"claim what is another tool by now (A13)", `UPDATE tool_invocations SET ` + toClaimed + ` WHERE id = 'moved'`}, invSteps},
	{Attack{"release what writes", onRow("claimed", `worker = ''`)}, invSteps},
	{Attack{"release what acts", onRow("acts", `worker = ''`)}, invSteps},
	{Attack{"release what cannot be run again", onRow("running", `worker = ''`)}, invSteps},
	{Attack{"complete what nobody holds", onRow("released", `status = 'completed', `+toEnd)}, invSteps},
	{Attack{"complete what nobody took up", ignoreChecks + onRow("approved", `status = 'completed', `+toEnd)}, invSteps},
	{Attack{"complete what waits (E6)", ignoreChecks + onRow("pending", `status = 'completed', `+toEnd)}, invSteps},
	{Attack{"complete what was rejected (E6)", ignoreChecks + onRow("rejected", `status = 'completed', `+toEnd)}, invSteps},
	{Attack{"complete with another worker (E7)", onRow("claimed", `status = 'completed', worker = 'x', `+toEnd)}, invSteps},
	{Attack{"complete with another fence (E5)", onRow("claimed", `status = 'completed', fence = 9, `+toEnd)}, invSteps},
	{Attack{"make an unknown one completed", onRow("unknown", `status = 'completed'`)}, invSteps},
	{Attack{"shorten a lease", onRow("claimed", `lease_until = '`+now+`x'`)}, invSteps},
	{Attack{"take a hold over", onRow("claimed", `worker = 'x'`)}, invSteps},
	{Attack{"put a key on another call", onRow("running", `idempotency_key = 'mine'`)}, invSteps + " " + invFixed},
	{Attack{"edit an ended one's outcome", onRow("completed", `outcome = 'failed'`)}, invSteps},
	{Attack{"edit an ended one or ignore it", strings.Replace(onRow("completed", `outcome = 'failed'`), "UPDATE", "UPDATE OR IGNORE", 1)}, invSteps},
	{Attack{"edit an ended one or replace it", strings.Replace(onRow("completed", `outcome = 'failed'`), "UPDATE", "UPDATE OR REPLACE", 1)}, invSteps},
	{Attack{"edit all at once", `UPDATE tool_invocations SET agent = 'mallory'`}, invSteps + " " + invFixed},
	{Attack{"end a run as another's", onRow("claimed", `agent = 'mallory', status = 'completed', `+toEnd)}, invFixed},
	{Attack{"take up another call than was approved", onRow("approved", `subject = 'forged', `+toClaimed)}, invFixed},
	{Attack{"past a temporary trigger", `CREATE TEMP TRIGGER mine AFTER UPDATE ON tool_invocations BEGIN SELECT RAISE(IGNORE); END; ` + onRow("completed", `outcome = 'failed'`)}, invSteps},
	{Attack{"free the key of a write that ran", ignoreChecks + onRow("claimed", `status = 'failed', `+strings.Replace(toEnd, "'so'", "'interrupted'", 1))}, invSteps},
	{Attack{"free it in favour of a grant", ignoreChecks + onRow("claimed", `status = 'cancelled', `+strings.Replace(toEnd, "'so'", "'granted'", 1))}, invSteps},
	{Attack{"edit a reason", onRow("rejected", `approval_reason = 'forged'`)}, invSteps},
	{Attack{"move one onto another", `UPDATE OR REPLACE tool_invocations SET n = (SELECT n FROM tool_invocations WHERE id = 'completed') WHERE id = 'approved'`}, invSteps},
	{Attack{"move one by its row", `UPDATE tool_invocations SET rowid = 1000 WHERE id = 'approved'`}, invSteps},
	{Attack{"move one in a legal step", onRow("void", `n = 1000`)}, invSteps},
	{Attack{"upsert into approved", `INSERT INTO tool_invocations SELECT * FROM tool_invocations WHERE id = 'pending' ON CONFLICT (id) DO UPDATE SET ` + toRunning}, invBegin + " " + invSteps},
	{Attack{"upsert by place", `INSERT INTO tool_invocations SELECT * FROM tool_invocations WHERE id = 'completed' ON CONFLICT (n) DO UPDATE SET outcome = 'forged'`}, invBegin + " " + invSteps},
	{Attack{"insert again or ignore", `INSERT OR IGNORE INTO tool_invocations SELECT * FROM tool_invocations WHERE id = 'completed'`}, invBegin},
	{Attack{"delete one that waits", `DELETE FROM tool_invocations WHERE id = 'pending'`}, "invocations_keep"},
	{Attack{"delete one that ended", `DELETE FROM tool_invocations WHERE id = 'completed'`}, "invocations_keep"},
	{Attack{"delete all", `DELETE FROM tool_invocations`}, "invocations_keep"},

	{Attack{"answer without the role (A6)", insertVote("pending", "vera", "approve", "digest-pending", "f", now)}, voteBegin},
	{Attack{"answer as an operator", insertVote("pending", "olga", "approve", "digest-pending", "f", now)}, voteBegin},
	{Attack{"answer as an agent (A6)", insertVote("pending", "coder", "approve", "digest-pending", "f", now)}, voteBegin},
	{Attack{"answer as nobody", ignoreChecks + insertVote("pending", "", "approve", "digest-pending", "f", now)}, voteBegin},
	{Attack{"reject without the role", insertVote("pending", "vera", "reject", "digest-pending", "f", now)}, voteBegin},
	{Attack{"answer twice (A7)", strings.Replace(insertVote("two", "alice", "approve", "digest-two", "f", now), "INSERT", "INSERT OR IGNORE", 1)}, voteBegin},
	{Attack{"replace an answer", strings.Replace(insertVote("two", "alice", "reject", "digest-two", "f", now), "INSERT", "REPLACE", 1)}, voteBegin},
	{Attack{"answer another digest", insertVote("pending", "bob", "approve", "digest-voted", "f", now)}, voteBegin},
	{Attack{"answer after its time (A5)", insertVote("pending", "bob", "approve", "digest-pending", "f", late)}, voteBegin},
	{Attack{"answer before it was asked", insertVote("pending", "bob", "approve", "digest-pending", "f", "2025")}, voteBegin},
	{Attack{"answer what was cancelled (A4)", insertVote("void", "bob", "approve", "digest-void", "f", now)}, voteBegin},
	{Attack{"answer what was rejected", insertVote("rejected", "alice", "approve", "digest-rejected", "f", now)}, voteBegin},
	{Attack{"answer what was approved", insertVote("approved", "bob", "reject", "digest-approved", "f", now)}, voteBegin},
	{Attack{"answer what was never asked", insertVote("running", "bob", "approve", "x", "f", now)}, voteBegin},
	{Attack{"answer nothing", insertVote("nothing", "bob", "approve", "x", "f", now)}, voteBegin},
	{Attack{"approve with two eyes (A7)", insertVote("eyes", "bob", "approve", "digest-eyes", "f", now)}, voteBegin},
	{Attack{"answer neither way", ignoreChecks + insertVote("pending", "bob", "maybe", "digest-pending", "f", now)}, voteBegin},
	{Attack{"answer without proof", ignoreChecks + insertVote("pending", "bob", "approve", "digest-pending", "", now)}, voteBegin},
	{Attack{"turn an answer", `UPDATE tool_approvals SET decision = 'approve' WHERE invocation = 'rejected'`}, "tool_approvals_steps"},
	{Attack{"give an answer to another request", `UPDATE tool_approvals SET invocation = 'pending' WHERE invocation = 'two'`}, "tool_approvals_steps"},
	{Attack{"give an answer to somebody else", `UPDATE tool_approvals SET person = 'carol' WHERE invocation = 'two'`}, "tool_approvals_steps"},
	{Attack{"forget an answer", `DELETE FROM tool_approvals WHERE invocation = 'two'`}, "tool_approvals_keep"},

	{Attack{"a grant from what waits", insertGrant("pending")}, grantBegin},
	{Attack{"a grant from what was rejected", insertGrant("rejected", "made_by = 'bob'")}, grantBegin},
	{Attack{"a grant from what runs", insertGrant("claimed")}, grantBegin},
	{Attack{"a grant from what is long over", insertGrant("completed")}, grantBegin},
	{Attack{"a grant from what a grant covers", insertGrant("granted")}, grantBegin},
	{Attack{"a grant from what nobody was asked", insertGrant("running")}, grantBegin},
	{Attack{"a second grant from a request", insertGrant("live")}, grantBegin},
	{Attack{"a grant of somebody who did not approve", insertGrant("alone", "made_by = 'bob'")}, grantBegin},
	{Attack{"a grant of nobody", ignoreChecks + insertGrant("alone", "made_by = ''")}, grantBegin},
	{Attack{"a grant for another agent", insertGrant("alone", "agent = 'gone'")}, grantBegin},
	{Attack{"a grant for another tool", insertGrant("alone", "tool_key = 'other'")}, grantBegin},
	{Attack{"a grant for another definition", insertGrant("alone", "definition = '"+defBefore+"'")}, grantBegin},
	{Attack{"a grant for another class", insertGrant("alone", "egress_class = 'none'")}, grantBegin},
	{Attack{"a grant that owes a use", ignoreChecks + insertGrant("alone", "used = -5")}, grantBegin},
	{Attack{"a grant of what is dangerous", insertGrant("danger")}, grantBegin},
	{Attack{"a grant of what takes two", insertGrant("both")}, grantBegin},
	{Attack{"a grant of what takes four eyes", insertGrant("seen")}, grantBegin},
	{Attack{"replace a grant", strings.Replace(insertGrant("alone", "id = 'g-spent'"), "INSERT", "REPLACE", 1)}, grantBegin},
	{Attack{"give a use back", `UPDATE grants SET used = 0 WHERE id = 'g-spent'`}, grantSteps},
	{Attack{"allow more uses", `UPDATE grants SET max_uses = 100 WHERE id = 'g-spent'`}, grantSteps},
	{Attack{"use beyond the last", ignoreChecks + `UPDATE grants SET used = used + 1 WHERE id = 'g-spent'`}, grantSteps},
	{Attack{"bring a grant back", `UPDATE grants SET revoked_at = '', revoked_by = '' WHERE id = 'g-revoked'`}, grantSteps},
	{Attack{"use a revoked grant", `UPDATE grants SET used = used + 1 WHERE id = 'g-revoked'`}, grantSteps},
	{Attack{"make a grant last longer", `UPDATE grants SET expires_at = '2030' WHERE id = 'g-short'`}, grantSteps},
	{Attack{"give a grant to another agent", `UPDATE grants SET agent = 'gone', used = used + 1 WHERE id = 'g-live'`}, grantSteps},
	{Attack{"give a grant another pattern", `UPDATE grants SET sealed = x'02', used = used + 1 WHERE id = 'g-live'`}, grantSteps},
	{Attack{"bind a grant to another policy as it is revoked", `UPDATE grants SET policy = 'x', revoked_at = '2026', revoked_by = 'alice' WHERE id = 'g-live'`}, grantSteps},
	{Attack{"forget a grant", `DELETE FROM grants WHERE id = 'g-revoked'`}, "grants_keep"},

	{Attack{"an outcome of what runs", insertResult("claimed", "asked-claimed", "")}, resBegin},
	{Attack{"an outcome of what waits", insertResult("pending", "asked-pending", "")}, resBegin},
	{Attack{"an outcome of what was denied", insertResult("denied", "", "")}, resBegin},
	{Attack{"an outcome of nothing", insertResult("nothing", "", "")}, resBegin},
	{Attack{"an outcome for another call", insertResult("failed", "asked-pending", "")}, resBegin},
	{Attack{"an outcome instead of the one there", strings.Replace(insertResult("completed", "asked-completed", ""), "INSERT", "REPLACE", 1)}, resBegin},
	{Attack{"an outcome to be had again", `UPDATE invocation_results SET delivered_at = '' WHERE invocation = 'stopped'`}, resSteps},
	{Attack{"another outcome", `UPDATE invocation_results SET sealed = x'02' WHERE invocation = 'completed'`}, resSteps},
	{Attack{"another outcome as it is handed over", `UPDATE invocation_results SET sealed = x'02', delivered_at = '2026' WHERE invocation = 'completed'`}, resSteps},
	{Attack{"an outcome handed over to another call", `UPDATE invocation_results SET asked = 'x', delivered_at = '2026' WHERE invocation = 'completed'`}, resSteps},
	{Attack{"an outcome kept for longer", `UPDATE invocation_results SET kept_at = '2030', delivered_at = '2026' WHERE invocation = 'completed'`}, resSteps},

	{Attack{"a key of nobody's call", `INSERT INTO invocation_keys VALUES ('coder', 'k-new', 'no such')`}, "invocation_keys_begin"},
	{Attack{"a key of another agent's call", `INSERT INTO invocation_keys VALUES ('other', 'k-new', 'pending')`}, "invocation_keys_begin"},
	{Attack{"another call for a key", `INSERT INTO invocation_keys VALUES ('coder', 'k-one', 'pending'); UPDATE invocation_keys SET invocation = 'completed'`}, "invocation_keys_steps"},
	{Attack{"a key to be had again", `INSERT INTO invocation_keys VALUES ('coder', 'k-two', 'pending'); DELETE FROM invocation_keys`}, "invocation_keys_keep"},

	{Attack{"resolve what is known", insertFound("completed", "yes", "alice")}, foundBegin},
	{Attack{"resolve what runs", insertFound("claimed", "yes", "alice")}, foundBegin},
	{Attack{"resolve as somebody who looks on", insertFound("unknown2", "no", "vera")}, foundBegin},
	{Attack{"resolve as an agent", insertFound("unknown2", "no", "coder")}, foundBegin},
	{Attack{"resolve as nobody", ignoreChecks + insertFound("unknown2", "no", "")}, foundBegin},
	{Attack{"resolve in other words", ignoreChecks + insertFound("unknown2", "perhaps", "alice")}, foundBegin},
	{Attack{"resolve again", strings.Replace(insertFound("unknown", "no", "alice"), "INSERT", "REPLACE", 1)}, foundBegin},
	{Attack{"find out otherwise", `UPDATE invocation_resolutions SET happened = 'no'`}, "invocation_resolutions_steps"},
	{Attack{"forget what was found out", `DELETE FROM invocation_resolutions`}, "invocation_resolutions_keep"},
}

// invocationControls are what the same guards let through.
var invocationControls = []string{
	onRow("voted", toRunning), onRow("voted", toRejected), onRow("pending", toExpired), onRow("approved", toClaimed), onRow("held", `worker = ''`),
	onRow("claimed", `status = 'completed', `+toEnd), onRow("claimed", `status = 'unknown', `+toEnd),
	insertVote("pending", "bob", "approve", "digest-pending", "f", now), insertVote("pending", "carol", "reject", "digest-pending", "f", now),
	insertVote("two", "bob", "approve", "digest-two", "f", now), insertVote("eyes", "bob", "reject", "digest-eyes", "f", now), insertVote("eyes", "carol", "approve", "digest-eyes", "f", now),
	insertGrant("alone"), `UPDATE grants SET used = used + 1 WHERE id = 'g-live'`, `UPDATE grants SET revoked_at = '2026', revoked_by = 'bob' WHERE id = 'g-live'`,
	insertResult("failed", "asked-failed", ""), insertResult("done", "", now), `UPDATE invocation_results SET delivered_at = '2026' WHERE invocation = 'completed'`,
	`DELETE FROM invocation_results WHERE invocation = 'completed'`, insertFound("unknown2", "partly", "olga"),
}

// Tried names every trigger whose absence the suite notices.
func Tried() map[string]bool {
	out := map[string]bool{"class_waivers_end": true} // see testRegistry
	for _, a := range slices.Concat(registryAttacks, invocationAttacks, egressAttacks, webhookAttacks, sandboxAttacks) {
		for _, name := range strings.Fields(a.by) {
			out[name] = true
		}
	}
	for _, r := range registryRewrites {
		out[r.by] = true
	}
	return out
}

func (e Engine) testInvocationGuards(t *testing.T) {
	dir := t.TempDir()
	db := e.open(t, dir)
	scene(t, db)
	keeping(t, db)
	without := map[string][]guardedAttack{}
	e.refusals(t, dir, "", func(refused func(string) string) {
		for _, a := range invocationAttacks {
			if why := refused(a.SQL); why != "" {
				t.Errorf("%s: %s\n%s", a.Name, why, a.SQL)
			}
			without[a.by] = append(without[a.by], a)
		}
	})
	for guard, all := range without {
		e.refusals(t, dir, guard, func(refused func(string) string) {
			for _, a := range all {
				if why := refused(a.SQL); why == "" {
					t.Errorf("%s: refused without %s too, which therefore guards nothing here\n%s", a.Name, guard, a.SQL)
				}
			}
		})
	}
	e.tries(t, dir, func(try func(string, ...any) error) {
		for _, c := range invocationControls {
			if err := try(c); err != nil {
				t.Errorf("control: %v\n%s", err, c)
			}
		}
	})
	columns := e.columns(t, dir, "tool_invocations")[1:]
	again := likeRow(columns, "INSERT", "granted", map[string]string{"id": "'again'"})
	for drop, want := range map[string]int64{"": 2, "invocations_begin": 1} {
		e.alone(t, dir, func(c *sql.Conn, exec func(string) error) {
			if drop != "" {
				drop = "DROP TRIGGER " + drop + "; "
			}
			if err := exec(drop + again); err != nil {
				t.Fatal(err)
			}
			if got := rowsOf(t, c, `SELECT used FROM grants WHERE id = 'g-live'`); got[0][0] != want {
				t.Errorf("%sa grant was used %v times, want %d", drop, got[0][0], want)
			}
		})
	}
}

// refusals runs statements on one connection without some triggers, each undone after.
// It says "" of one that was refused and changed nothing.
func (e Engine) refusals(t *testing.T, dir, drop string, f func(refused func(text string) string)) {
	t.Helper()
	e.alone(t, dir, func(c *sql.Conn, exec func(string) error) {
		must := func(text string) {
			if err := exec(text); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range strings.Fields(drop) {
			must("DROP TRIGGER " + name)
		}
		of := guarded[:7] // invocations, what belongs to them, what left boxes, and whom that is told
		was := contentOf(t, c, of)
		f(func(text string) (why string) {
			must("SAVEPOINT attempt")
			err := exec(text)
			switch is := contentOf(t, c, of); {
			case is != was:
				why = fmt.Sprintf("went through (%v)", err)
			case err == nil:
				why = quiet
			}
			must("ROLLBACK TO attempt; RELEASE attempt; " + heedChecks)
			return why
		})
	})
}

// checked are statements that constraints alone refuse, with every trigger gone.
var checked = []string{
	onRow("claimed", `approval_status = 'not_required'`), // a write that nobody agreed to
	`UPDATE tool_invocations SET egress_class = 'write' WHERE id = 'running'`,
	`UPDATE tool_invocations SET dangerous = 1 WHERE id = 'running'`,
	onRow("claimed", `approval_status = 'pending'`),
	onRow("completed", `approval_status = 'pending'`),
	onRow("pending", `approval_status = 'approved', decided_by = 'alice', decided_at = '`+now+`'`),
	onRow("void", `approval_status = 'rejected', decided_by = 'alice', decided_at = '`+now+`'`),
	onRow("rejected", `status = 'cancelled'`),
	onRow("void", `approval_status = 'expired'`),
	onRow("expired", `status = 'cancelled'`),
	onRow("approved", `decided_by = ''`),
	onRow("approved", `decided_at = ''`),
	onRow("approved", `decided_at = expires_at`),
	onRow("rejected", `decided_by = ''`),
	onRow("pending", `expires_at = requested_at`),
	onRow("pending", `asked = ''`),
	onRow("pending", `subject = ''`),
	onRow("pending", `digest = ''`),
	onRow("pending", `quorum = 0`),
	onRow("completed", `started_at = ''`),
	onRow("approved", `started_at = ''`),
	onRow("completed", `fence = 0, worker = ''`),
	onRow("completed", `completed_at = ''`),
	onRow("pending", `completed_at = '`+now+`'`),
	onRow("approved", `worker = 'w'`),
	onRow("claimed", `claimed_at = ''`),
	onRow("claimed", `lease_until = claimed_at`),
	onRow("completed", `sealed = x'00'`),
	onRow("pending", `sealed = NULL`),
	onRow("approved", `sealed = NULL`),
	onRow("pending", `status = 'granted'`),
	onRow("void", `approval_status = 'granted'`),
	onRow("pending", `egress_class = 'harmless'`),
	onRow("pending", `dangerous = 2`),
	onRow("pending", `reads = 2`),
	onRow("pending", `args_bytes = -1`),
	onRow("running", `quorum = -1`),
	onRow("running", `requested_at = ''`),
	onRow("pending", `escalations = -1`),
	onRow("pending", `fence = -1`),
	onRow("done", `measured_micros = -1`),
	onRow("done", `measured_cpu_micros = -1`),
	onRow("done", `result_bytes = -1`),
	onRow("done", `n = -1`),
	insertVote("pending", "", "approve", "digest-pending", "f", now),
	insertVote("pending", "bob", "maybe", "digest-pending", "f", now),
	insertVote("pending", "bob", "approve", "", "f", now),
	insertVote("pending", "bob", "approve", "digest-pending", "", now),
	insertGrant("alone", "egress_class = 'harmless'"),
	insertGrant("alone", "max_uses = 0"),
	insertGrant("alone", "used = -1"),
	insertGrant("alone", "used = 3"),
	insertGrant("alone", "made_by = ''"),
	insertGrant("alone", "expires_at = '"+now+"'"),
	insertFound("unknown2", "perhaps", "alice"),
	insertFound("unknown2", "yes", ""),
}

// unique are statements that only an index refuses, with every trigger gone.
var unique = []string{
	onRow("approved", `asked = 'asked-pending'`), // two open requests of one call
	onRow("running", `idempotency_key = 'key'`),
	onRow("running", `id = 'done'`),
	`UPDATE tool_invocations SET n = 1 WHERE id = 'done'`,
	insertVote("two", "alice", "approve", "digest-two", "f", now),
	insertGrant("alone", "id = 'g-live'"),
	insertResult("completed", "", ""),
	insertFound("unknown", "no", "alice"),
}

// testChecks drops every trigger: what constraints say still holds (Q).
func (e Engine) testChecks(t *testing.T) {
	dir := t.TempDir()
	db := e.open(t, dir)
	scene(t, db)
	keeping(t, db)
	var all []string
	for name := range Tried() {
		if name != "" && name != "class_waivers_end" {
			all = append(all, name)
		}
	}
	drop := strings.Join(all, " ")
	e.refusals(t, dir, drop, func(refused func(string) string) {
		for _, text := range checked {
			if why := refused(text); why != "" {
				t.Errorf("%s without triggers\n%s", why, text)
			}
			if why := refused(ignoreChecks + text); why == "" {
				t.Errorf("refused without checks too\n%s", text)
			}
		}
		for _, text := range unique {
			if why := refused(ignoreChecks + text); why != "" {
				t.Errorf("%s without triggers and checks\n%s", why, text)
			}
		}
	})
	e.refusals(t, dir, "", func(refused func(string) string) {
		for _, text := range checked {
			if why := refused(ignoreChecks + text); why != "" {
				t.Errorf("%s with triggers and without checks\n%s", why, text)
			}
		}
	})
}
