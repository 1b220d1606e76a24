package storetest

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// likeRow is a raw INSERT of a new invocation like one that is there, but for some columns.
func likeRow(columns []string, verb, base string, but map[string]string) string {
	values := slices.Clone(columns)
	for i, c := range columns {
		if v, ok := but[c]; ok {
			values[i] = v
		}
	}
	return verb + ` INTO tool_invocations (` + strings.Join(columns, ", ") + `) SELECT ` + strings.Join(values, ", ") + ` FROM tool_invocations WHERE id = '` + base + `'`
}

// beginnings are what an invocation cannot begin as: like base, but.
var beginnings = []struct{ name, base, but string }{
	{"pending, answered", "pending", `decided_by = 'alice'`},
	{"pending, with a date of answer", "pending", `decided_at = '` + now + `'`},
	{"pending, with a reason", "pending", `approval_reason = 'x'`},
	{"pending, escalated", "pending", `escalations = 1`},
	{"pending, started", "pending", `started_at = '` + now + `'`},
	{"pending, claimed", "pending", `claimed_at = '` + now + `'`},
	{"pending, with a fence", "pending", `fence = 1`},
	{"pending, with a lease", "pending", `lease_until = '` + late + `'`},
	{"pending, with a worker", "pending", `worker = 'w'`},
	{"pending, with a worker and all it needs", "pending", `worker = 'w'; fence = 1; claimed_at = '` + now + `'; lease_until = '` + late + `'`},
	{"pending, ended", "pending", `completed_at = '` + now + `'`},
	{"pending, with an outcome", "pending", `outcome = 'x'`},
	{"pending, replaced", "pending", `replaced_by = 'x'`},
	{"pending, measured", "pending", `measured_micros = 1`},
	{"pending, measured in processor time", "pending", `measured_cpu_micros = 1`},
	{"pending, with a result", "pending", `result_bytes = 1`},
	{"pending, with a grant", "pending", `grant_id = 'g-live'`},
	{"pending, with nothing to show", "pending", `sealed = NULL`},
	{"pending, without what was asked", "pending", `asked = ''`},
	{"pending, without a subject", "pending", `subject = ''`},
	{"pending, without a digest", "pending", `digest = ''`},
	{"pending, for nobody to answer", "pending", `quorum = 0`},
	{"pending, over from the start", "pending", `expires_at = requested_at`},
	{"pending, of a tool that is not registered", "pending", `tool_key = 'nothing'`},
	{"pending, of another definition", "pending", `definition = '` + defBefore + `'`},
	{"pending, of a lower class", "pending", `egress_class = 'read_only'`},
	{"pending, of no class", "pending", `egress_class = 'none'`},
	{"pending, of a danger untold", "pending", `tool_key = 'wipe'`},
	{"pending, and not required", "pending", `approval_status = 'not_required'`},
	{"pending, and approved", "pending", `approval_status = 'approved'; decided_by = 'alice'; decided_at = '` + now + `'`},
	{"approved at once", "pending", `status = 'running'; approval_status = 'approved'; decided_by = 'alice'; decided_at = '` + now + `'; started_at = '` + now + `'`},
	{"approved and claimed at once", "pending", `status = 'running'; approval_status = 'approved'; decided_by = 'alice'; decided_at = '` + now + `'; started_at = '` + now + `'; claimed_at = '` + now + `'; worker = 'w'; fence = 1; lease_until = '` + late + `'`},
	{"rejected at once", "pending", `status = 'rejected'; approval_status = 'rejected'; decided_by = 'bob'; decided_at = '` + now + `'; completed_at = '` + now + `'; sealed = NULL`},
	{"expired at once", "pending", `status = 'expired'; approval_status = 'expired'; completed_at = '` + over + `'; sealed = NULL`},
	{"cancelled at once", "pending", `status = 'cancelled'; completed_at = '` + now + `'; sealed = NULL`},
	{"completed at once", "running", `status = 'completed'; completed_at = '` + late + `'; outcome = 'ok'`},
	{"failed at once", "running", `status = 'failed'; completed_at = '` + late + `'; outcome = 'ok'`},
	{"unknown at once", "running", `status = 'unknown'; completed_at = '` + late + `'; outcome = 'ok'`},
	{"cancelled while it ran, at once", "running", `status = 'cancelled'; completed_at = '` + late + `'; outcome = 'ok'`},
	{"in no state", "pending", `status = 'granted'`},

	{"running, of a tool that is not registered", "running", `tool_key = 'nothing'`},
	{"running, of another definition", "running", `definition = '` + defBefore + `'`},
	{"running, of a lower class than registered", "running", `tool_key = 'peek'`},
	{"running, a write told as none", "running", `tool_key = 'deploy'`},
	{"running, a write told as reading", "running", `tool_key = 'deploy'; egress_class = 'read_only'`},
	{"running, of class write, nobody asked", "running", `tool_key = 'deploy'; egress_class = 'write'`},
	{"running, called a write, nobody asked", "running", `egress_class = 'write'`},
	{"running, called dangerous, nobody asked", "running", `dangerous = 1`},
	{"running, dangerous, nobody asked", "running", `tool_key = 'wipe'; egress_class = 'write'; dangerous = 1`},
	{"running, of a tool that asks", "running", `tool_key = 'shy'; egress_class = 'read_only'`},
	{"running, of a class that is none", "running", `egress_class = 'harmless'`},
	{"running, approved without a grant", "running", `approval_status = 'approved'; decided_by = 'alice'; decided_at = '` + now + `'; expires_at = '` + late + `'; grant_id = 'nothing'`},
	{"running, a write approved without a grant", "granted", `grant_id = 'nothing'`},
	{"running, a write approved with no word of a grant", "granted", `grant_id = ''`},
	{"running, not required, with a grant", "running", `grant_id = 'g-live'`},
	{"running, not required, in somebody's name", "running", `decided_by = 'alice'`},
	{"running, not required, at somebody's time", "running", `decided_at = '` + now + `'`},
	{"running, held by nobody", "running", `worker = ''`},
	{"running, with no fence", "running", `fence = 0; worker = ''; claimed_at = ''; lease_until = ''`},
	{"running, with another fence", "running", `fence = 2`},
	{"running, never started", "running", `started_at = ''`},
	{"running, claimed at another time", "running", `claimed_at = '` + early + `'`},
	{"running, with a lease that is over", "running", `lease_until = claimed_at`},
	{"running, ended", "running", `completed_at = '` + late + `'`},
	{"running, with an outcome", "running", `outcome = 'ok'`},
	{"running, with something to show", "running", `sealed = x'00'`},
	{"running, and asked about", "running", `asked = 'asked-new'`},

	{"with a spent grant", "granted", `grant_id = 'g-spent'`},
	{"with a revoked grant", "granted", `grant_id = 'g-revoked'`},
	{"with a grant that is over", "granted", `grant_id = 'g-short'`},
	{"with a grant, after it is over", "granted", `started_at = '` + late + `'; claimed_at = '` + late + `'; decided_at = '` + late + `'; lease_until = '` + over + `'; expires_at = '` + over + `'`},
	{"with a grant, before it was made", "granted", `requested_at = '` + early + `'; started_at = '` + early + `'; claimed_at = '` + early + `'; decided_at = '` + early + `'`},
	{"with another agent's grant", "granted", `agent = 'gone'`},
	{"with the grant of a parent", "granted", `agent = 'coder/child'`},
	{"with a grant of another tool", "granted", `tool_key = 'other'`},
	{"with a grant of another definition", "granted", `tool_key = 'moved'; definition = '` + defBefore + `'; grant_id = 'g-moved'`},
	{"with a grant of a definition that was replaced", "granted", `tool_key = 'moved'; grant_id = 'g-moved'`},
	{"with a grant of a lower class", "granted", `tool_key = 'peek'; grant_id = 'g-peek'`},
	{"dangerous, with a grant", "granted", `dangerous = 1`},
	{"with a grant in somebody else's name", "granted", `decided_by = 'bob'`},
	{"with a grant decided at another time", "granted", `decided_at = '` + early + `'`},
	{"rejected, with a grant", "granted", `approval_status = 'rejected'`},

	{"denied, and running before", "denied", `started_at = '` + now + `'`},
	{"denied, with a fence", "denied", `fence = 1`},
	{"denied, with a worker", "denied", `worker = 'w'; fence = 1; claimed_at = '` + now + `'; lease_until = '` + late + `'`},
	{"denied, claimed", "denied", `claimed_at = '` + now + `'`},
	{"denied, with a lease", "denied", `lease_until = '` + late + `'`},
	{"denied, never ended", "denied", `completed_at = ''`},
	{"denied, in somebody's name", "denied", `decided_by = 'alice'`},
	{"denied, at somebody's time", "denied", `decided_at = '` + now + `'`},
	{"denied, with somebody's words", "denied", `approval_reason = 'x'`},
	{"denied, and asked about", "denied", `asked = 'asked-new'`},
	{"denied, with something to show", "denied", `sealed = x'00'`},
	{"denied, with a grant", "denied", `grant_id = 'g-live'`},
	{"denied, and pending", "denied", `approval_status = 'pending'`},
	{"denied, measured", "denied", `measured_micros = 1`},
}

