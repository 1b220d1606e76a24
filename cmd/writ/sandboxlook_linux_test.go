package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	docker "github.com/moby/moby/client"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/sandbox/rig"
)

// looked are worlds whose boxes are looked at: of a driver with containers, and of one
// without.
func looked(t *testing.T, test func(*testing.T, *world, string)) {
	t.Run("docker", func(t *testing.T) { test(t, contained(t, ", lifecycle: {idle: 1h}", ""), "docker") })
	t.Run("native", func(t *testing.T) {
		test(t, newWorld(t, "level: standard\noverrides: {terminal: full, code_execution: process}\n", "sandboxing: {default_backend: native, lifecycle: {idle: 1h}}\n").init(), "native")
	})
}

// What is known of a box is shown while it is there and afterwards, and what ended in it is
// followed to its end.
func TestSandboxShowAndLogs(t *testing.T) {
	looked(t, func(t *testing.T, w *world, driver string) {
		first := w.reply("command=printf four; printf fives >&2; exit 3")
		b := w.settled(1)[0]
		var shown client.Sandbox
		if err := json.Unmarshal([]byte(w.must("", "sandbox", "show", b.ID, "--json")), &shown); err != nil {
			t.Fatal(err)
		}
		if len(shown.Runs) != 1 || shown.Runs[0].Call != first.CallID || shown.Runs[0].ExitCode != 3 || shown.Runs[0].Stdout != 4 || shown.Runs[0].Stderr != 5 || len(shown.Confine.Write) != 1 || shown.Confine.Write[0] != w.project || shown.Ended != "" {
			t.Errorf("%+v", shown)
		}
		if got := first.Metadata.ContainerID; driver == "docker" && (got == nil || shown.Container != *got || shown.Image == "") || driver == "native" && shown.Container != "" {
			t.Errorf("it ran in %v, and the box says %q of %q", got, shown.Container, shown.Image)
		}
		contains(t, w.must("", "sandbox", "show", b.ID), "coder", "alice", "can reach    no network", w.project, first.CallID+": exit 3 after")
		follow := w.starts("sandbox", "logs", b.ID, "--follow")
		second := w.reply("command=exit 5")
		w.settled(1)
		w.must("", "sandbox", "kill", b.ID)
		o := follow.ends()
		if lines := strings.Split(strings.TrimSpace(o.out), "\n"); o.code != 0 || len(lines) != 2 || !strings.Contains(lines[0], first.CallID+": exit 3 after") || !strings.Contains(lines[1], second.CallID+": exit 5 after") {
			t.Errorf("%+v", o)
		}
		contains(t, w.must("", "sandbox", "show", b.ID), "ended", second.CallID)
		if lines := strings.Count(w.must("", "sandbox", "logs", b.ID, "--json"), "\n"); lines != 2 {
			t.Errorf("%d lines of JSON", lines)
		}
		if o := w.run("", "sandbox", "logs", "box_none"); o.code != 1 || !strings.Contains(o.err, "there is no sandbox") {
			t.Errorf("%+v", o)
		}
	})
}

