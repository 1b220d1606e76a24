package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const standard = "role: developer\nlevel: standard\noverrides:\n  requires_approval: [\"code:delete\"]\n"

// The README's tour: allowed, denied with the reason, asked and approved once,
// verified.
func TestTour(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	if o := w.call("write_file", map[string]any{"path": "hello.txt", "content": "hi"}); o.code != 0 || o.out != "created hello.txt (2 bytes)\n" {
		t.Errorf("allowed: %+v", o)
	}
	if o := w.call("read_file", map[string]any{"path": "/etc/shadow"}); o.code != 3 || !strings.Contains(o.err, `"/etc/shadow" is outside file_system: project_directory`) {
		t.Errorf("denied: %+v", o)
	}
	if o := w.shell("cat hello.txt; id -u"); o.code != 0 || !strings.HasPrefix(o.out, "hi") || strings.HasSuffix(o.out, "\n0\n") {
		t.Errorf("shell: %+v", o)
	}
	deleting := map[string]any{"path": "hello.txt"}
	if o := w.call("delete_file", deleting); o.code != 4 {
		t.Errorf("asked: %+v", o)
	}
	id := w.pending()
	show := w.must("", "approval", "show", id)
	for _, want := range []string{"hello.txt", "code:delete", "writ.yaml:", "can write", w.ws, "digest"} {
		if !strings.Contains(show, want) {
			t.Errorf("the request does not show %q:\n%s", want, show)
		}
	}
	if o := w.run("wrong horse\n", "approval", "approve", id, "--passphrase-stdin"); o.code != 1 || !strings.Contains(o.err, "wrong name or passphrase") {
		t.Errorf("wrong passphrase: %+v", o)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "hello.txt")); err != nil {
		t.Errorf("it ran without approval: %v", err)
	}
	w.must(pass+"\n", "approval", "approve", id, "--passphrase-stdin")
	if o := w.run(pass+"\n", "approval", "approve", id, "--passphrase-stdin"); o.code != 1 || !strings.Contains(o.err, "already approved") && !strings.Contains(o.err, "already used") {
		t.Errorf("approved twice: %+v", o)
	}
	if o := w.call("delete_file", deleting); o.code != 0 {
		t.Errorf("approved: %+v", o)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "hello.txt")); err == nil {
		t.Error("it did not run")
	}
	w.write(filepath.Join(w.ws, "hello.txt"), "again")
	if o := w.call("delete_file", deleting); o.code != 4 {
		t.Errorf("an approval is good for one call: %+v", o)
	}
	w.verifies()
	kinds := w.ledgerKinds()
	for _, want := range []string{"person.added", "token.added", "call.started", "call.finished", "call.refused", "approval.requested", "person.refused", "approval.approved"} {
		if !slices.Contains(kinds, want) {
			t.Errorf("no %s in the ledger: %v", want, kinds)
		}
	}
}

