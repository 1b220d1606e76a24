package main

import (
	"bytes"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/need"
)

// sqlite gives the sqlite3 program a script on a database, and returns what it said.
func (w *world) sqlite(path, script string) outcome {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), "sqlite3", "-batch", "-bail", path)
	cmd.Env, cmd.Dir, cmd.Stdin = w.env(), w.home, strings.NewReader(script)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); cmd.ProcessState == nil {
		w.t.Fatal(err)
	}
	return outcome{cmd.ProcessState.ExitCode(), out.String(), errOut.String()}
}

// ask is what a query on the store answers.
func (w *world) ask(query string) string {
	w.t.Helper()
	o := w.sqlite(w.state("writ.db"), query+";")
	if o.code != 0 {
		w.t.Fatalf("%s: %+v", query, o)
	}
	return strings.TrimSuffix(o.out, "\n")
}

// everything is the whole content of a database.
func (w *world) everything(path string) string {
	w.t.Helper()
	o := w.sqlite(path, ".dump\n")
	if o.code != 0 || !strings.Contains(o.out, "CREATE TABLE tool_invocations") {
		w.t.Fatalf("dump: %+v", o)
	}
	return o.out
}

func (w *world) halt() {
	w.t.Helper()
	w.must("", "serve", "--stop")
	w.daemonGone()
}

// shelled is a world whose daemon is stopped: the tool look ran, publish (of class
// write) ran once by an approval and waits for another. It returns the ids of the run
// of publish that ended and of the one that waits.
func shelled(t *testing.T) (w *world, ended, waits string) {
	need.Programs(t, "sqlite3")
	w = newWorld(t, plain, "").init()
	w.place("tools/publish.yaml", definedTool("publish", "one", "write", ""))
	w.place("tools/look.yaml", definedTool("look", "seen", "none", ""))
	w.accept("publish", "look")
	w.runs("class none", "look", "seen")
	w.waitsFor("class write", "publish")
	w.must(pass+"\n", "approval", "approve", w.pending(), "--passphrase-stdin")
	if out := w.must("{}", "call", "publish", "--args", "-"); out != "one\n" {
		t.Fatalf("approved: %q", out)
	}
	if o := w.call("publish", map[string]any{}); o.code != cli.ExitPending { // an outcome is handed over once
		t.Fatalf("made again: %+v", o)
	}
	w.halt()
	ended = w.ask(`SELECT id FROM tool_invocations WHERE tool_key = 'publish' AND status = 'completed'`)
	waits = w.ask(`SELECT id FROM tool_invocations WHERE tool_key = 'publish' AND status = 'pending'`)
	if !strings.HasPrefix(ended, "call_") || !strings.HasPrefix(waits, "call_") || strings.Contains(ended+waits, "\n") {
		t.Fatalf("ended %q, waits %q", ended, waits)
	}
	return w, ended, waits
}

const (
	stepRefused  = "an invocation cannot take this step"
	beginRefused = "an invocation cannot begin so"
	stamped      = `strftime('%Y-%m-%dT%H:%M:%f000000Z', 'now')`
	later        = `strftime('%Y-%m-%dT%H:%M:%f000000Z', 'now', '+1 minute')`
)

// runAs is a script that puts in a call like the one of look, running, but for some
// columns.
func runAs(set string) string {
	return `CREATE TEMP TABLE forged AS SELECT * FROM main.tool_invocations WHERE tool_key = 'look' LIMIT 1;
UPDATE forged SET n = NULL, id = 'call_forged', status = 'running', completed_at = '', outcome = '', idempotency_key = '', measured_micros = NULL, measured_cpu_micros = NULL, result_bytes = NULL` + set + `;
INSERT INTO main.tool_invocations SELECT * FROM forged;`
}