// An operator's command in a box is confined as the calls in it are, has its turn, leaves
// nothing, and is written down as whose it was. It takes a passphrase.
func TestSandboxExec(t *testing.T) {
	looked(t, func(t *testing.T, w *world, driver string) {
		w.write(filepath.Join(w.home, "outside"), "a secret")
		if r := w.reply("command=echo $$ >pid"); strings.Contains(r.Content, "exit status") {
			t.Fatalf("%+v", r)
		}
		id := w.settled(1)[0].ID
		enter := func(pass string, argv ...string) outcome {
			return w.run(pass+"\n", append([]string{"sandbox", "exec", id, "--as", "alice", "--passphrase-stdin", "--"}, argv...)...)
		}
		if o := enter("wrong", "touch", filepath.Join(w.ws, "wrong")); o.code == 0 || exists(filepath.Join(w.ws, "wrong")) {
			t.Errorf("with another passphrase: %+v", o)
		}
		time.Sleep(1100 * time.Millisecond) // after a wrong one, the next waits
		o := enter(pass, "bash", "-c", "pwd; echo left >/tmp/left; echo by an operator >made; cat "+filepath.Join(w.home, "outside")+"; exit 4")
		if o.code != 1 || !strings.HasPrefix(o.out, w.ws+"\n") || !strings.Contains(o.out, "No such file") || !strings.Contains(o.out, "[exit status 4]") || !exists(filepath.Join(w.ws, "made")) {
			t.Errorf("%+v", o)
		}
		w.settled(1)
		if r := w.reply("command=cat /tmp/left"); !strings.Contains(r.Content, "No such file") {
			t.Errorf("the next call finds %q", r.Content)
		}
		if b := w.settled(1)[0]; b.ID != id || b.Calls != 3 || b.Agent != "coder" {
			t.Errorf("%+v", b)
		}
		var call string
		for line := range strings.Lines(w.must("", "ledger", "tail", "-n", "100", "--json")) {
			if m := regexp.MustCompile(`"call":"(\w+)".*"sandbox_exec"`).FindStringSubmatch(line); m != nil {
				call = m[1]
			}
		}
		contains(t, w.must("", "ledger", "show", call), "call.started", "call.finished", "alice", id)
		running := w.starts("call", "shell_command", "command=echo >begun; sleep 3; echo over")
		waitFor(t, func() bool { return exists(filepath.Join(w.ws, "begun")) })
		if o := enter(pass, "true"); o.code != 1 || !strings.Contains(o.err, "one command at a time") {
			t.Errorf("beside a call: %+v", o)
		}
		if o := running.ends(); o.code != 0 || o.out != "over\n" {
			t.Errorf("the call beside it: %+v", o)
		}
		job := w.must("", "call", "shell_command", "command=sleep 60", "background:=true")
		for _, b := range w.sandboxes() {
			if !b.Kept {
				id = b.ID
			}
		}
		if o := enter(pass, "true"); o.code != 1 || !strings.Contains(o.err, "of one call alone") {
			t.Errorf("in the box of %s: %+v", job, o)
		}
		if o := w.run("", "sandbox", "exec", id, "true"); o.code != 2 {
			t.Errorf("without --: %+v", o)
		}
		w.verifies()
	})
}

// Containers are kept and end as the strategy says, and none is left of a daemon that has
// gone, however it went.
func TestContainerLifecycle(t *testing.T) {
	engine := talks(t, rig.Start(t))
	in := func(w *world, args ...string) string {
		t.Helper()
		r := w.reply(append([]string{"command=true"}, args...)...)
		if r.Metadata.ContainerID == nil {
			t.Fatalf("%+v", r)
		}
		return *r.Metadata.ContainerID
	}
	has := func(id string) bool {
		t.Helper()
		all, err := engine.ContainerList(t.Context(), docker.ContainerListOptions{All: true})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(all.Items, func(c container.Summary) bool { return c.ID == id })
	}
	gone := func(id string) { t.Helper(); waitFor(t, func() bool { return !has(id) }) }
	t.Run("per-agent", func(t *testing.T) {
		w := contained(t, ", lifecycle: {strategy: per-agent, idle: 4s, grace: 1s}", "")
		first := in(w)
		if w.settled(1); in(w) != first || !has(first) {
			t.Error("the container was not kept")
		}
		gone(first) // idle
		w.settled(0)
		w.edit("idle: 4s", "idle: 1h")
		w.must("", "config", "reload")
		var session client.Session
		if err := json.Unmarshal([]byte(w.must("", "session", "start", "--json")), &session); err != nil {
			t.Fatal(err)
		}
		second := in(w, "--session", session.ID)
		w.settled(1)
		w.must("", "session", "end", session.ID)
		gone(second) // after the grace
	})
	t.Run("per-task", func(t *testing.T) {
		w := contained(t, ", lifecycle: {strategy: per-task, idle: 1h}", "")
		one, other := in(w, "--task", "one"), in(w, "--task", "other")
		w.settled(2)
		if again := in(w, "--task", "one"); one == other || again != one {
			t.Errorf("the containers are %s, %s and %s", one, other, again)
		}
		w.settled(2)
		w.must("", "task", "end", "one")
		gone(one)
		if !has(other) {
			t.Error("the container of the other task has ended")
		}
	})
	t.Run("per-call", func(t *testing.T) {
		w := contained(t, ", lifecycle: {strategy: per-call}", "")
		one, other := in(w), in(w)
		if one == other || len(w.sandboxes()) != 0 {
			t.Errorf("%s and %s, %v", one, other, w.sandboxes())
		}
		gone(one)
		gone(other)
	})
	t.Run("a daemon that is killed", func(t *testing.T) {
		w := contained(t, ", lifecycle: {idle: 1h}", "")
		_, kill := w.serve()
		left := in(w)
		w.settled(1)
		kill()
		if all := w.sandboxes(); len(all) != 0 {
			t.Errorf("after a restart there are %+v", all)
		}
		gone(left)
		if call := w.must("", "ledger", "tail", "-n", "100", "--json"); !strings.Contains(call, left) {
			t.Error("the ledger does not say which container it was")
		}
	})
}
