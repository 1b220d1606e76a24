package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Keys whose effect shows only in the running program (I13); the others bite in
// package config's own table.
func TestKeysThatBiteInTheDaemon(t *testing.T) {
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
		w := newWorld(t, standard, "approvals: {expiry: 1s}\n").init()
		args := map[string]any{"path": "x"}
		w.call("delete_file", args)
		id := w.pending()
		time.Sleep(1100 * time.Millisecond)
		if o := w.run(pass+"\n", "approval", "approve", id, "--passphrase-stdin"); o.code == 0 {
			t.Errorf("approved after its time: %+v", o)
		}
	})
	t.Run("sandboxing.subprocess.timeout_seconds and kill_grace_seconds", func(t *testing.T) {
		w := newWorld(t, standard, "sandboxing: {subprocess: {timeout_seconds: 1, kill_grace_seconds: 1}}\n").init()
		began := time.Now()
		o := w.shell("trap '' TERM; echo begun; sleep 20; sleep 20")
		if o.code == 0 || !strings.Contains(o.out, "begun") || !strings.Contains(o.out, "the time limit") || time.Since(began) > 15*time.Second {
			t.Errorf("%v: %+v", time.Since(began), o)
		}
	})
	t.Run("sandboxing.subprocess.workspace_only", func(t *testing.T) {
		for _, only := range []bool{true, false} {
			w := newWorld(t, "level: standard\noverrides: {file_system: full, terminal: full}\n", fmt.Sprintf("sandboxing: {subprocess: {workspace_only: %v}}\n", only)).init()
			o := w.call("shell_command", map[string]any{"command": "pwd", "directory": "/proc"})
			if (o.code == 0) == only {
				t.Errorf("workspace_only %v: %+v", only, o)
			}
		}
	})
	t.Run("sandboxing.subprocess.restricted_path and extra_safe_path_prefixes", func(t *testing.T) {
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
		w := newWorld(t, "level: standard\n", "tool_access: {restricted_commands: [cat]}\n").init()
		if o := w.shell("echo x > f; cat f"); o.code != 0 {
			t.Errorf("listed: %+v", o)
		}
		if o := w.shell("ls"); o.code == 0 {
			t.Errorf("not listed: %+v", o)
		}
	})
	t.Run("sandboxing.default_backend and overrides", func(t *testing.T) {
		w := newWorld(t, "level: standard\n", "sandboxing: {default_backend: subprocess, overrides: {terminal: subprocess}}\n").init()
		if o := w.run("", "call", "shell_command", "command=true", "--json"); o.code != 0 || !strings.Contains(o.out, `"driver": "subprocess"`) {
			t.Errorf("%+v", o)
		}
	})
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
