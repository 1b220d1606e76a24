package native_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/cgroup"
	"github.com/writ-run/writ/sandbox/native"
)

// Bombs are ended by their limits, which are named; a neighbour that runs beside them is
// unharmed, the same box goes on after what did not have to be killed, and nothing is left.
func TestBombs(t *testing.T) {
	need.Programs(t, "python3")
	d := native.New(native.Options{Deployment: "writ-test"})
	needLauncher(t, d)
	defer d.Close()
	groups, err := cgroup.Open("writ-test-other")
	if err != nil {
		need.Lacking(t, "%v", err)
	}
	groups.Close()
	ws := workspace(t)
	c := confined(ws)
	c.Backend = native.Name // without protected names
	c.Limits = writ.Limits{Memory: 256 << 20, Pids: 32, Size: 8 << 20, Disk: 64 << 20, CPU: time.Second, Wall: 5 * time.Second, Grace: 100 * time.Millisecond}
	boxes := sandbox.NewBoxes(sandbox.Set{d}, sandbox.Lifecycle{Strategy: sandbox.PerAgent})
	defer boxes.Close()
	run := func(script string) (exit sandbox.Exit, out string) {
		g := calls{c, func(ctx context.Context, w writ.Writ) {
			tail := sandbox.NewTail(1 << 20)
			b, _, err := boxes.Start(ctx, w, sandbox.Spec{Argv: []string{"bash", "-c", script}, Stdout: tail, Stderr: tail})
			if err != nil {
				t.Fatal(err)
			}
			if exit, err = b.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			out = tail.String()
		}}
		if _, err := writ.NewGate(g, g, g, g).Do(t.Context(), writ.Call{ID: "c", Agent: "a", Session: "s", Tool: "t", Definition: writ.Digest{1}, Dir: ws, Resolved: true}); err != nil {
			t.Fatal(err)
		}
		return exit, out
	}
	neighbour := make(chan sandbox.Exit)
	go func() {
		exit, _ := run("for i in $(seq 20); do sleep 0.1; /bin/true || exit 9; done")
		neighbour <- exit
	}()
	for _, tc := range []struct{ name, script, limit, met string }{
		{"memory of many processes", `for i in 1 2 3 4; do python3 -c "x=bytearray(90<<20); import time; time.sleep(3)" & done; wait -n; r=$?; for j in $(jobs -p); do wait $j || r=$?; done; exit $r`, "memory", "memory"},
		{"processes", "exec python3 -c \"import os,sys,time\nfor i in range(200):\n  try: pid=os.fork()\n  except OSError: sys.exit(3)\n  if pid==0: time.sleep(3); os._exit(0)\"", "pids", "pids"},
		{"a large file", `exec head -c 100M /dev/zero >big`, "file size", "file size"},
		{"a disk", `for i in $(seq 100000); do head -c 4M /dev/zero >part || exit 3; done`, "disk", ""},
		{"processors", `for i in 1 2 3 4; do (while :; do :; done) & done; wait`, "cpu", ""},
		{"space that is not written", `fallocate -l 4M space 2>/dev/null || exit 95; exit 0`, "", ""},
		{"output", `exec timeout 0.2 yes`, "", ""},
		{"a child that is stopped", `sleep 100 & kill -STOP $!; wait`, "timeout", ""},
		{"orphans", `for i in 1 2 3; do (setsid sleep 100 &) & done; wait; exit 0`, "", ""},
	} {
		exit, out := run(tc.script)
		if exit.Limit != tc.limit || exit.Met != tc.met {
			t.Errorf("%s: %+v, want %q and %q\n%.300s", tc.name, exit, tc.limit, tc.met, out)
		}
		if exit, out := run("echo fine"); exit.Code != 0 || out != "fine\n" || exit.Met != "" {
			t.Errorf("after %s: %+v %s", tc.name, exit, out)
		}
	}
	if exit := <-neighbour; exit.Code != 0 {
		t.Errorf("the neighbour: %+v", exit)
	}
	boxes.Close()
	d.Close()
	eventually(t, "something is left", func() bool { return len(launchers(t)) == 0 })
	left, _ := filepath.Glob("/sys/fs/cgroup/*/*writ-test*")
	for _, dir := range left {
		if b, _ := os.ReadFile(filepath.Join(dir, "cgroup.procs")); strings.TrimSpace(string(b)) != "" {
			t.Errorf("%s has processes", dir)
		}
	}
}

// calls is a gate that lets everything through.
type calls struct {
	c writ.Confinement
	f func(context.Context, writ.Writ)
}

func (g calls) Decide(context.Context, writ.Call) (writ.Decision, error) {
	return writ.Decision{Effect: writ.Allow, Class: writ.ClassNone, Confine: g.c}, nil
}
func (g calls) Approve(context.Context, writ.Call, writ.Decision) (writ.Approval, error) {
	return writ.Approval{}, errors.New("nobody is asked")
}
func (g calls) Record(context.Context, writ.Event) error { return nil }
func (g calls) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	g.f(ctx, w)
	return writ.Result{}, nil
}
