package sqlite_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/store/storetest"
)

// TestEveryGuardIsTried: each trigger on the tables of tools, invocations, egress and
// webhooks stops something that the suite tries.
func TestEveryGuardIsTried(t *testing.T) {
	dir := t.TempDir()
	shut(t, dir)
	tried, n := storetest.Tried(), 0
	rows, err := raw(t, dir).QueryContext(t.Context(), `SELECT name FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN
		('tools_registry', 'class_waivers', 'tool_invocations', 'tool_approvals', 'grants', 'invocation_results', 'invocation_resolutions', 'invocation_keys', 'egress_events', 'webhooks', 'sandboxes')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if n++; !tried[name] {
			t.Errorf("nothing is tried without the trigger %s", name)
		}
	}
	if n < 27 {
		t.Errorf("only %d triggers were found", n)
	}
}

// listener is the engine, and remembers the statements that it is given.
type listener struct {
	driver driver.Driver
	path   string
	mu     sync.Mutex
	heard  []string
}

func (l *listener) Driver() driver.Driver { return l.driver }

func (l *listener) Connect(context.Context) (driver.Conn, error) {
	c, err := l.driver.Open("file:" + l.path)
	return &ear{c, l}, err
}

func (l *listener) hear(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, text)
}

type ear struct {
	driver.Conn
	l *listener
}

func (e *ear) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	e.l.hear(text)
	return e.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, text)
}

func (e *ear) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	e.l.hear(text)
	return e.Conn.(driver.QueryerContext).QueryContext(ctx, text, args)
}

func (e *ear) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	e.l.hear(text)
	return e.Conn.(driver.ExecerContext).ExecContext(ctx, text, args)
}

// looks are what the daemon asks for every call, or now and then, each with how the
// engine is to find it. The indexes that are scanned hold only what is open.
var looks = []struct {
	name string
	f    func(*store.DB, *store.Tx) error
	want []string
}{
	{"one", func(db *store.DB, _ *store.Tx) error {
		_, _, err := db.Invocation(context.Background(), "x")
		return err
	}, []string{"SEARCH tool_invocations USING INDEX sqlite_autoindex_tool_invocations_1 (id=?)"}},
	{"one to answer", func(db *store.DB, _ *store.Tx) error {
		_, _, err := db.AskedInvocation(context.Background(), "x")
		return err
	}, []string{"SEARCH tool_invocations USING INDEX sqlite_autoindex_tool_invocations_1 (id=?)"}},
	{"the entries about a call", func(db *store.DB, _ *store.Tx) error {
		_, err := db.OfCall(context.Background(), "x")
		return err
	}, []string{"SEARCH ledger USING INTEGER PRIMARY KEY (rowid=?); LIST SUBQUERY 1; SEARCH ledger_calls USING PRIMARY KEY (call=?)"}},
	{"the first entry about a call", func(db *store.DB, _ *store.Tx) error {
		_, err := db.FirstOf(context.Background(), "x")
		return err
	}, []string{"SEARCH ledger_calls USING PRIMARY KEY (call=?)"}},
	{"the open one", func(db *store.DB, _ *store.Tx) error {
		_, _, err := db.OpenInvocation(context.Background(), "x")
		return err
	}, []string{"SEARCH tool_invocations USING INDEX invocations_open (asked=?)"}},
	{"what there is", func(db *store.DB, _ *store.Tx) error {
		_, err := db.There(context.Background(), "x", "a", "x")
		return err
	}, []string{"INDEX invocations_open (asked=?); SCALAR SUBQUERY 2; SEARCH invocation_results USING COVERING INDEX invocation_results_waiting (asked=?); SCALAR SUBQUERY 3; SEARCH grants USING COVERING INDEX grants_live (agent=? AND tool_key=?)"}},
	{"whether it is open", func(_ *store.DB, tx *store.Tx) error { _, err := tx.IsOpen("x"); return err }, []string{"SEARCH tool_invocations USING COVERING INDEX invocations_open (asked=?)"}},
	{"by its key", func(db *store.DB, _ *store.Tx) error {
		_, _, err := db.KeyedInvocation(context.Background(), "a", "x")
		return err
	}, []string{"SEARCH tool_invocations USING INDEX invocations_key (agent=? AND idempotency_key=?)"}},
	{"whether its key is free", func(_ *store.DB, tx *store.Tx) error { _, _, _, err := tx.Keyed("a", "x"); return err }, []string{"SEARCH tool_invocations USING INDEX invocations_key (agent=? AND idempotency_key=?)"}},
	{"the sweep", func(db *store.DB, _ *store.Tx) error {
		_, err := db.OverInvocations(context.Background(), "2026")
		return err
	}, []string{
		"SCAN tool_invocations USING INDEX invocations_pending", "SCAN tool_invocations USING INDEX invocations_running"}},
	{"the unclaimed", func(db *store.DB, _ *store.Tx) error {
		_, err := db.UnclaimedInvocations(context.Background())
		return err
	}, []string{
		"SCAN tool_invocations USING INDEX invocations_running", "SCAN tool_invocations USING INDEX invocations_running"}},
	{"the held", func(db *store.DB, _ *store.Tx) error {
		_, err := db.HeldInvocations(context.Background(), "x")
		return err
	}, []string{"SCAN tool_invocations USING INDEX invocations_running"}},
	{"the waiting", func(db *store.DB, _ *store.Tx) error {
		_, err := db.PendingInvocations(context.Background(), "x")
		return err
	}, []string{"SCAN tool_invocations USING INDEX invocations_pending"}},
	{"how many wait", func(_ *store.DB, tx *store.Tx) error { _, _, err := tx.There("x", "a", "x"); return err }, []string{"INDEX invocations_pending_agent"}},
	{"how many were asked", func(_ *store.DB, tx *store.Tx) error { _, err := tx.Asked("a", "2026"); return err }, []string{
		"INDEX invocations_asked (agent=? AND requested_at>?)", "INDEX invocations_asked (agent>? AND agent<?)"}},
	{"a claim", func(_ *store.DB, tx *store.Tx) error {
		_, _, err := tx.ClaimInvocation("x", "", "w", "2026", "2027")
		return err
	}, []string{
		"SEARCH tool_invocations USING INDEX sqlite_autoindex_tool_invocations_1 (id=?); CORRELATED SCALAR SUBQUERY 1; SEARCH r USING PRIMARY KEY (key=?)"}},
	{"a renewal", func(_ *store.DB, tx *store.Tx) error { return tx.RenewInvocations("x", "2026") }, []string{"SCAN tool_invocations USING INDEX invocations_running"}},
	{"a stop", func(_ *store.DB, tx *store.Tx) error {
		_, err := tx.CancelInvocations("x", "", "", "stopped", "2026")
		return err
	}, []string{"SCAN tool_invocations USING INDEX invocations_pending", "SCAN tool_invocations USING INDEX invocations_running"}},
	{"live grants", func(db *store.DB, _ *store.Tx) error {
		_, err := db.LiveGrants(context.Background(), "a", "x", "2026")
		return err
	}, []string{"SEARCH grants USING INDEX grants_live (agent=? AND tool_key=?)"}},
	{"an outcome", func(db *store.DB, _ *store.Tx) error {
		_, _, err := db.Undelivered(context.Background(), "x")
		return err
	}, []string{"SEARCH invocation_results USING INDEX invocation_results_waiting (asked=?)"}},
	{"old outcomes", func(_ *store.DB, tx *store.Tx) error { return tx.DropResults("2026") }, []string{"SEARCH invocation_results USING INDEX invocation_results_age (kept_at<?)"}},
	{"a page", page(""), []string{"SEARCH tool_invocations USING INTEGER PRIMARY KEY (rowid<?)"}},
	{"a page of what waits", page("pending"), []string{"SEARCH tool_invocations USING INDEX invocations_pending (n<?)"}},
	{"a page of what runs", page("running"), []string{"SEARCH tool_invocations USING INDEX invocations_running (n<?)"}},
	{"a page of what is unknown", page("unknown"), []string{"SEARCH tool_invocations USING INDEX invocations_unknown (n<?)"}},
	{"how many wait", func(db *store.DB, _ *store.Tx) error { _, err := db.Waiting(context.Background(), "2026"); return err }, []string{"INDEX invocations_pending"}},
	{"a page of what left", left(store.EgressOf{}), []string{"SEARCH egress_events USING INTEGER PRIMARY KEY (rowid<?)", "SEARCH egress_events USING INTEGER PRIMARY KEY (rowid>?)"}},
	{"of a call", left(store.EgressOf{Call: "x"}), []string{"SEARCH egress_events USING INDEX egress_call (call=? AND rowid<?)", "SEARCH egress_events USING INDEX egress_call (call=? AND rowid>?)"}},
	{"of an agent", left(store.EgressOf{Agent: "x"}), []string{"SEARCH egress_events USING INDEX egress_agent (agent=? AND rowid<?)", "SEARCH egress_events USING INDEX egress_agent (agent=? AND rowid>?)"}},
	{"of what was refused", left(store.EgressOf{Refused: true}), []string{"SEARCH egress_events USING INDEX egress_refused (n<?)", "SEARCH egress_events USING INDEX egress_refused (n>?)"}},
	{"of what a call was refused", left(store.EgressOf{Call: "x", Agent: "x", Refused: true}), []string{"SEARCH egress_events USING INDEX egress_call (call=? AND rowid<?)"}},
}

func page(state string) func(*store.DB, *store.Tx) error {
	return func(db *store.DB, _ *store.Tx) error {
		_, err := db.InvocationsBefore(context.Background(), store.InvocationsOf{State: state, Now: "2026"}, 0, 10)
		return err
	}
}

func left(of store.EgressOf) func(*store.DB, *store.Tx) error {
	return func(db *store.DB, _ *store.Tx) error {
		_, back := db.EgressBefore(context.Background(), of, 0, 10)
		_, forward := db.EgressAfter(context.Background(), of, 1, 10)
		return errors.Join(back, forward)
	}
}

// TestPlans: none of them goes through all invocations, however many there are, with and
// without what ANALYZE leaves.
func TestPlans(t *testing.T) {
	dir := t.TempDir()
	shut(t, dir)
	other := raw(t, dir)
	other.SetMaxOpenConns(1)
	fillUp(t, other)
	l := &listener{driver: other.Driver(), path: filepath.Join(dir, sqlite.Name)}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			mustExec(t, other, `ANALYZE`)
		}
		for _, look := range looks {
			var got []string
			for _, text := range listen(t, l, look.f) {
				got = append(got, plan(t, other, text))
			}
			if len(got) < len(look.want) {
				t.Errorf("%s: only %q were asked", look.name, got)
				continue
			}
			for i, want := range look.want {
				if !strings.Contains(got[i], want) {
					t.Errorf("%s, analyzed %v: %s\nwant %s", look.name, analyzed, got[i], want)
				}
			}
		}
		if got := plan(t, other, `SELECT * FROM tool_invocations WHERE agent = 'x'`); got != "SCAN tool_invocations" {
			t.Errorf("control: a full scan shows as %s", got)
		}
	}
}

// listen is what the store asks the engine to do something.
func listen(t *testing.T, l *listener, f func(*store.DB, *store.Tx) error) []string {
	t.Helper()
	db, err := store.New(t.Context(), sql.OpenDB(l), store.Options{Refused: func(error) bool { return false }, Explain: func(err error) error { return err }, Release: func() error { return nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() // another one knows no statement yet
	tx, err := db.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l.heard = nil
	err = f(db, tx)
	heard := l.heard
	if err := errors.Join(err, tx.Rollback()); err != nil {
		t.Fatal(err)
	}
	return heard
}

// fillUp puts two thousand ended calls beside a few open ones, and what the first of them
// did outside.
func fillUp(t *testing.T, db *sql.DB) {
	t.Helper()
	var guard string
	if err := db.QueryRowContext(t.Context(), `SELECT sql FROM sqlite_schema WHERE name = 'invocations_begin'`).Scan(&guard); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, `DROP TRIGGER invocations_begin`)
	for _, row := range []struct {
		n                                                int
		id, asked, status, approval, ended, worker, seal string
	}{
		{2000, "done", "''", "completed", "not_required", "2026", "w", "NULL"},
		{10, "run", "''", "running", "not_required", "", "w", "NULL"},
		{10, "wait", "'asked' || value", "pending", "pending", "", "", "x'01'"},
	} {
		mustExec(t, db, fmt.Sprintf(`INSERT INTO tool_invocations (id, tool_key, definition, agent, acts_for, token, session, task, door, action, risk, egress_class, dangerous, reads,
			args_sha256, args_bytes, idempotency_key, asked, subject, digest, quorum, not_by, edit_of, requested_at, expires_at, status, approval_status, approval_reason,
			escalations, decided_at, decided_by, grant_id, started_at, claimed_at, completed_at, worker, fence, lease_until, outcome, replaced_by, sealed)
			SELECT '%s' || value, 'lookup', '', 'a' || value %% 7, '', '', '', '', '', '', '', 'none', 0, 1,
			'', 0, '', %s, 's', 'd', 1, '', '', '2026-01-01', '2026-01-03', '%s', '%s', '',
			0, '', '', '', '2026-01-02', '2026-01-02', '%s', '%s', 1, '2026-01-03', '', '', %s
			FROM (WITH RECURSIVE c (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM c WHERE value < %d) SELECT value FROM c)`,
			row.id, row.asked, row.status, row.approval, row.ended, row.worker, row.seal, row.n))
	}
	mustExec(t, db, guard)
	mustExec(t, db, `INSERT INTO egress_events (n, at, call, agent, kind, host, address, verdict, address_class, rule, detail, sent, received, micros)
		SELECT n, requested_at, 'done' || n / 10, agent, 'dns', 'h', '', iif(n % 50, 'allowed', 'host_not_allowed'), '', '', '', 0, 0, 0 FROM tool_invocations WHERE n <= 1000 ORDER BY n`)
}

func plan(t *testing.T, db *sql.DB, ask string) string {
	t.Helper()
	args := make([]any, 0, 9)
	for i := range 9 {
		if strings.Contains(ask, fmt.Sprintf("$%d", i+1)) {
			args = append(args, "1")
		}
	}
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+ask, args...)
	if err != nil {
		t.Fatalf("%s: %v", ask, err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		out = append(out, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(out, "; ")
}