// Further ways to take a place that is taken: an id, a key, an open request, a row.
var collisions = []struct{ name, base, but string }{
	{"an id again", "running", `id = 'done'`},
	{"the id of a request", "pending", `id = 'approved'`},
	{"a call that is open again", "pending", `asked = 'asked-approved'`},
	{"a call that is asked about again", "pending", `asked = 'asked-pending'`},
	{"a key again", "running", `idempotency_key = 'key'`},
	{"a key again, pending", "pending", `idempotency_key = 'key'`},
	{"a place that is taken", "running", `n = (SELECT n FROM tool_invocations WHERE id = 'rejected')`},
	{"the last place", "running", `n = (SELECT max(n) FROM tool_invocations)`},
	{"a place far off", "running", `n = 9223372036854775807`},
	{"a place before the first", "running", `n = 0`},
	{"a place below", "running", `n = -1`},
	{"a place far below", "running", `n = -9223372036854775808`},
}

func parse(but string) map[string]string {
	out := map[string]string{"id": "'new'"}
	for pair := range strings.SplitSeq(but, "; ") {
		column, value, _ := strings.Cut(pair, " = ")
		out[column] = value
	}
	return out
}

// testBeginnings: an invocation begins in one of four ways, whatever the verb.
func (e Engine) testBeginnings(t *testing.T) {
	dir := t.TempDir()
	db := e.open(t, dir)
	scene(t, db)
	keyed := begun("keyed")
	keyed.Key = "key"
	add(t, db, keyed)
	columns := e.columns(t, dir, "tool_invocations")[1:] // it takes the next place
	numbered := append([]string{"n"}, columns...)
	fresh := map[string]string{"pending": `asked = 'asked-new'`, "running": `id = 'new'`, "granted": `id = 'new'`, "denied": `id = 'new'`}
	like := func(verb, base, but string) string {
		with := parse(fresh[base])
		maps.Copy(with, parse(but))
		if _, ok := with["n"]; ok {
			return likeRow(numbered, verb, base, with)
		}
		return likeRow(columns, verb, base, with)
	}
	e.tries(t, dir, func(try func(string, ...any) error) {
		for base, but := range fresh {
			for _, verb := range []string{"INSERT", "INSERT OR REPLACE", "INSERT OR IGNORE"} {
				if err := try(like(verb, base, but)); err != nil {
					t.Errorf("control: like %s: %v", base, err)
				}
			}
		}
		if err := try(like("INSERT", "running", `n = (SELECT max(n) + 1 FROM tool_invocations)`)); err != nil {
			t.Errorf("control: the next place: %v", err)
		}
		if err := try(like("INSERT", "denied", `idempotency_key = 'key'`)); err != nil {
			t.Errorf("control: a key in a call that was refused: %v", err)
		}
		for _, b := range slices.Concat(beginnings, collisions) {
			for _, verb := range []string{"INSERT", "INSERT OR REPLACE", "REPLACE"} {
				if try(like(verb, b.base, b.but)) == nil {
					t.Errorf("%s: went through by %s", b.name, verb)
				}
			}
		}
	})
	e.refusals(t, dir, "", func(refused func(string) string) {
		for _, b := range slices.Concat(beginnings, collisions) {
			if why := refused(like("INSERT OR IGNORE", b.base, b.but)); why != "" && why != quiet {
				t.Errorf("%s: %s by INSERT OR IGNORE", b.name, why)
			}
		}
		for _, b := range beginnings {
			if why := refused(ignoreChecks + like("INSERT", b.base, b.but)); why != "" {
				t.Errorf("%s: with checks ignored: %s", b.name, why)
			}
		}
	})
	e.refusals(t, dir, "invocations_begin grants_steps", func(refused func(string) string) {
		for _, b := range beginnings {
			if why := refused(ignoreChecks + like("INSERT", b.base, b.but)); why == "" {
				t.Errorf("%s: refused without its guard too, which therefore guards nothing here", b.name)
			}
		}
	})
}
