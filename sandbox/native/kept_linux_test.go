package native_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/native"
)

// Memory, semaphores and queues of System V outlive who made them, but not the command in a
// kept box, which is used again.
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
	const there = `cat /proc/sysvipc/msg /proc/sysvipc/sem /proc/sysvipc/shm | grep -vc perms`
	calls := 0
	for _, kind := range []string{"-Q", "-M 4096", "-S 1", "-p 0 -Q", "-p 0 -M 4096", "-p 0 -S 1"} {
		script := fmt.Sprintf("first=$(ipcmk %s); for i in 1 2 3 4; do ipcmk %[1]s; done; ipcrm %s ${first##* }; ", kind, strings.ToLower(kind[strings.IndexAny(kind, "QMS")-1:][:2]))
		if out := run(script + there); !strings.HasSuffix(out, "\n4\n") {
			t.Fatalf("%s: %q", script, out)
		}
		if n := run(there); n != "0\n" {
			t.Errorf("after %s the next command finds %s", script, n)
		}
		calls += 2
	}
	if all := boxes.List(); len(all) != 1 || all[0].Calls != calls {
		t.Errorf("%d calls in one box: %+v", calls, all)
	}
}
