package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/store/storetest"
)

// The test program is also the other process: it opens the store that
// WRIT_TEST_HOLD names, says so, and stays until it is killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("WRIT_TEST_HOLD"); dir != "" {
		if _, err := sqlite.Open(context.Background(), dir); err != nil {
			fmt.Println("refused:", err, errors.Is(err, store.ErrLocked))
			os.Exit(1)
		}
		fmt.Println("open")
		time.Sleep(time.Minute)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// hold starts the other process, and returns it with the first line it said.
func hold(t *testing.T, dir string) (*exec.Cmd, string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "WRIT_TEST_HOLD="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return cmd, strings.TrimSpace(line)
}

func open(t *testing.T, dir string) *store.DB {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// shut opens and closes a store, so that there is a file to attack.
func shut(t *testing.T, dir string) {
	t.Helper()
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOneProcess(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	if _, err := sqlite.Open(t.Context(), dir); !errors.Is(err, store.ErrLocked) {
		t.Errorf("a second opening in this process: %v", err)
	}
	if _, said := hold(t, dir); said != "refused: "+store.ErrLocked.Error()+" true" {
		t.Errorf("another process: %s", said)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	other, said := hold(t, dir)
	if said != "open" {
		t.Fatalf("control: the lock was not given up: %s", said)
	}
	if _, err := sqlite.Open(t.Context(), dir); !errors.Is(err, store.ErrLocked) {
		t.Errorf("while another process has it: %v", err)
	}
	if err := other.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	other.Wait()
	shut(t, dir) // a killed holder leaves no lock
}

func TestFilesAreOurs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	db := open(t, dir)
	defer db.Close()
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 4 { // database, wal, shm, lock
		t.Fatal(files, err)
	}
	for _, f := range append([]string{"."}, names(files)...) {
		info, err := os.Stat(filepath.Join(dir, f))
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s can be reached by others: %v, %v", f, info.Mode(), err)
		}
	}
}

func names(files []os.DirEntry) (out []string) {
	for _, f := range files {
		out = append(out, f.Name())
	}
	return out
}

func TestNewerSchemaIsRefused(t *testing.T) {
	dir := t.TempDir()
	shut(t, dir)
	mustExec(t, raw(t, dir), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
	if _, err := sqlite.Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "schema version 99") || !strings.Contains(err.Error(), "at least as new") {
		t.Errorf("opened: %v", err)
	}
}

func TestNotADatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, sqlite.Name), bytes.Repeat([]byte("garbage "), 1000), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second shows that the first gave the lock back
		if _, err := sqlite.Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("opened: %v", err)
		}
	}
}

