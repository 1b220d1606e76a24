package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/need"
	"golang.org/x/sys/unix"
)

// What is mounted and unmounted in a workspace while the daemon runs, boxes see as it is when
// they begin, and protected names in it are kept.
func TestMountedLater(t *testing.T) {
	t.Parallel()
	need.Root(t)
	for _, kind := range []string{"per-agent", "per-call", "docker"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var w *world
			if kind == "docker" {
				w, _ = docked(t, ", mount_mode: rw", ", lifecycle: {strategy: per-agent, idle: 1h}")
			} else {
				w = newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "sandboxing: {lifecycle: {strategy: "+kind+", idle: 1h}}\n").init()
			}
			at := filepath.Join(w.ws, "deep", "later")
			if err := os.MkdirAll(at, 0o755); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command("chown", "-R", "65534:65534", w.ws).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			sees := func(want string) {
				t.Helper()
				for range 3 { // also in boxes that are kept, or were made ahead
					if o := w.shell("cd deep/later && cat which && echo x >>file && ls -A | tr '\\n' ' '"); o.code != 0 || !strings.Contains(o.out, want) {
						t.Fatalf("want %q: %+v", want, o)
					}
				}
			}
			mount := func(which string) {
				t.Helper()
				if err := unix.Mount("none", at, "tmpfs", 0, "mode=755,uid=65534,gid=65534"); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
				script := "set -e; git init -q; chown -R 65534:65534 .; echo " + which + " >which; chmod 644 which"
				cmd := exec.Command("sh", "-c", script)
				cmd.Dir = at
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			unmount := func() {
				t.Helper()
				w.eventually("it can be unmounted", func() bool { return unix.Unmount(at, 0) == nil })
			}
			os.WriteFile(filepath.Join(at, "which"), []byte("beneath"), 0o644)
			sees("beneath")
			mount("first")
			sees("first")
			if o := w.shell("echo x >deep/later/new && echo x >deep/later/.git/hooks/pre-commit"); o.code == 0 {
				t.Errorf("a hook could be written: %+v", o)
			}
			if _, err := os.Stat(filepath.Join(at, "new")); err != nil {
				t.Errorf("inconclusive: %v", err)
			}
			if _, err := os.Stat(filepath.Join(at, ".git/hooks/pre-commit")); err == nil {
				t.Error("a hook was written")
			}
			unmount()
			mount("second") // by the same number, where nobody looks in between
			sees("second")
			unmount()
			sees("beneath")
		})
	}
}

// What is mounted in a workspace while a command runs there, the command does not see: what
// is in there is none of its doing, and stays where it is.
func TestMountedMeanwhile(t *testing.T) {
	t.Parallel()
	need.Root(t)
	need.Programs(t, "git")
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	at := filepath.Join(w.ws, "later")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(at, 65534, 65534); err != nil {
		t.Fatal(err)
	}
	done := make(chan outcome, 1)
	go func() {
		done <- w.shell("touch begun; while test ! -e go; do sleep 0.05; done; ls -A later; git init -q later/mine")
	}()
	w.eventually("the command has begun", func() bool { _, err := os.Stat(filepath.Join(w.ws, "begun")); return err == nil })
	if err := unix.Mount("none", at, "tmpfs", 0, "mode=755,uid=65534,gid=65534"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	cmd := exec.Command("sh", "-c", "git init -q; echo '#!/bin/sh' >.git/hooks/post-commit; chmod +x .git/hooks/post-commit; chown -R 65534:65534 .; touch ../go")
	cmd.Dir = at
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	o := <-done
	if o.code != 0 || strings.Contains(o.out, ".git") || !strings.Contains(o.out+o.err, "something was mounted") {
		t.Errorf("%+v", o)
	}
	if _, err := os.Stat(filepath.Join(at, ".git/hooks/post-commit")); err != nil {
		t.Errorf("what was mounted was taken for what the command made: %v", err)
	}
}
