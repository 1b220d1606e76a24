package ledger

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/wire"
)

// The test program is also the writer that is killed: it appends to the ledger
// that WRIT_TEST_WRITE names, and prints each number once it is durable.
func TestMain(m *testing.M) {
	if dir := os.Getenv("WRIT_TEST_WRITE"); dir != "" {
		fmt.Println(write(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func write(dir string) error {
	db, err := sqlite.Open(context.Background(), dir)
	if err != nil {
		return err
	}
	l, err := Open(context.Background(), db, Options{Key: testKey(), Witness: witnessOf(dir)})
	if err != nil {
		return err
	}
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	var next atomic.Int64
	for range 8 {
		wg.Go(func() {
			for failed.Load() == nil {
				n := next.Add(1)
				if err := l.Append(context.Background(), Entry{Kind: "test", Call: fmt.Sprint(os.Getpid(), "-", n)}); err != nil {
					failed.Store(&err)
					return
				}
				fmt.Println(n)
			}
		})
	}
	wg.Wait()
	return *failed.Load()
}

// TestCrashOfTheWriter: L, crash mid-write. A writer is killed again and again; each time the
// ledger opens, verifies, and holds everything that was acknowledged.
func TestCrashOfTheWriter(t *testing.T) {
	rounds := 10
	if os.Getenv("WRIT_SOAK") != "" {
		rounds = 100
	}
	dir := t.TempDir()
	var acknowledged []string
	for round := range rounds {
		acknowledged = append(acknowledged, killed(t, dir, round)...)
		db, err := sqlite.Open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		l, err := Open(t.Context(), db, Options{Key: testKey(), Witness: witnessOf(dir)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.Verify(t.Context(), witnessOf(dir), "")
		if err != nil || !r.OK() {
			t.Fatalf("round %d: %+v, %v", round, r, err)
		}
		have := map[string]bool{}
		for e, err := range db.Entries(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			have[e.Call] = true
		}
		for _, call := range acknowledged {
			if !have[call] {
				t.Fatalf("round %d: %s was acknowledged and is gone", round, call)
			}
		}
		if err := errors.Join(l.Close(), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if len(acknowledged) < rounds {
		t.Errorf("control: only %d entries were written", len(acknowledged))
	}
}

// killed runs a writer, kills it some time after its first entry, and returns
// what it acknowledged.
func killed(t *testing.T, dir string, round int) (calls []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), "WRIT_TEST_WRITE="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	scan := bufio.NewScanner(out)
	var kill *time.Timer
	for scan.Scan() {
		if _, err := strconv.Atoi(scan.Text()); err != nil {
			t.Fatalf("the writer says: %s", scan.Text())
		}
		calls = append(calls, fmt.Sprint(cmd.Process.Pid, "-", scan.Text()))
		if kill == nil {
			kill = time.AfterFunc(time.Duration(round*37%230)*time.Millisecond, func() { cmd.Process.Kill() })
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
	return calls
}

// TestCloseWhileWriting: nobody hangs or panics, and each caller learns the truth.
func TestCloseWhileWriting(t *testing.T) {
	dir := t.TempDir()
	l, end := reopen(t, dir)
	var taken atomic.Int64
	var wg sync.WaitGroup
	started := make(chan struct{}, 100)
	for range 64 {
		wg.Go(func() {
			for {
				err := l.Append(context.Background(), Entry{Kind: "test"})
				if err != nil {
					if _, msg := writ.Public(err); writ.KindOf(err) != writ.StoreUnavailable || !strings.Contains(msg, "closed") {
						t.Errorf("a closing ledger says: %v", err)
					}
					return
				}
				if taken.Add(1) <= 100 {
					started <- struct{}{}
				}
			}
		})
	}
	for range 100 {
		<-started
	}
	wg.Go(func() { // reading goes on meanwhile
		if _, err := l.Verify(context.Background(), witnessOf(dir), ""); err != nil {
			t.Error(err)
		}
	})
	for range 3 {
		wg.Go(func() {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	end()
	if r := verifyFiles(t, dir); !r.OK() || r.Entries != taken.Load() || r.Unsigned != 0 {
		t.Errorf("%d entries were taken: %+v", taken.Load(), r)
	}
}

// TestVerifyWhileWriting: a ledger in use verifies, and so does what it exports.
func TestVerifyWhileWriting(t *testing.T) {
	dir := t.TempDir()
	l, _ := reopen(t, dir)
	quit := make(chan struct{})
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for {
				select {
				case <-quit:
					return
				default:
				}
				if err := l.Append(context.Background(), Entry{Kind: "test"}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 5 {
		r, err := l.Verify(t.Context(), witnessOf(dir), "")
		if err != nil || !r.OK() {
			t.Errorf("%+v, %v", r, err)
		}
		var b bytes.Buffer
		if err := l.Export(t.Context(), &b); err != nil {
			t.Error(err)
		}
		if r, err := verifyExport(b.Bytes()); err != nil || !r.OK() {
			t.Errorf("the export: %+v, %v", r, err)
		}
	}
	close(quit)
	wg.Wait()
}

// TestCallersWhoLeave: a caller who is gone before is not recorded; one who goes
// meanwhile is recorded or told otherwise, and holds nobody up.
func TestCallersWhoLeave(t *testing.T) {
	dir := t.TempDir()
	l, end := reopen(t, dir)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Append(gone, Entry{Kind: "gone"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller who is gone: %v", err)
	}
	var wg sync.WaitGroup
	var taken atomic.Int64
	for i := range 64 {
		wg.Go(func() {
			for range 10 {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(i)*10*time.Microsecond)
				if l.Append(ctx, Entry{Kind: "test"}) == nil {
					taken.Add(1)
				}
				cancel()
			}
		})
	}
	wg.Wait()
	end()
	if r := verifyFiles(t, dir); !r.OK() || r.Entries != taken.Load() {
		t.Errorf("%d were told that they are recorded: %+v", taken.Load(), r)
	}
}

// TestOneRefusalAmongMany: a change that refuses is dropped alone.
func TestOneRefusalAmongMany(t *testing.T) {
	dir := t.TempDir()
	l, end := reopen(t, dir)
	no := errors.New("no")
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			err := l.Write(context.Background(), func(*store.Tx) (Entry, error) {
				if i%2 == 0 {
					return Entry{Kind: "refused"}, no
				}
				return Entry{Kind: "test"}, nil
			})
			if errors.Is(err, no) != (i%2 == 0) {
				t.Errorf("caller %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	end()
	if r := verifyFiles(t, dir); !r.OK() || r.Entries != 32 {
		t.Errorf("%+v", r)
	}
}

// TestClockGoesBack: order is the chain's, not the clock's.
func TestClockGoesBack(t *testing.T) {
	dir := t.TempDir()
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var ticks atomic.Int64
	l, err := Open(t.Context(), db, Options{Key: testKey(), Witness: witnessOf(dir), Now: func() time.Time {
		return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).Add(-time.Duration(ticks.Add(1)) * time.Hour)
	}})
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := l.Append(t.Context(), Entry{Kind: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(l.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if r := verifyFiles(t, dir); !r.OK() || r.Entries != 5 {
		t.Errorf("%+v", r)
	}
}

// TestSecretsStayOut: I7. What a call carries, gives back or fails with is in no
// byte of the store, its log, the witness or an export.
func TestSecretsStayOut(t *testing.T) {
	const canary = "canary-9f8e7d6c5b4a"
	dir := t.TempDir()
	l, _ := reopen(t, dir)
	args := `{"command":"curl -H 'Authorization: ` + canary + `'"}`
	call := writ.Call{ID: "call_visible", Agent: "coder", Tool: "shell_command", Definition: writ.Digest{1}, Args: args, ArgsDigest: wire.Digest(args),
		Targets: []writ.Target{{Value: canary, Problem: canary}}, Resolved: true}
	decision := writ.Decision{Reasons: []writ.Reason{{Effect: writ.Deny, Source: "argument_gate", Text: "not " + canary, Where: canary}}}
	for _, ev := range []writ.Event{
		{Kind: writ.EventStarted, Call: call, Decision: decision},
		{Kind: writ.EventRefused, Call: call, Decision: decision, Err: writ.Fail(writ.Denied, "denied: "+canary, errors.New(canary))},
		{Kind: writ.EventFinished, Call: call, Decision: decision, Result: writ.Result{Content: canary, Metadata: map[string]any{"stderr": canary, "exit_code": 1}}, Err: errors.New(canary)},
	} {
		if err := l.Append(t.Context(), EntryOf(ev)); err != nil {
			t.Fatal(err)
		}
	}
	export, err := os.Create(filepath.Join(dir, "export.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Export(t.Context(), export), export.Close()); err != nil {
		t.Fatal(err)
	}
	visible := map[string]bool{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(canary)) {
			t.Errorf("%s holds the secret", path)
		}
		visible[d.Name()] = bytes.Contains(b, []byte("call_visible"))
		return err
	})
	if err != nil || !visible[sqlite.Name+"-wal"] || !visible["export.jsonl"] {
		t.Errorf("control: what is recorded shows in %v, %v", visible, err)
	}
}
