package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/need"
)

// Keys whose effect shows only in the running program (I13); the others bite in
// package config's own table.
func TestKeysThatBiteInTheDaemon(t *testing.T) {
	t.Parallel()
	t.Run("listen", func(t *testing.T) {
		w := newWorld(t, standard, "")
		port := freePort(t)
		w.edit("listen: 127.0.0.1:0", fmt.Sprintf("listen: 127.0.0.1:%d", port))
		w.must("", "doctor")
		if _, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/v1/health", port)); err != nil {
			t.Error(err)
		}
	})
	t.Run("store.path and store.witness", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, standard, "")
		dir := filepath.Join(w.home, "elsewhere")
		w.edit("version: 1", fmt.Sprintf("version: 1\nstore: {path: %s/s, witness: %s/w.jsonl}", dir, dir))
		os.MkdirAll(dir, 0o700)
		w.must("", "doctor")
		w.must("", "serve", "--stop")
		for _, p := range []string{"s/writ.db", "s/keys/ledger.key", "w.jsonl"} {
			waitFor(t, func() bool { _, err := os.Stat(filepath.Join(dir, p)); return err == nil })
		}
	})
	t.Run("approvals.expiry", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, standard, "approvals: {expiry: 1s}\n").init()
		args := map[string]any{"path": "x"}
		w.call("delete_file", args)
		id := w.pending()
		time.Sleep(1100 * time.Millisecond)
		if o := w.run(pass+"\n", "approval", "approve", id, "--passphrase-stdin"); o.code == 0 {
			t.Errorf("approved after its time: %+v", o)
		}
	})
	t.Run("approvals.timeout", func(t *testing.T) {
		t.Parallel()
		w, answer := asked(t, "expiry: 1s, timeout: wait")
		time.Sleep(1100 * time.Millisecond)
		if o := answer("alice", w.pending()); o.code != 0 {
			t.Errorf("it does not wait: %+v", o)
		}
	})
	t.Run("approvals.tiers", func(t *testing.T) {
		t.Parallel()
		for risk, late := range map[string]bool{"high": true, "low": false} { // delete_file is of risk high
			w, answer := asked(t, fmt.Sprintf("timeout: tiered, tiers: {%s: {after: 1s, then: deny}}", risk))
			id := w.pending()
			time.Sleep(1100 * time.Millisecond)
			if o := answer("alice", id); (o.code != 0) != late {
				t.Errorf("tier %s: %+v", risk, o)
			}
		}
	})
	t.Run("approvals.escalation", func(t *testing.T) {
		t.Parallel()
		for role, taken := range map[string]bool{"admin": false, "approver": true} {
			w, answer := asked(t, fmt.Sprintf("timeout: escalate, escalation: [{role: %s, after: 1h}]", role))
			if o := answer("bob", w.pending()); (o.code == 0) != taken { // bob is an approver
				t.Errorf("put to %s: %+v", role, o)
			}
		}
	})
	t.Run("approvals.four_eyes", func(t *testing.T) {
		t.Parallel()
		for value, taken := range map[string]bool{"always": false, "dangerous": true} {
			w, answer := asked(t, "four_eyes: "+value)
			id := w.pending()
			if o := answer("alice", id); (o.code == 0) != taken { // whom the agent acts for
				t.Errorf("%s: %+v", value, o)
			}
			if o := answer("bob", id); (o.code == 0) == taken {
				t.Errorf("%s, somebody else: %+v", value, o)
			}
		}
	})
	t.Run("approvals.quorum and tools.NAME.quorum", func(t *testing.T) {
		t.Parallel()
		for _, more := range []string{"approvals: {quorum: 2}\n", "tools: {delete_file: {quorum: 2}}\n"} {
			w, answer := askedWith(t, more)
			id := w.pending()
			for i, name := range []string{"alice", "alice", "bob"} {
				if o := answer(name, id); (o.code != 0) != (i == 1) {
					t.Errorf("%s, answer %d: %+v", more, i, o)
				}
				if waits := strings.Contains(w.must("", "approval", "list"), id); waits != (i < 2) {
					t.Errorf("%s, after answer %d it waits: %v", more, i, waits)
				}
			}
		}
	})
	t.Run("approvals.max_pending and approvals.rate", func(t *testing.T) {
		t.Parallel()
		for key, freed := range map[string]bool{"max_pending: 1": true, "rate: 1/1h": false} {
			w, answer := asked(t, key)
			again := func() bool { return w.call("delete_file", map[string]any{"path": "y"}).code == cli.ExitPending }
			if again() {
				t.Errorf("%s: another is asked about", key)
			}
			if o := answer("alice", w.pending()); o.code != 0 {
				t.Errorf("%s: %+v", key, o)
			}
			if again() != freed {
				t.Errorf("%s: asked about after the first was answered: %v", key, !freed)
			}
		}
	})
	t.Run("sandboxing.subprocess.timeout_seconds and kill_grace_seconds", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, standard, "sandboxing: {subprocess: {timeout_seconds: 1, kill_grace_seconds: 1}}\n").init()
		began := time.Now()
		o := w.shell("trap '' TERM; echo begun; sleep 20; sleep 20")
		if o.code == 0 || !strings.Contains(o.out, "begun") || !strings.Contains(o.out, "the time limit") || time.Since(began) > 15*time.Second {
			t.Errorf("%v: %+v", time.Since(began), o)
		}
	})
	t.Run("sandboxing.subprocess.workspace_only", func(t *testing.T) {
		t.Parallel()
		for _, only := range []bool{true, false} {
			w := newWorld(t, "level: standard\noverrides: {file_system: full, terminal: full}\n", fmt.Sprintf("sandboxing: {subprocess: {workspace_only: %v}}\n", only)).init()
			o := w.call("shell_command", map[string]any{"command": "pwd", "directory": "/proc"})
			if (o.code == 0) == only {
				t.Errorf("workspace_only %v: %+v", only, o)
			}
		}
	})
	t.Run("sandboxing.subprocess.restricted_path and extra_safe_path_prefixes", func(t *testing.T) {
		t.Parallel()
		extra := filepath.Join(base(t), "writ-extra-bin")
		os.MkdirAll(extra, 0o755)
		defer os.RemoveAll(extra)
		if err := os.WriteFile(filepath.Join(extra, "hello-writ"), []byte("#!/bin/sh\necho hello\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		for more, want := range map[string]bool{
			"": false,
			"sandboxing: {subprocess: {extra_safe_path_prefixes: [" + extra + "]}}\n": true,
			"sandboxing: {subprocess: {restricted_path: false}}\n":                    true,
		} {
			w := newWorld(t, "level: standard\noverrides: {file_system: full, terminal: full}\n", more)
			w.path = extra + ":" + os.Getenv("PATH")
			w.init()
			if o := w.shell("hello-writ"); (o.code == 0) != want {
				t.Errorf("%q: %+v", more, o)
			}
		}
	})
	t.Run("tool_access.restricted_commands", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "level: standard\n", "tool_access: {restricted_commands: [cat]}\n").init()
		if o := w.shell("echo x > f; cat f"); o.code != 0 {
			t.Errorf("listed: %+v", o)
		}
		if o := w.shell("ls"); o.code == 0 {
			t.Errorf("not listed: %+v", o)
		}
	})
	t.Run("sandboxing.default_backend and overrides", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, "level: standard\n", "sandboxing: {default_backend: subprocess, overrides: {terminal: subprocess}}\n").init()
		if o := w.run("", "call", "shell_command", "command=true", "--json"); o.code != 0 || !strings.Contains(o.out, `"driver": "subprocess"`) {
			t.Errorf("%+v", o)
		}
		need.Programs(t, "bwrap")
		w = newWorld(t, "level: standard\n", "sandboxing: {default_backend: bwrap}\n").init()
		if o := w.run("", "call", "shell_command", "command=echo x >made; cat made", "--json"); o.code != 0 || !strings.Contains(o.out, `"driver": "bwrap"`) || !strings.Contains(o.out, "x\\n") {
			t.Errorf("%+v", o)
		}
		if out := w.must("", "doctor"); !strings.Contains(out, "driver bwrap does not keep protected names") {
			t.Errorf("doctor: %s", out)
		}
		for _, choice := range []string{"", "sandboxing: {default_backend: native}\n", "sandboxing: {default_backend: subprocess, overrides: {terminal: native}}\n"} {
			w := newWorld(t, "level: standard\n", choice).init()
			if o := w.run("", "call", "shell_command", "command=true", "--json"); o.code != 0 || !strings.Contains(o.out, `"driver": "native"`) {
				t.Errorf("%q: %+v", choice, o)
			}
		}
	})
}

// asked is a world with keys of approvals, where alice is an admin, bob an approver and
// one request waits; answer approves.
func asked(t *testing.T, approvals string) (w *world, answer func(name, id string) outcome) {
	t.Helper()
	return askedWith(t, "approvals: {"+approvals+"}\n")
}

func askedWith(t *testing.T, more string) (w *world, answer func(name, id string) outcome) {
	t.Helper()
	w = newWorld(t, standard, more).init()
	w.add("bob", "approver")
	for _, name := range []string{"x", "y"} {
		w.write(filepath.Join(w.ws, name), "x")
	}
	if o := w.call("delete_file", map[string]any{"path": "x"}); o.code != cli.ExitPending {
		t.Fatalf("%s: %+v", more, o)
	}
	return w, func(name, id string) outcome { return w.by(name, nil, "approval", "approve", id) }
}

func (w *world) edit(old, new string) {
	w.t.Helper()
	b, err := os.ReadFile(w.config)
	if err != nil || !strings.Contains(string(b), old) {
		w.t.Fatalf("no %q in the configuration: %v", old, err)
	}
	if err := os.WriteFile(w.config, []byte(strings.Replace(string(b), old, new, 1)), 0o600); err != nil {
		w.t.Fatal(err)
	}
}
