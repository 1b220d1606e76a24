package storetest

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// onRow is a raw statement on one invocation.
func onRow(id, set string) string {
	return fmt.Sprintf(`UPDATE tool_invocations SET %s WHERE id = '%s'`, set, id)
}

// step is a legal step, as a raw statement; free names the columns that may change with
// it as somebody likes.
type step struct{ from, name, set, free string }

const (
	toRunning  = `status = 'running', approval_status = 'approved', decided_by = 'alice', decided_at = '` + now + `', started_at = '` + now + `'`
	toRejected = `status = 'rejected', approval_status = 'rejected', decided_by = 'bob', decided_at = '` + now + `', completed_at = '` + now + `', sealed = NULL`
	toExpired  = `status = 'expired', approval_status = 'expired', completed_at = '` + over + `', sealed = NULL`
	toEnd      = `completed_at = '` + over + `', outcome = 'so', sealed = NULL`
	toClaimed  = `worker = 'x', fence = fence + 1, claimed_at = '` + noon + `', lease_until = '` + over + `'`
	measured   = "measured_micros measured_cpu_micros result_bytes"
)

// steps are all the legal ones.
var steps = func() []step {
	out := []step{
		{"voted", "approve", toRunning, ""},
		{"voted", "reject", toRejected, "approval_reason outcome"},
		{"released", "claim again", toClaimed, ""},
		{"approved", "claim", toClaimed, ""},
		{"held", "release", `worker = ''`, ""},
	}
	for _, id := range []string{"pending", "voted", "two"} {
		out = append(out, step{id, "escalate", `escalations = escalations + 1`, ""}, step{id, "expire", toExpired, "outcome"},
			step{id, "cancel", `status = 'cancelled', ` + toEnd, "replaced_by"})
	}
	for _, id := range []string{"approved", "released"} {
		out = append(out, step{id, "withdraw", `status = 'cancelled', ` + toEnd, ""})
	}
	for _, id := range []string{"claimed", "held", "running", "granted"} {
		out = append(out, step{id, "renew", `lease_until = '` + over + `'`, ""})
		for _, end := range []string{"completed", "failed", "cancelled", "unknown"} {
			out = append(out, step{id, "end as " + end, `status = '` + end + `', ` + toEnd, measured})
		}
	}
	return out
}()

// lives are the names of all invocations in a scene that steps are tried on.
var lives = []string{"pending", "voted", "two", "approved", "claimed", "held", "released", "completed", "failed", "stopped", "unknown", "rejected", "expired",
	"void", "withdrawn", "lapsed", "running", "done", "denied", "granted"}

// tries runs statements on one connection, each undone after, and calls back with what
// came of it. They are prepared once: there are thousands, and few texts.
func (e Engine) tries(t *testing.T, dir string, f func(try func(text string, args ...any) error)) {
	t.Helper()
	e.alone(t, dir, func(c *sql.Conn, _ func(string) error) {
		stmts := map[string]*sql.Stmt{}
		run := func(text string, args ...any) (sql.Result, error) {
			if stmts[text] == nil {
				stmt, err := c.PrepareContext(t.Context(), text)
				if err != nil {
					return nil, err
				}
				stmts[text] = stmt
			}
			return stmts[text].ExecContext(t.Context(), args...)
		}
		must := func(text string) {
			if _, err := run(text); err != nil {
				t.Fatal(err)
			}
		}
		f(func(text string, args ...any) error {
			must("SAVEPOINT attempt")
			res, err := run(text, args...)
			if err == nil {
				if n, _ := res.RowsAffected(); n != 1 {
					t.Errorf("it changed %d rows, and was not refused: %s %q", n, text, args)
				}
			}
			must("ROLLBACK TO attempt")
			must("RELEASE attempt")
			return err
		})
		for _, stmt := range stmts {
			stmt.Close()
		}
	})
}