// Nothing an agent sends to a terminal or a record carries its arguments or results.
func TestNoSecretsOnDisk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	const canary = "sk-canary-7f3a9"
	w.call("write_file", map[string]any{"path": "a.txt", "content": canary})
	w.call("read_file", map[string]any{"path": "a.txt"})
	w.call("read_file", map[string]any{"path": "/etc/" + canary})
	w.call("nonsense_"+canary, map[string]any{})
	w.call("delete_file", map[string]any{"path": canary})
	w.must("", "serve", "--stop")
	w.daemonGone()
	err := filepath.WalkDir(w.state(), func(p string, e os.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		if strings.Contains(string(b), canary) || strings.Contains(string(b), pass) || strings.Contains(string(b), w.token) {
			t.Errorf("%s holds a secret", p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestRejection(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.write(filepath.Join(w.ws, "x"), "x")
	args := map[string]any{"path": "x"}
	w.call("delete_file", args)
	w.must(pass+"\n", "approval", "reject", w.pending(), "--reason", "not today", "--passphrase-stdin")
	if o := w.call("delete_file", args); o.code != 3 || !strings.Contains(o.err, `a person rejected this call and said: "not today"`) {
		t.Errorf("whoever makes it again is told, once: %+v", o)
	}
	if o := w.call("delete_file", args); o.code != 4 {
		t.Errorf("a rejected call made again asks again: %+v", o)
	}
	if _, err := os.Stat(filepath.Join(w.ws, "x")); err != nil {
		t.Error("a rejected call ran")
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.write(filepath.Join(w.ws, "x"), "x")
	args := map[string]any{"path": "x"}
	w.call("delete_file", args)
	id := w.pending()
	running := make(chan outcome)
	go func() { running <- w.shell("touch started; sleep 50") }()
	waitFor(t, func() bool { _, err := os.Stat(filepath.Join(w.ws, "started")); return err == nil })
	w.must("", "stop", "coder", "--reason", "test")
	if o := <-running; o.code == 0 {
		t.Errorf("the running command was not ended: %+v", o)
	}
	if o := w.call("stat", args); o.code != 3 || !strings.Contains(o.err, "stopped") {
		t.Errorf("a stopped agent calls: %+v", o)
	}
	w.must("", "serve", "--stop")
	w.daemonGone()
	if o := w.call("stat", args); o.code != 3 {
		t.Errorf("a stop does not survive a restart: %+v", o)
	}
	if o := w.run("nonsense\n", "stop", "--lift", "coder", "--passphrase-stdin"); o.code == 0 {
		t.Error("a stop was lifted without the passphrase")
	}
	w.must(pass+"\n", "stop", "--lift", "coder", "--passphrase-stdin")
	if o := w.call("stat", args); o.code != 0 {
		t.Errorf("after lifting: %+v", o)
	}
	if o := w.run(pass+"\n", "approval", "approve", id, "--passphrase-stdin"); o.code != 1 || !strings.Contains(o.err, "already void") {
		t.Errorf("a request survived the stop: %+v", o)
	}
	if o := w.call("delete_file", args); o.code != 4 {
		t.Errorf("an approval survived the stop: %+v", o)
	}
	w.verifies()
}

// A daemon that runs can be stopped, and told to stop an agent, whatever has
// become of its configuration file since.
func TestStopWithBrokenConfiguration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	w.must("", "doctor")
	w.edit("role: developer", "rolle: developer")
	o := w.run("", "stop", "coder")
	if o.code != 0 || !strings.Contains(o.err, "agents.coder.rolle: unknown key; did you mean role?") {
		t.Errorf("stop: %+v", o)
	}
	w.edit("rolle: developer", "role: developer")
	if o := w.call("stat", map[string]any{"path": "."}); o.code != 3 {
		t.Errorf("the agent is not stopped: %+v", o)
	}
	w.edit("role: developer", "rolle: developer")
	if o := w.run("", "serve", "--stop"); o.code != 0 {
		t.Errorf("serve --stop: %+v", o)
	}
	w.daemonGone()
	if o := w.run("", "doctor"); o.code != 1 {
		t.Errorf("a daemon started under a configuration that does not hold: %+v", o)
	}
}

func TestChangedConfigurationIsSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	if o := w.run("", "agent", "list"); o.code != 0 || strings.Contains(o.err, "changed") {
		t.Errorf("%+v", o)
	}
	w.edit("level: standard", "level: restricted")
	if o := w.run("", "agent", "list"); o.code != 0 || !strings.Contains(o.err, "changed since the daemon read it") {
		t.Errorf("%+v", o)
	}
}

// What no sandbox can hold is in the explanation, beside every other reason.
func TestExplain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "sandboxing: {default_backend: subprocess}\n").init()
	o := w.run("", "explain", "code_runner", "--agent", "coder", "language=python", "code=1")
	if o.code != 3 || !strings.Contains(o.out, "sandbox_unavailable") || !strings.Contains(o.out, "role developer names it") {
		t.Errorf("%+v", o)
	}
	o = w.run("", "explain", "delete_file", "--agent", "coder", "path=x")
	if o.code != 4 || !strings.Contains(o.out, "writ.yaml:") {
		t.Errorf("%+v", o)
	}
}

// Tab offers tools, agents and requests from a daemon that runs, and starts none.
func TestCompletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "").init()
	if out := w.must("", "__complete", "call", "re"); strings.Contains(out, "read_file") {
		t.Errorf("a daemon was started: %s", out)
	}
	w.call("delete_file", map[string]any{"path": "x"})
	id := w.pending()
	for want, args := range map[string][]string{
		"read_file": {"call", "re"}, "coder": {"stop", ""}, id: {"approval", "approve", "ap"}, "rejected": {"approval", "list", "--state", ""},
		"docker": {"doctor", "--driver", ""}, "keyring:": {"secret", "check", ""},
	} {
		if out := w.must("", append([]string{"__complete"}, args...)...); !strings.Contains(out, want) {
			t.Errorf("%v does not offer %s: %s", args, want, out)
		}
	}
}