// Whoever has the file and the sqlite3 program is refused what writ itself is (O1, O3).
func TestShellIsRefused(t *testing.T) {
	t.Parallel()
	w, ended, waits := shelled(t)
	db := w.state("writ.db")
	on := func(id, set string) string {
		return fmt.Sprintf(`UPDATE tool_invocations SET %s WHERE id = '%s';`, set, id)
	}
	approve := `status = 'running', approval_status = 'approved', decided_by = 'alice', decided_at = ` + stamped + `, started_at = ` + stamped
	asPublish := `, tool_key = 'publish', definition = (SELECT definition FROM main.tools_registry WHERE key = 'publish')`
	for _, attack := range []struct{ name, script, says string }{
		{"complete what waits", on(waits, `status = 'completed', completed_at = `+stamped+`, outcome = 'ok', sealed = NULL`), stepRefused},
		{"approve without an answer", on(waits, approve), stepRefused},
		{"approve with an answer of nobody", `INSERT INTO tool_approvals SELECT id, 'mallory', 'approve', digest, 'x', ` + stamped + `, x'00' FROM tool_invocations WHERE id = '` + waits + `';`, "this answer does not count"},
		{"approve with people of one's own (O3)", `CREATE TEMP TABLE people AS SELECT 'mallory' AS name, 'admin' AS role;
INSERT INTO main.tool_approvals SELECT id, 'mallory', 'approve', digest, 'x', ` + stamped + `, x'00' FROM main.tool_invocations WHERE id = '` + waits + `';`, "this answer does not count"},
		{"run a write unasked", runAs(asPublish + `, egress_class = 'write'`), beginRefused},
		{"run a write as if it were none", runAs(asPublish), beginRefused},
		{"run a write by a registry of one's own (O3)", `CREATE TEMP TABLE tools_registry AS SELECT * FROM main.tools_registry; UPDATE temp.tools_registry SET egress_class = 'none', requires_approval = 0;` + runAs(asPublish), beginRefused},
		{"run a write by a grant that is none", runAs(asPublish + `, egress_class = 'write', approval_status = 'approved', grant_id = 'gr_forged', decided_by = 'alice', decided_at = started_at, expires_at = lease_until`), beginRefused},
		{"run with checks ignored", `PRAGMA ignore_check_constraints = ON;` + runAs(asPublish+`, egress_class = 'write'`), beginRefused},
		{"use an approval again", on(ended, `worker = 'w_forged', fence = fence + 1, claimed_at = `+stamped+`, lease_until = `+later), stepRefused},
		{"use an approval again from the start", on(ended, `status = 'running', completed_at = '', worker = '', sealed = x'00'`), stepRefused},
		{"edit what has ended", on(ended, `outcome = 'denied'`), stepRefused},
		{"edit what was asked", on(waits, `args_sha256 = 'forged'`), stepRefused},
		{"edit with triggers not recursive", `PRAGMA recursive_triggers = OFF;` + on(ended, `result_bytes = 0`), stepRefused},
		{"delete", `DELETE FROM tool_invocations WHERE id = '` + ended + `';`, "invocations are kept"},
		{"replace", `REPLACE INTO tool_invocations SELECT * FROM tool_invocations WHERE id = '` + ended + `';`, beginRefused},
		{"lower a class", `UPDATE tools_registry SET egress_class = 'none', requires_approval = 0 WHERE key = 'publish';`, "a class is lowered by a waiver only"},
		{"forget an entry (O5)", `DELETE FROM ledger WHERE seq = (SELECT max(seq) FROM ledger);`, "the ledger is append-only"},
	} {
		before := w.everything(db)
		if o := w.sqlite(db, attack.script); o.code == 0 || !strings.Contains(o.err, attack.says) {
			t.Errorf("%s: %+v\nwant %s", attack.name, o, attack.says)
		}
		if after := w.everything(db); after != before {
			t.Errorf("%s: went through", attack.name)
		}
	}
	for name, script := range map[string]string{
		"escalate":           on(waits, `escalations = escalations + 1`),
		"cancel":             on(waits, `status = 'cancelled', completed_at = `+stamped+`, sealed = NULL`),
		"run what is free":   runAs(""),
		"answer as a person": `INSERT INTO tool_approvals SELECT id, 'alice', 'approve', digest, 'x', ` + stamped + `, x'00' FROM tool_invocations WHERE id = '` + waits + `';`,
	} {
		if o := w.sqlite(db, `BEGIN;`+script+`SELECT changes(); ROLLBACK;`); o.code != 0 || o.out != "1\n" {
			t.Errorf("control: %s: %+v", name, o)
		}
	}
	// A flag that is cleared is set again, in the same statement.
	if o := w.sqlite(db, `UPDATE tools_registry SET requires_approval = 0 WHERE key = 'publish'; SELECT requires_approval FROM tools_registry WHERE key = 'publish';`); o.out != "1\n" {
		t.Errorf("a cleared flag: %+v", o)
	}
	if got := w.pending(); got != waits {
		t.Errorf("%s waits, want %s", got, waits)
	}
	w.verifies()
}