// testSteps tries, from every state, every status with every approval status and every
// holder: what is not one of the legal steps is refused by the database.
func (e Engine) testSteps(t *testing.T) {
	dir := t.TempDir()
	scene(t, e.open(t, dir))
	open := map[string]string{"pending": "pending", "voted": "pending", "two": "pending", "approved": "approved", "claimed": "approved", "held": "approved", "released": "approved",
		"running": "not_required", "granted": "approved"}
	held := map[string]bool{"claimed": true, "held": true, "running": true, "granted": true}
	waits := func(from string) bool { return open[from] == "pending" }
	legal := func(from, status, approval, worker string, fence int) bool {
		same := worker == "" && !held[from] && fence == 0 || worker == "w" && held[from] && fence == 0
		switch {
		case open[from] == "":
			return false
		case status == "pending":
			return waits(from) && approval == "pending" && same
		case status == "running" && waits(from):
			return from == "voted" && approval == "approved" && same
		case status == "running" && held[from]:
			return approval == open[from] && (same || from == "held" && worker == "" && fence == 0)
		case status == "running":
			return approval == open[from] && worker != "" && fence == 1
		case status == "rejected":
			return from == "voted" && approval == "rejected" && same
		case status == "expired":
			return waits(from) && approval == "expired" && same
		case status == "cancelled":
			return approval == open[from] && same
		case status == "denied":
			return false
		}
		return held[from] && approval == open[from] && same // completed, failed, unknown
	}
	found := 0
	e.tries(t, dir, func(try func(string, ...any) error) {
		for _, from := range lives {
			for _, status := range []string{"pending", "running", "completed", "failed", "rejected", "expired", "cancelled", "unknown", "denied"} {
				for _, approval := range []string{"not_required", "pending", "approved", "rejected", "expired"} {
					for _, worker := range []string{"", "w", "x"} {
						for fence := -1; fence < 2; fence++ {
							to := func(more string) error {
								return try(`UPDATE tool_invocations SET status = $1, approval_status = $2, worker = $3, fence = fence + $4`+more+` WHERE id = $5`, status, approval, worker, fence, from)
							}
							want := legal(from, status, approval, worker, fence)
							err := to(along(status, waits(from), held[from], worker))
							if (err == nil) != want {
								t.Errorf("%s → %s, %s, held by %q, fence %+d: legal %v, answer: %v", from, status, approval, worker, fence, want, err)
							}
							if want {
								found++
							}
							if err := to(""); err == nil && !(want && (from == "held" && worker == "" || from == "released")) {
								t.Errorf("%s → %s, %s, held by %q, fence %+d, and nothing else: went through", from, status, approval, worker, fence)
							}
						}
					}
				}
			}
		}
	})
	// 3 waiting × (pending, expired, cancelled), approve, reject; 2 approved ×
	// (claimed by w, by x, cancelled); 4 held × (renewed and 4 ends), release.
	if found != 38 {
		t.Errorf("%d legal steps, want 38", found)
	}
}

// along is what else a step to a status has to set to be legal.
func along(status string, waits, held bool, worker string) string {
	_, running, _ := strings.Cut(toRunning, ", approval_status = 'approved'")
	_, rejected, _ := strings.Cut(toRejected, ", approval_status = 'rejected'")
	switch {
	case status == "pending":
		return `, escalations = escalations + 1`
	case status == "running" && waits:
		return running
	case status == "running" && held && worker == "":
		return ""
	case status == "running" && held:
		return `, lease_until = '` + over + `'`
	case status == "running":
		return `, claimed_at = '` + noon + `', lease_until = '` + over + `'`
	case status == "rejected":
		return rejected
	case status == "expired":
		return `, completed_at = '` + over + `', sealed = NULL`
	}
	return ", " + toEnd
}

// testColumns changes every column: alone, in every state; and together with every
// legal step, which is then no longer legal.
func (e Engine) testColumns(t *testing.T) {
	dir := t.TempDir()
	scene(t, e.open(t, dir))
	columns := e.columns(t, dir, "tool_invocations")
	if len(columns) < 46 {
		t.Fatalf("only %d columns: %v", len(columns), columns)
	}
	alone := map[string]bool{}
	for _, s := range steps {
		if !strings.Contains(s.set, ",") {
			column, _, _ := strings.Cut(s.set, " = ")
			alone[s.from+" "+column] = true
		}
	}
	e.tries(t, dir, func(exec func(string, ...any) error) {
		try := func(id, set string) error { return exec(`UPDATE tool_invocations SET `+set+` WHERE id = $1`, id) }
		for _, id := range lives {
			for _, column := range columns {
				if err := try(id, other(column)); (err == nil) != alone[id+" "+column] {
					t.Errorf("%s of %s alone: legal %v, answer: %v", column, id, alone[id+" "+column], err)
				}
			}
		}
		for _, s := range steps {
			if err := try(s.from, s.set); err != nil {
				t.Errorf("control: %s of %s: %v", s.name, s.from, err)
			}
			for _, column := range columns {
				if strings.Contains(", "+s.set, ", "+column+" = ") {
					continue
				}
				err := try(s.from, s.set+", "+other(column))
				if want := slices.Contains(strings.Fields(s.free), column); (err == nil) != want {
					t.Errorf("%s of %s with %s: legal %v, answer: %v", s.name, s.from, column, want, err)
				}
			}
		}
	})
}

// columns are the names of a table's.
func (e Engine) columns(t *testing.T, dir, table string) []string {
	t.Helper()
	rows, err := e.Raw(t, dir).QueryContext(t.Context(), "SELECT * FROM "+table+" WHERE 1 = 0")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// other is a column set to what it is not.
func other(column string) string {
	switch column {
	case "worker":
		return `worker = CASE worker WHEN '' THEN 'x' ELSE '' END`
	case "sealed":
		return `sealed = x'00'`
	case "egress_class":
		return `egress_class = CASE egress_class WHEN 'none' THEN 'read_only' ELSE 'none' END`
	case "dangerous", "reads":
		return column + ` = 1 - ` + column
	case "status":
		return `status = CASE status WHEN 'running' THEN 'completed' ELSE 'running' END`
	case "approval_status":
		return `approval_status = CASE approval_status WHEN 'approved' THEN 'not_required' ELSE 'approved' END`
	case "n":
		return `n = n + 1000`
	case "args_bytes", "quorum", "escalations", "fence":
		return column + ` = ` + column + ` + 1`
	case "measured_micros", "measured_cpu_micros", "result_bytes", "cost_estimate":
		return column + ` = coalesce(` + column + `, 0) + 1`
	}
	return column + ` = 'z'` // after every time
}
