package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-run/writ/need"
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

// What the host mounts during a call, somewhere else, hides nothing that the call moves to where
// it counts.
func TestMountedElsewhere(t *testing.T) {
	t.Parallel()
	need.Root(t)
	need.Programs(t, "git")
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	at := filepath.Join(w.ws, "mm")
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if o := w.shell("mkdir node_modules && git init -q node_modules/ev && echo id >node_modules/ev/.git/hooks/pre-commit"); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	time.Sleep(20 * time.Millisecond) // what was made then is older than the next call
	done := make(chan outcome, 1)
	go func() { done <- w.shell("touch begun; while ! test -e go; do sleep 0.05; done; mv node_modules/ev ev") }()
	w.eventually("the command has begun", func() bool { _, err := os.Stat(filepath.Join(w.ws, "begun")); return err == nil })
	if err := unix.Mount("none", at, "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	if err := os.WriteFile(filepath.Join(w.ws, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	o := <-done
	if _, err := os.Stat(filepath.Join(w.ws, "ev/.git/hooks/pre-commit")); err == nil || !strings.Contains(o.out, "ev/.git/hooks/pre-commit") {
		t.Errorf("a hook is there: %v %+v", err, o)
	}
}

// A directory in which something is mounted can be renamed, which the kernel does not tell as
// a change of mounts: calls afterwards see what is there, and names in it are kept.
func TestMountedAndMoved(t *testing.T) {
	t.Parallel()
	need.Root(t)
	need.Programs(t, "git")
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	aside := filepath.Join(w.home, "aside")
	at := filepath.Join(w.ws, "moved", "at")
	sh := func(script string) {
		t.Helper()
		if out, err := exec.Command("sh", "-ec", script).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	sh("mkdir -p " + aside + "/at; chown -R 65534:65534 " + aside)
	if err := unix.Mount("none", filepath.Join(aside, "at"), "tmpfs", 0, "mode=755,uid=65534,gid=65534"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH); unix.Unmount(filepath.Join(aside, "at"), unix.MNT_DETACH) })
	sh("git init -q " + aside + "/at/repo; chown -R 65534:65534 " + aside)
	if o := w.shell("true"); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	sh("mv " + aside + " " + filepath.Dir(at))
	o := w.shell("ls moved/at; echo x >moved/at/repo/new; echo x >moved/at/repo/.git/hooks/pre-commit; true")
	if o.code != 0 || !strings.Contains(o.out, "repo\n") {
		t.Errorf("what is mounted there is not seen: %+v", o)
	}
	if _, err := os.Stat(filepath.Join(at, "repo/new")); err != nil {
		t.Errorf("inconclusive: %v", err)
	}
	if _, err := os.Stat(filepath.Join(at, "repo/.git/hooks/pre-commit")); err == nil {
		t.Error("a hook was written")
	}
	// What was beneath all the time comes to light by the host's doing, not by that of a
	// command which renames what is around it.
	sh("umount " + at + "; echo mine >" + at + "/.envrc; chown 65534 " + at + "/.envrc; mount -t tmpfs -o mode=755,uid=65534 none " + at)
	if o := w.shell("true"); o.code != 0 {
		t.Fatalf("%+v", o)
	}
	done := make(chan outcome, 1)
	go func() { done <- w.shell("mv moved again && touch begun && while test ! -e go; do sleep 0.05; done") }()
	w.eventually("the command has begun", func() bool { _, err := os.Stat(filepath.Join(w.ws, "begun")); return err == nil })
	t.Cleanup(func() { unix.Unmount(filepath.Join(w.ws, "again", "at"), unix.MNT_DETACH) })
	sh("umount " + w.ws + "/again/at; touch " + w.ws + "/go")
	if o := <-done; o.code != 0 {
		t.Errorf("%+v", o)
	}
	if b, err := os.ReadFile(filepath.Join(w.ws, "again", "at", ".envrc")); string(b) != "mine\n" {
		t.Errorf("what was there before is gone: %v", err)
	}
}

// While something is mounted and unmounted, calls that begin see one or the other, with its
// protected names kept; longer with WRIT_SOAK.
func TestMountedRace(t *testing.T) {
	t.Parallel()
	need.Root(t)
	need.Programs(t, "git")
	times := 12
	if os.Getenv("WRIT_SOAK") != "" {
		times = 300
	}
	w := newWorld(t, "level: standard\noverrides: {file_system: workspace_only, terminal: full}\n", "").init()
	volume, at := filepath.Join(w.home, "volume"), filepath.Join(w.ws, "at")
	repo := filepath.Join(volume, "r")
	for _, dir := range []string{repo, at} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("sh", "-ec", "git init -q "+repo+"; chown -R 65534:65534 "+volume+" "+at).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
	seen := 0
	for n := 0; n < times || seen == 0 && n < 100; n++ {
		if err := unix.Mount(volume, at, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		done := make(chan outcome, 1)
		go func() {
			done <- w.shell("echo x >at/r/seen; echo x >at/r/.git/hooks/pre-commit; echo '#' >>at/r/.git/config; true")
		}()
		time.Sleep(time.Duration(n%12*(1+n/12)) * 3 * time.Millisecond) // on a busy machine calls take longer to begin
		w.eventually("it can be unmounted", func() bool { return unix.Unmount(at, 0) == nil })
		if o := <-done; o.code != 0 && !strings.Contains(o.err, "try again") {
			t.Errorf("%+v", o)
		}
		if os.Remove(filepath.Join(repo, "seen")) == nil {
			seen++
		}
		text, err := os.ReadFile(filepath.Join(repo, ".git/config"))
		if _, hook := os.Stat(filepath.Join(repo, ".git/hooks/pre-commit")); hook == nil || err != nil || strings.Contains(string(text), "#") {
			t.Fatalf("a protected name was written, %d: %v", n, err)
		}
	}
	if seen == 0 {
		t.Error("inconclusive: no call saw what was mounted")
	}
}
