package native_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/native"
)

// Memory, semaphores and queues of System V outlive who made them. A kept box in which any
// are left is used no more; one in which none are is.
func TestKeptLeavesNoQueues(t *testing.T) {
	need.Programs(t, "ipcmk", "ipcrm")
	d := started(t)
	defer d.Close()
	boxes := sandbox.NewBoxes(sandbox.Set{d}, sandbox.Lifecycle{Strategy: sandbox.PerAgent, Idle: time.Minute})
	defer boxes.Close()
	ws := workspace(t)
	c := confined(ws)
	c.Backend = native.Name // without protected names
	run := func(script string) (out string) {
		g := calls{c, func(ctx context.Context, w writ.Writ) {
			var buf bytes.Buffer
			b, _, err := boxes.Start(ctx, w, sandbox.Spec{Argv: []string{"sh", "-c", script}, Stdout: &buf, Stderr: &buf})
			if err == nil {
				_, err = b.Wait(ctx)
			}
			if err != nil {
				t.Fatal(err)
			}
			out = buf.String()
		}}
		if _, err := writ.NewGate(g, g, g, g).Do(t.Context(), writ.Call{ID: "c", Agent: "a", Session: "s", Tool: "t", Definition: writ.Digest{1}, Dir: ws, Resolved: true}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	const there = `cat /proc/sysvipc/msg /proc/sysvipc/sem /proc/sysvipc/shm | grep -vc perms; readlink /proc/self/ns/ipc`
	look := func() (n, space string) {
		n, space, _ = strings.Cut(strings.TrimSpace(run(there)), "\n")
		return n, space
	}
	_, space := look()
	if n, again := look(); n != "0" || again != space {
		t.Fatalf("a box in which nothing is left is not used again: %s then %s, with %s left", space, again, n)
	}
	if out := run("ipcmk -Q && ipcrm -Q $(ipcs -q | awk '/0x/ {print $1}')"); strings.Contains(out, "fail") {
		t.Fatal(out)
	}
	if _, again := look(); again != space {
		t.Error("a box in which a queue was made and removed is not used again")
	}
	for _, kind := range []string{"-Q", "-M 4096", "-S 1"} {
		if out := run("ipcmk " + kind + " && " + there); !strings.Contains(out, "id:") || !strings.Contains(out, "\n1\n") {
			t.Fatalf("ipcmk %s: %q", kind, out)
		}
		n, next := look()
		if n != "0" || next == space {
			t.Errorf("after ipcmk %s the next command finds %s, in %s after %s", kind, n, next, space)
		}
		space = next
	}
}