func mustExec(t *testing.T, db *sql.DB, text string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// TestAlteredSchemaIsRefused: what a holder of the file can do to the rules (O2,
// O6) keeps the store closed, and names what was changed.
func TestAlteredSchemaIsRefused(t *testing.T) {
	rewrite := func(name, from, to string) string {
		return fmt.Sprintf(`PRAGMA writable_schema = 1; UPDATE sqlite_schema SET sql = replace(sql, '%s', '%s') WHERE name = '%s'`, from, to, name)
	}
	for _, row := range []struct{ name, sql, says string }{
		{"drop a trigger", `DROP TRIGGER invocations_keep`, `trigger "invocations_keep" of the database is missing`},
		{"drop the guard of the class", `DROP TRIGGER trg_tools_registry_egress_guard`, `trigger "trg_tools_registry_egress_guard" of the database is missing`},
		{"drop the last guard of the ledger", `DROP TRIGGER ledger_append_only_insert`, `trigger "ledger_append_only_insert" of the database is missing`},
		{"weaken a trigger", `DROP TRIGGER invocations_keep; CREATE TRIGGER invocations_keep BEFORE DELETE ON tool_invocations WHEN OLD.status = 'pending' BEGIN SELECT RAISE(ABORT, 'invocations are kept'); END`, `trigger "invocations_keep" of the database is not as writ made it`},
		{"move a trigger to another table", `DROP TRIGGER invocations_keep; CREATE TRIGGER invocations_keep BEFORE DELETE ON people BEGIN SELECT RAISE(ABORT, 'invocations are kept'); END`, `trigger "invocations_keep" of the database is not as writ made it`},
		{"add a trigger to our table", `CREATE TRIGGER zz AFTER INSERT ON tool_invocations BEGIN DELETE FROM stops; END`, `trigger "zz" of the database was not made by writ`},
		{"flip a flag back", `CREATE TRIGGER zz AFTER UPDATE ON tools_registry BEGIN UPDATE tools_registry SET requires_approval = 0 WHERE key = NEW.key; END`, `trigger "zz" of the database was not made by writ`},
		{"hide a trigger behind ANALYZE's name", `CREATE TRIGGER zz AFTER INSERT ON tool_invocations BEGIN DELETE FROM stops; END; PRAGMA writable_schema = 1; UPDATE sqlite_schema SET name = 'sqlite_stat1', sql = replace(sql, 'zz', 'sqlite_stat1') WHERE name = 'zz'`, `database`},
		{"drop the index that keeps one open request", `DROP INDEX invocations_open`, `index "invocations_open" of the database is missing`},
		{"make it no longer unique", `DROP INDEX invocations_open; CREATE INDEX invocations_open ON tool_invocations (asked) WHERE asked <> '' AND status IN ('pending', 'running')`, `index "invocations_open" of the database is not as writ made it`},
		{"make it unique elsewhere", `DROP INDEX invocations_key; CREATE UNIQUE INDEX invocations_key ON tool_invocations (agent, idempotency_key, id) WHERE idempotency_key <> '' AND status <> 'denied'`, `index "invocations_key" of the database is not as writ made it`},
		{"remove a check", rewrite("people", "CHECK (role IN (''viewer'', ''approver'', ''operator'', ''admin''))", ""), `table "people" of the database is not as writ made it`},
		{"let a write run unasked", rewrite("tool_invocations", "(egress_class <> ''write'' AND dangerous = 0)", "1"), `table "tool_invocations" of the database is not as writ made it`},
		{"add a state", rewrite("tool_invocations", "OR status = ''denied''),", "OR status = ''denied'' OR status = ''x''),"), `table "tool_invocations" of the database is not as writ made it`},
		{"add a column", `ALTER TABLE tool_invocations ADD COLUMN extra TEXT`, `table "tool_invocations" of the database is not as writ made it`},
		{"replace a table by a view", `ALTER TABLE stops RENAME TO stops2; CREATE VIEW stops AS SELECT * FROM stops2 WHERE 0`, `table "stops" of the database is missing`},
		{"add a table", `CREATE TABLE extra (x)`, `table "extra" of the database was not made by writ`},
		{"control: nothing", `SELECT 1`, ``},
		{"control: analyze", `ANALYZE`, ``},
		{"control: vacuum", `VACUUM`, ``},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			shut(t, dir)
			other := raw(t, dir)
			mustExec(t, other, row.sql)
			if err := other.Close(); err != nil {
				t.Fatal(err)
			}
			db, err := sqlite.Open(t.Context(), dir)
			if err == nil {
				defer db.Close()
			}
			if row.says == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), row.says) {
				t.Errorf("opened: %v", err)
			}
		})
	}
}

func appendTo(t *testing.T, l *ledger.Ledger, kind string) error {
	t.Helper()
	return l.Append(t.Context(), ledger.Entry{Kind: kind})
}

