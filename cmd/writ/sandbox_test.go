package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/client"
)

func (w *world) sandboxes() []client.Sandbox {
	w.t.Helper()
	var all []client.Sandbox
	if err := json.Unmarshal([]byte(w.must("", "sandbox", "list", "--json")), &all); err != nil {
		w.t.Fatal(err)
	}
	return all
}

// settled waits until nothing runs or is being readied: as many boxes as there should be
// are kept, and wait.
func (w *world) settled(n int) []client.Sandbox {
	w.t.Helper()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		all := w.sandboxes()
		if len(all) == n && !slices.ContainsFunc(all, func(b client.Sandbox) bool { return b.Call != "" }) {
			return all
		}
		if time.Now().After(end) {
			w.t.Fatalf("%d boxes instead of %d: %+v", len(all), n, all)
		}
	}
}

// With each strategy, what is kept is what it says, and a call finds nothing of the one
// before: neither files in /tmp and the home, nor processes, queues or abstract names.
func TestSandboxLifecycle(t *testing.T) {
	t.Parallel()
	// Not with all files: a box that shows them is made anew whenever anything is mounted.
	const leave = `echo left >/tmp/left; echo left >~/left; ipcmk -Q >/dev/null; setsid sleep 300 >/dev/null 2>&1 & until grep -qsx sleep /proc/[0-9]*/comm; do :; done; echo queues=$(ipcs -q | grep -c 0x) sleeping=$(grep -lsx sleep /proc/[0-9]*/comm | wc -l)`
	const find = `ls -A /tmp ~; echo queues=$(ipcs -q | grep -c 0x) sleeping=$(grep -lsx sleep /proc/[0-9]*/comm | wc -l); readlink /proc/self/ns/net`
	for strategy, kept := range map[string]int{"per-agent": 1, "per-task": 1, "per-call": 0} {
		t.Run(strategy, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "level: standard\noverrides: {terminal: full}\n", "sandboxing: {lifecycle: {strategy: "+strategy+", idle: 1h}}\n").init()
			before := ""
			for range 3 {
				if o := w.shell(leave); o.code != 0 || !strings.Contains(o.out, "queues=1 sleeping=1\n") {
					t.Fatalf("inconclusive: %+v", o)
				}
				w.settled(kept)
				o := w.shell(find)
				lines := strings.Split(strings.TrimSpace(o.out), "\n")
				if o.code != 0 || len(lines) < 3 || strings.Contains(o.out, "left") || !strings.Contains(o.out, "queues=0 sleeping=0\n") {
					t.Fatalf("a call finds what the one before left: %+v", o)
				}
				// Numbers of namespaces are given again, so only the same one says something.
				if net := lines[len(lines)-1]; kept > 0 && before != "" && net != before {
					t.Errorf("the box was not kept: its network was %s and is %s", before, net)
				}
				before = lines[len(lines)-1]
				w.settled(kept)
			}
			if kept > 0 {
				b := w.sandboxes()[0]
				if b.Calls != 6 || !b.Kept || b.Agent != "coder" || b.Driver != "native" {
					t.Errorf("%+v", b)
				}
			}
		})
	}
}

// What reaches something else, and what a person approved, has a box of its own.
func TestSandboxOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {terminal: full}\n", "").init()
	if o := w.shell("true"); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	first := w.settled(1)[0].ID
	job := w.must("", "call", "shell_command", "command=sleep 60", "background:=true")
	all := w.sandboxes()
	if len(all) != 2 || !slices.ContainsFunc(all, func(b client.Sandbox) bool { return b.ID != first && !b.Kept && b.Tool == "shell_command" }) {
		t.Errorf("a job beside a kept box: %+v", all)
	}
	w.must("", "call", "shell_job", "do=cancel", "job="+regexp.MustCompile(`job_\w+`).FindString(job))
	w.settled(1)
	w.must("", "stop", "coder")
	w.settled(0)
}

func TestSandboxCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\noverrides: {terminal: full}\n", "").init()
	if out := w.must("", "sandbox", "list"); !strings.Contains(out, "there are none") {
		t.Errorf("%s", out)
	}
	running := w.starts("call", "shell_command", "command=echo $$ >pid; sleep 300")
	waitFor(t, func() bool { _, err := os.Stat(filepath.Join(w.ws, "pid")); return err == nil })
	id := w.sandboxes()[0].ID
	if out := w.must("", "sandbox", "list"); !regexp.MustCompile(`^ID +DRIVER +AGENT +RUNS +CALLS +USED\n` + id + ` +native +coder +shell_command call_\w+ +1 +\d+s ago\n$`).MatchString(out) {
		t.Errorf("%s", out)
	}
	if out := w.must("", "sandbox", "show", id); !regexp.MustCompile(`driver +native\n`).MatchString(out) {
		t.Errorf("%s", out)
	}
	w.must("", "sandbox", "kill", id)
	if o := running.ends(); o.code == 0 || !strings.Contains(o.out, "killed by an operator") {
		t.Errorf("%+v", o)
	}
	w.settled(0)
	if o := w.run("", "sandbox", "kill", id); o.code != 1 || !strings.Contains(o.err, "has ended already; 'writ sandbox show "+id+"' says") {
		t.Errorf("%+v", o)
	}
	if !slices.Contains(w.ledgerKinds(), "sandbox.killed") {
		t.Error("nothing was written down")
	}
	if o := w.shell("true"); o.code != 0 {
		t.Errorf("the next call: %+v", o)
	}
	idle := w.settled(1)[0].ID
	w.must("", "sandbox", "kill", idle)
	w.settled(0)
}
