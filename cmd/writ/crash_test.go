package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ/need"
)

// kill -9 of the daemon at random moments of concurrent calls: afterwards no
// process of a box is left, the ledger verifies, and every effect was recorded
// before it happened (I3, I14).
func TestCrash(t *testing.T) {
	rounds := 2
	if os.Getenv("WRIT_SOAK") != "" {
		rounds = 20
	}
	w := newWorld(t, "level: elevated\nautonomy: full\n", "").init()
	for round := range rounds {
		_, kill := w.serve()
		marker := fmt.Sprintf("writ-crash-%d-%d", os.Getpid(), round)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				name := fmt.Sprintf("r%d-%d", round, i)
				w.call("write_file", map[string]any{"path": name, "content": marker})
				w.call("shell_command", map[string]any{"command": fmt.Sprintf("touch sh-%s; (setsid sh -c 'exec -a %s sleep 40' &) ; exec -a %s sleep 40", name, marker, marker)})
			})
		}
		time.Sleep(time.Duration(100+round*37%400) * time.Millisecond)
		kill()
		waitFor(t, func() bool { return !processExists(marker) })
		// The callers find no daemon and start another; end that one too.
		w.stopRunning(marker)
		wg.Wait()
		w.must("", "serve", "--stop")
		w.daemonGone()
		if processExists(marker) {
			t.Fatal("a process outlived the daemon")
		}
	}
	w.verifies()
	started := w.startedCalls()
	files, err := os.ReadDir(w.ws)
	if err != nil {
		t.Fatal(err)
	}
	effects := 0
	for _, f := range files {
		if strings.HasPrefix(f.Name(), "r") || strings.HasPrefix(f.Name(), "sh-") {
			effects++
		}
	}
	if effects > started {
		t.Errorf("%d effects, %d recorded starts", effects, started)
	}
	t.Logf("%d rounds, %d effects, %d starts", rounds, effects, started)
}

// stopRunning ends sleeping commands that a second daemon has taken up, so that
// the callers return.
func (w *world) stopRunning(marker string) {
	w.run("", "stop", "--all")
	w.run(pass+"\n", "stop", "--all", "--lift", "--passphrase-stdin")
}

func (w *world) startedCalls() int {
	n := 0
	for line := range strings.Lines(w.must("", "ledger", "export")) {
		var e struct{ Body struct{ Kind string } }
		if json.Unmarshal([]byte(line), &e) == nil && e.Body.Kind == "call.started" {
			n++
		}
	}
	return n
}

// processExists looks for a process by its first argument.
func processExists(name string) bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range lines {
		b, _ := os.ReadFile(p)
		if first, _, _ := strings.Cut(string(b), "\x00"); first == name {
			return true
		}
	}
	return false
}

// A store that is full or locked stops runs and says so; afterwards they go on.
func TestStoreUnavailable(t *testing.T) {
	need.Programs(t, "python3")
	w := newWorld(t, standard, "").init()
	args := func(name string) map[string]any { return map[string]any{"path": name, "content": "x"} }
	if o := w.call("write_file", args("before")); o.code != 0 {
		t.Fatalf("control: %+v", o)
	}
	lock := exec.Command("python3", "-c", `import sqlite3,sys
c=sqlite3.connect(sys.argv[1], isolation_level=None); c.execute("BEGIN EXCLUSIVE"); print("locked", flush=True); sys.stdin.read()`, w.state("writ.db"))
	in, err := lock.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := lock.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 16)); err != nil {
		t.Fatal(err)
	}
	o := w.call("write_file", args("during"))
	if o.code != 1 || !strings.Contains(o.err, "another program holds the database locked") {
		t.Errorf("locked: %+v", o)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "during")); err == nil {
		t.Error("it ran unrecorded")
	}
	in.Close()
	lock.Wait()
	if o := w.call("write_file", args("after")); o.code != 0 {
		t.Errorf("after the lock: %+v", o)
	}
	w.verifies()
}

// A workspace that is a second mount of the directory that holds the state would
// let an agent write it under another name.
func TestWorkspaceIsNoAliasOfTheState(t *testing.T) {
	need.Root(t)
	w := newWorld(t, standard, "")
	alias := filepath.Join(w.home, "alias")
	for _, dir := range []string{alias, w.state()} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	w.edit(fmt.Sprintf("{path: %q, project: %q}", w.ws, w.project), fmt.Sprintf("{path: %q}", alias))
	if o := w.run("", "config", "check"); o.code != 0 {
		t.Fatalf("control, before it is mounted: %+v", o)
	}
	if err := syscall.Mount(filepath.Dir(w.state()), alias, "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(alias, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	if o := w.run("", "config", "check"); o.code != 1 || !strings.Contains(o.err, "the same directory under another name") {
		t.Errorf("%+v", o)
	}
}

func TestFullDisk(t *testing.T) {
	need.Root(t)
	w := newWorld(t, standard, "")
	if err := os.MkdirAll(w.state(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", w.state(), "tmpfs", 0, "size=6m,mode=700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.run("", "serve", "--stop")
		w.daemonGone()
		if err := syscall.Unmount(w.state(), syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w.init()
	if o := w.call("write_file", map[string]any{"path": "before", "content": "x"}); o.code != 0 {
		t.Fatalf("control: %+v", o)
	}
	filler := w.state("filler")
	fill(t, filler)
	o := w.call("write_file", map[string]any{"path": "during", "content": "x"})
	for range 200 { // room inside pages already taken runs out soon
		if o.code != 0 {
			break
		}
		os.Remove(filepath.Join(w.ws, "during"))
		o = w.call("write_file", map[string]any{"path": "during", "content": "x"})
	}
	if o.code != 1 || !strings.Contains(o.err, "full") {
		t.Errorf("full disk: %+v", o)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "during")); err == nil {
		t.Error("it ran unrecorded")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return w.call("write_file", map[string]any{"path": "after", "content": "x"}).code == 0 })
	w.verifies()
}

func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for {
			if _, err := f.Write(make([]byte, size)); err != nil {
				break
			}
		}
	}
}

func TestSecondDaemonIsRefused(t *testing.T) {
	w := newWorld(t, standard, "").init()
	w.serve()
	if o := w.run("", "serve"); o.code != 1 || !strings.Contains(o.err, "another writ process has the store open: a daemon already runs on it") {
		t.Errorf("%+v", o)
	}
}

// A store that was put back to an earlier copy is not served.
func TestRollbackIsRefused(t *testing.T) {
	w := newWorld(t, standard, "").init()
	w.must("", "doctor")
	w.must("", "serve", "--stop")
	w.daemonGone()
	old, err := os.ReadFile(w.state("writ.db"))
	if err != nil {
		t.Fatal(err)
	}
	w.call("stat", map[string]any{"path": "."})
	w.must("", "serve", "--stop")
	w.daemonGone()
	for _, f := range []string{"writ.db-wal", "writ.db-shm"} {
		os.Remove(w.state(f))
	}
	if err := os.WriteFile(w.state("writ.db"), old, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := w.run("", "serve"); o.code != 1 || !strings.Contains(o.err, "the store does not hold what its witness") {
		t.Errorf("%+v", o)
	}
}