// Without one trigger the constraints still hold; and the daemon does not start on a
// store whose rules were changed, and says which (Q, O2, O6).
func TestShellDropsGuards(t *testing.T) {
	t.Parallel()
	w, ended, waits := shelled(t)
	db, bare := w.state("writ.db"), w.state("bare.db")
	if o := w.sqlite(db, `VACUUM INTO '`+bare+`';`); o.code != 0 {
		t.Fatal(o)
	}
	drops := w.ask(`SELECT 'DROP TRIGGER ' || name || ';' FROM sqlite_schema WHERE type = 'trigger'`)
	if o := w.sqlite(bare, drops); o.code != 0 || strings.Count(drops, "\n") < 40 {
		t.Fatalf("%+v\n%s", o, drops)
	}
	for _, script := range []string{
		`UPDATE tool_invocations SET approval_status = 'not_required' WHERE id = '` + ended + `';`,
		`UPDATE tool_invocations SET egress_class = 'write' WHERE tool_key = 'look';`,
		`UPDATE tool_invocations SET dangerous = 1 WHERE tool_key = 'look';`,
		`UPDATE tool_invocations SET status = 'running' WHERE id = '` + waits + `';`,
		`UPDATE tool_invocations SET status = 'running', approval_status = 'approved', started_at = ` + stamped + ` WHERE id = '` + waits + `';`,
		`UPDATE tool_invocations SET sealed = x'00' WHERE id = '` + ended + `';`,
		`UPDATE tools_registry SET requires_approval = 0 WHERE key = 'publish';`,
		runAs(`, tool_key = 'publish', egress_class = 'write'`),
	} {
		if o := w.sqlite(bare, script); o.code == 0 || !strings.Contains(o.err, "CHECK constraint failed") {
			t.Errorf("without triggers: %+v\n%s", o, script)
		}
	}
	if o := w.sqlite(bare, `UPDATE tool_invocations SET outcome = 'forged' WHERE id = '`+ended+`'; SELECT changes();`); o.code != 0 || o.out != "1\n" {
		t.Errorf("control: the triggers are there: %+v", o)
	}

	starts := func(what, says string) {
		t.Helper()
		if o := w.run("", "serve"); o.code != 1 || !strings.Contains(o.err, says) || !strings.Contains(o.err, "restore a backup from before") {
			t.Errorf("%s: %+v\nwant %s", what, o, says)
		}
		if o := w.call("look", map[string]any{}); o.code == 0 {
			t.Errorf("%s: calls are taken: %+v", what, o)
		}
	}
	for _, guard := range []string{"invocations_begin", "invocations_steps", "trg_tools_registry_egress_guard", "tool_approvals_begin"} {
		text := w.ask(`SELECT sql FROM sqlite_schema WHERE name = '` + guard + `'`)
		w.ask(`DROP TRIGGER ` + guard)
		starts("without "+guard, `the trigger "`+guard+`" of the database is missing`)
		w.ask(text)
	}
	for name, text := range map[string]string{
		"zz_flip":  `CREATE TRIGGER zz_flip AFTER UPDATE ON tools_registry BEGIN UPDATE tools_registry SET requires_approval = 0 WHERE key = NEW.key; END`,
		"zz_agree": `CREATE TRIGGER zz_agree AFTER INSERT ON tool_invocations WHEN NEW.status = 'pending' BEGIN INSERT INTO tool_approvals VALUES (NEW.id, 'alice', 'approve', NEW.digest, 'x', NEW.requested_at, x'00'); END`,
	} {
		w.ask(text)
		starts("with "+name, `the trigger "`+name+`" of the database was not made by writ`)
		w.ask(`DROP TRIGGER ` + name)
	}
	w.runs("control: all guards are back", "look", "seen")
	w.verifies()
}

// SQL in names, keys and reasons is text like any other (O7).
func TestShellFindsNoInjection(t *testing.T) {
	t.Parallel()
	w, _, waits := shelled(t)
	const key, reason = `k'; UPDATE people SET role = 'admin'; --`, `no'); DELETE FROM tool_invocations; DROP TRIGGER invocations_keep; --`
	schema := w.ask(`SELECT count(*), sum(length(sql)) FROM sqlite_schema`)
	calls := w.ask(`SELECT count(*) FROM tool_invocations`)
	for _, name := range []string{`x'; DROP TABLE tool_invocations; --`, `look' OR '1'='1`, "look\x01", `look"; DELETE FROM ledger; --`} {
		if o := w.run("{}", "call", name, "--no-wait", "--args", "-"); o.code == 0 {
			t.Errorf("a tool named %q ran: %+v", name, o)
		}
	}
	for range 2 {
		if o := w.run("{}", "call", "look", "--key", key, "--args", "-"); o.code != 0 || o.out != "seen\n" {
			t.Errorf("a call with a key: %+v", o)
		}
	}
	w.must(pass+"\n", "approval", "reject", waits, "--reason", reason, "--passphrase-stdin")
	if o := w.run("", "approval", "show", `x' OR '1'='1`); o.code == 0 {
		t.Errorf("an id that is SQL finds something: %+v", o)
	}
	w.verifies()
	w.halt()
	for query, want := range map[string]string{
		`SELECT count(*), sum(length(sql)) FROM sqlite_schema`:                                                         schema,
		`SELECT count(*) > ` + calls + ` FROM tool_invocations`:                                                        "1",
		`SELECT count(*) FROM tool_invocations WHERE idempotency_key LIKE 'k''; UPDATE people%'`:                       "1",
		`SELECT idempotency_key FROM tool_invocations WHERE idempotency_key LIKE 'k''%'`:                               key,
		`SELECT approval_reason FROM tool_invocations WHERE id = '` + waits + `'`:                                      reason,
		`SELECT group_concat(name || ' ' || role) FROM people`:                                                         "alice admin",
		`SELECT count(*) FROM tool_invocations WHERE status NOT IN ('denied') AND tool_key NOT IN ('look', 'publish')`: "0",
	} {
		if got := w.ask(query); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}