func openLedger(t *testing.T, db *store.DB, witness string) *ledger.Ledger {
	t.Helper()
	l, err := ledger.Open(t.Context(), db, ledger.Options{Key: ed25519.NewKeyFromSeed(make([]byte, 32)), Witness: witness})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLockedByAnother: somebody sits on the database with the sqlite3 shell.
func TestLockedByAnother(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	defer db.Close()
	l := openLedger(t, db, filepath.Join(dir, "witness.jsonl"))
	defer l.Close()
	if err := appendTo(t, l, "before"); err != nil {
		t.Fatal(err)
	}
	other := raw(t, dir)
	other.SetMaxOpenConns(1)
	mustExec(t, other, `PRAGMA busy_timeout = 5000; BEGIN EXCLUSIVE`)
	err := appendTo(t, l, "during")
	if _, msg := writ.Public(err); writ.KindOf(err) != writ.StoreUnavailable || !strings.Contains(msg, "another program holds the database locked") {
		t.Errorf("while it is locked: %v", err)
	}
	mustExec(t, other, `ROLLBACK`)
	waitFor(t, func() bool { return appendTo(t, l, "after") == nil })
	r, err := l.Verify(t.Context(), filepath.Join(dir, "witness.jsonl"), "")
	if err != nil || !r.OK() {
		t.Fatal(r, err)
	}
	for e, err := range db.Entries(t.Context()) {
		if err != nil || e.Kind == "during" {
			t.Errorf("what was refused is recorded: %+v, %v", e, err)
		}
	}
}

// waitFor waits for what another goroutine or process brings about.
func waitFor(t *testing.T, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it did not happen in ten seconds")
		}
	}
}

// TestFullDisk: L, disk full. The store refuses, says why, keeps what it had, and
// goes on when there is room again. The witness is on the same disk, and on another.
func TestFullDisk(t *testing.T) {
	for _, same := range []bool{true, false} {
		t.Run(fmt.Sprintf("witness on it %v", same), func(t *testing.T) {
			dir := storetest.SmallDisk(t, 6<<20)
			witness := filepath.Join(t.TempDir(), "witness.jsonl")
			if same {
				witness = filepath.Join(dir, "witness.jsonl")
			}
			db := open(t, dir)
			defer db.Close()
			l := openLedger(t, db, witness)
			defer l.Close()
			filler := filepath.Join(dir, "filler")
			taken := 0
			for round := range 5 {
				if err := appendTo(t, l, "control"); err != nil {
					t.Fatal(err)
				}
				taken++
				storetest.Fill(t, filler, round*7<<10)
				var err error
				for end := time.Now().Add(10 * time.Second); err == nil && time.Now().Before(end); {
					if err = appendTo(t, l, "filling"); err == nil {
						taken++
					}
				}
				if round%2 == 1 { // let the signer meet it too
					if _, err := l.Verify(t.Context(), witness, ""); err != nil && !strings.Contains(err.Error(), "full") && !errors.Is(err, syscall.ENOSPC) {
						t.Errorf("verifying on a full disk: %v", err)
					}
				}
				for range 50 { // it stays refused, and stays itself
					if err == nil {
						t.Fatal("a full disk takes entries")
					}
					if _, msg := writ.Public(err); writ.KindOf(err) != writ.StoreUnavailable || !strings.Contains(msg, "the disk is full") {
						t.Fatalf("a full disk says: %v", err)
					}
					if err = appendTo(t, l, "refused"); err == nil {
						taken++ // a checkpoint can make room
						err = writ.Fail(writ.StoreUnavailable, "the disk is full", nil)
					}
				}
				if err := os.Remove(filler); err != nil {
					t.Fatal(err)
				}
				waitFor(t, func() bool {
					err := appendTo(t, l, "again")
					if err == nil {
						taken++
					}
					return err == nil
				})
				r, err := l.Verify(t.Context(), witness, "")
				if err != nil || !r.OK() || int(r.Entries) != taken {
					t.Fatalf("%d entries were taken: %+v, %v", taken, r, err)
				}
			}
			if err := errors.Join(l.Close(), db.Close()); err != nil {
				t.Fatal(err)
			}
			db = open(t, dir)
			defer db.Close()
			l = openLedger(t, db, witness)
			defer l.Close()
			if r, err := l.Verify(t.Context(), witness, ""); err != nil || !r.OK() || int(r.Entries) != taken {
				t.Errorf("%d entries were taken: %+v, %v", taken, r, err)
			}
		})
	}
}

// TestFullDiskFromTheStart: there is no room to make the store.
func TestFullDiskFromTheStart(t *testing.T) {
	dir := storetest.SmallDisk(t, 1<<20)
	filler := filepath.Join(dir, "filler")
	storetest.Fill(t, filler, 8<<10)
	if _, err := sqlite.Open(t.Context(), dir); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("opened: %v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	shut(t, dir)
}
