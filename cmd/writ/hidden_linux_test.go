package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/need"
)

// A command that may write a home with writ's own files in it neither sees them nor puts others
// in their place, whichever directory above them it tries to rename.
func TestRunAroundWritsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	home := w.directory(t, map[string]string{".config/writ/writ.yaml": "version: 1 # MINE\n", ".local/state/writ/key": "MINE\n", ".config/other/x": "y", "other/cf/z": ""})
	w.ownAll(t, home)
	own := []string{"HOME=" + home}
	o := w.confinesIn(home, own, "--", "bash", "-c", `mv .config/other .config/o2 && mv .config/o2 .config/other && echo mine >.config/new && echo alive
		for d in .config .local .cache; do mv $d ${d}2; done
		mkdir -p .config/writ .local/state/writ .cache/writ/build; cat .config/writ/writ.yaml .local/state/writ/key
		echo EVIL >.config/writ/writ.yaml; echo EVIL >.local/state/writ/key; ln -s /etc .cache/writ/build; echo "cache: $GOCACHE"`)
	if !strings.Contains(o.out, "alive\n") || strings.Contains(o.out, "MINE") || !strings.Contains(o.out, "cache: \n") || strings.Count(o.err, "resource busy") != 3 {
		t.Errorf("%+v", o)
	}
	if !strings.Contains(o.err, "the command can change your home") {
		t.Errorf("it does not say what it is: %s", o.err)
	}
	for path, want := range map[string]string{".config/writ/writ.yaml": "version: 1 # MINE\n", ".local/state/writ/key": "MINE\n", ".config/new": "mine\n"} {
		if text, err := os.ReadFile(filepath.Join(home, path)); err != nil || string(text) != want {
			t.Errorf("%s: %q %v", path, text, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(home, ".cache/writ/build")); err == nil {
		t.Error("a command has put something where build caches lie")
	}
	if o := w.confinesIn(home, own, "--no-caches", "--", "bash", "-c", "mkdir -p .cache/writ/build/x"); o.code == 0 || !strings.Contains(o.err, "Read-only file system") && !strings.Contains(o.err, "Permission denied") {
		t.Errorf("without caches: %+v", o)
	}
	if o := w.confinesIn(w.directory(t, nil), own, "--no-caches", "--write", filepath.Join(home, ".cache/writ"), "--", "true"); o.code != cli.ExitNotStarted {
		t.Errorf("where build caches lie: %+v", o)
	}
	links := w.directory(t, map[string]string{"real/writ/writ.yaml": "version: 1\n"})
	if err := os.Symlink("real", filepath.Join(links, ".config")); err != nil {
		t.Fatal(err)
	}
	w.ownAll(t, links)
	if o := w.confinesIn(links, []string{"HOME=" + links}, "--", "true"); o.code != cli.ExitNotStarted || !strings.Contains(o.err, ".config is a symlink by which writ finds") {
		t.Errorf("through a symlink: %+v", o)
	}
	missing := filepath.Join(home, "other", "cf", "w.yaml")
	if o := w.confinesIn(home, append(own, "WRIT_CONFIG="+missing), "--", "touch", missing); o.code != cli.ExitNotStarted || !strings.Contains(o.err, "w.yaml is writ's own and does not exist") {
		t.Errorf("%+v", o)
	}
}

// A symlink where build caches lie, or a package cache, leads no command anywhere, and nothing is
// removed through it.
func TestCachesThroughSymlinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	dir, precious := w.directory(t, nil), w.directory(t, map[string]string{"db/x": "y", "0123456789abcdef/x": "y"})
	w.ownAll(t, dir)
	old := time.Now().Add(-400 * 24 * time.Hour)
	for _, at := range []string{"db", "0123456789abcdef"} {
		if err := os.Chtimes(filepath.Join(precious, at), old, old); err != nil {
			t.Fatal(err)
		}
	}
	echo := []string{"--", "sh", "-c", `echo "$GOCACHE $GOMODCACHE"`}
	cache := filepath.Join(w.home, ".cache", "writ", "build")
	at := filepath.Dir(strings.Fields(w.confinesIn(dir, nil, echo...).out + " /none/none")[0])
	if filepath.Dir(at) != cache {
		t.Fatalf("the build cache is at %s", at)
	}
	for _, through := range []string{at, cache, filepath.Dir(cache)} {
		if err := os.RemoveAll(through); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(precious, through); err != nil {
			t.Fatal(err)
		}
		if o := w.confinesIn(dir, nil, echo...); o.code != cli.ExitNotStarted || !strings.Contains(o.err, "is not a directory of yours") {
			t.Errorf("%s: %+v", through, o)
		}
		if err := os.Remove(through); err != nil {
			t.Fatal(err)
		}
	}
	entries, _ := os.ReadDir(precious)
	if len(entries) != 2 {
		t.Errorf("left of what nobody was to touch: %v", entries)
	}
	mod := filepath.Join(w.home, "go", "pkg", "mod")
	if err := os.MkdirAll(filepath.Dir(mod), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(precious, mod), os.Lchown(mod, max(os.Geteuid(), 1), -1)); err != nil {
		t.Fatal(err)
	}
	if o := w.confinesIn(dir, nil, echo...); o.code != 0 || strings.Contains(o.out, precious) || !strings.Contains(o.err, "leads to "+precious+" by a symlink") {
		t.Errorf("%+v", o)
	}
}

// A directory that has another owner by now gets a cache of that owner's, and not what the one
// before has put there.
func TestBuildCacheOfAnother(t *testing.T) {
	t.Parallel()
	need.Root(t)
	w := newWorld(t, standard, "")
	dir := w.directory(t, nil)
	w.ownAll(t, dir)
	show := []string{"--", "sh", "-c", `mkdir -p "$GOCACHE"; ls "$GOCACHE"; touch "$GOCACHE/mine"`}
	for i, owner := range []int{nobody, nobody, nobody - 1} {
		if err := os.Chown(dir, owner, owner); err != nil {
			t.Fatal(err)
		}
		if o := w.confinesIn(dir, nil, show...); o.code != 0 || (o.out == "mine\n") != (i == 1) {
			t.Errorf("%d: %+v", i, o)
		}
	}
}

// A box has no keyring of whoever started it: nobody's command would have root's.
func TestRunKeyring(t *testing.T) {
	need.Root(t)
	w := newWorld(t, standard, "")
	runtime.LockOSThread() // a keyring is a thread's
	if _, err := unix.KeyctlJoinSessionKeyring("writ-test"); err != nil {
		need.Lacking(t, "this kernel has no keyrings: %v", err)
	}
	if _, err := unix.AddKey("user", "writ-test-canary", []byte("x"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
		t.Fatal(err)
	}
	if mine, err := exec.Command("cat", "/proc/keys").Output(); err != nil || !strings.Contains(string(mine), "writ-test-canary") {
		need.Lacking(t, "children do not have a keyring here either: %v", err)
	}
	if o := w.confines("", "--", "cat", "/proc/keys"); o.code != 0 || strings.Contains(o.out, "canary") || !strings.Contains(o.out, "keyring") {
		t.Errorf("%+v", o)
	}
}

// A symlink may lead to another one, which the command can replace.
func TestRunAroundLinksOfLinks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	home, dir := w.directory(t, nil), w.directory(t, map[string]string{"v2/config/other": "x"})
	if err := errors.Join(os.Symlink("v2", filepath.Join(dir, "dotfiles")), os.Symlink(filepath.Join(dir, "dotfiles", "config"), filepath.Join(home, ".config"))); err != nil {
		t.Fatal(err)
	}
	w.ownAll(t, dir)
	w.ownAll(t, home)
	if o := w.confinesIn(dir, []string{"HOME=" + home}, "--", "rm", "dotfiles"); o.code != cli.ExitNotStarted || !strings.Contains(o.err, "dotfiles is a symlink by which writ finds") {
		t.Errorf("%+v", o)
	}
	if o := w.confinesIn(w.directory(t, nil), []string{"HOME=" + home}, "--", "true"); o.code != 0 {
		t.Errorf("elsewhere: %+v", o)
	}
}

// A package cache may be a symlink of the system's, but not one to what a user has made of it.
func TestCachesThroughLinksOfLinks(t *testing.T) {
	t.Parallel()
	need.Root(t)
	w := newWorld(t, standard, "")
	dir, precious, at := w.directory(t, nil), w.directory(t, map[string]string{"cache/download/x": "y"}), w.directory(t, nil)
	w.ownAll(t, dir)
	theirs, ours := filepath.Join(at, "theirs"), filepath.Join(at, "ours")
	if err := errors.Join(os.Symlink(precious, theirs), os.Symlink("theirs", ours), os.Chown(at, 0, 0)); err != nil {
		t.Fatal(err)
	}
	echo := []string{"--", "sh", "-c", `echo "$GOMODCACHE"`}
	if o := w.confinesIn(dir, []string{"GOMODCACHE=" + ours}, echo...); o.out != precious+"\n" {
		t.Fatalf("inconclusive: %+v", o)
	}
	if err := os.Lchown(theirs, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(dir, ours)
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{ours, relative} {
		if o := w.confinesIn(dir, []string{"GOMODCACHE=" + value}, echo...); o.code != 0 || strings.Contains(o.out, precious) {
			t.Errorf("%+v", o)
		}
	}
}

// What writ makes while a command runs that can read what it is in, the command does not see.
func TestRunBeforeAnything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	home, dir := w.directory(t, map[string]string{"note": "mine\n"}), w.directory(t, nil)
	w.ownAll(t, dir)
	w.ownAll(t, home)
	done := make(chan outcome, 1)
	go func() {
		done <- w.confinesIn(dir, []string{"HOME=" + home}, "--read", home, "--", "sh", "-c",
			`touch up; while ! [ -e go ]; do sleep 0.05; done; cat `+home+`/note `+home+`/late; cat `+home+`/.local/state/writ/keys/seal.key `+home+`/.config/writ/writ.yaml`)
	}()
	w.eventually("the command has begun", func() bool { _, err := os.Stat(filepath.Join(dir, "up")); return err == nil })
	for path, text := range map[string]string{".local/state/writ/keys/seal.key": "KEY", ".config/writ/writ.yaml": "KEY", "late": "late\n"} {
		at := filepath.Join(home, path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if o := <-done; o.out != "mine\nlate\n" {
		t.Errorf("%+v", o)
	}
}

// A command that is run at home can make anything of a ~/.gitconfig that is not there: the next
// run neither reads what does not end nor waits for it.
func TestRunGitconfig(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	dir := w.directory(t, nil)
	w.ownAll(t, dir)
	at := filepath.Join(w.home, ".gitconfig")
	for name, make := range map[string]func() error{
		"a pipe":   func() error { return unix.Mkfifo(at, 0o644) },
		"a device": func() error { return os.Symlink("/dev/full", at) },
		"large":    func() error { return errors.Join(os.WriteFile(at, nil, 0o644), os.Truncate(at, 1<<40)) },
		"a person's": func() error {
			return os.WriteFile(at, []byte("[user]\n\tname = Ada\n"), 0o644)
		},
	} {
		if err := make(); err != nil {
			t.Fatal(err)
		}
		o := w.confinesIn(dir, []string{"XDG_CONFIG_HOME="}, "--", "sh", "-c", "grep name ~/.gitconfig; echo ran")
		if want := map[bool]string{true: "\tname = \"Ada\"\nran\n", false: "ran\n"}[name == "a person's"]; o.out != want {
			t.Errorf("%s: %+v", name, o)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
}

// Wherever the configuration says that writ's own is, it is not found by a symlink that the
// command can replace; and a file of it that is not there yet is made by nobody else.
func TestRunAroundLinksOfStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	for name, c := range map[string]struct{ config, link, to, says string }{
		"the store":     {"store: {path: ~/proj/data/st}\n", "proj/data", "../data", "proj/data is a symlink by which writ finds"},
		"the witness":   {"store: {witness: ~/proj/data/w}\n", "proj/data", "../data", "proj/data is a symlink by which writ finds"},
		"the tools":     {"", ".config/writ/tools", "../../proj/cur/tools", "proj/cur is a symlink by which writ finds"},
		"a file of its": {"store: {witness: ~/proj/seal}\n", "", "", "proj/seal is writ's own and does not exist"},
	} {
		home := w.directory(t, map[string]string{".config/writ/writ.yaml": "version: 1\n" + c.config, "data/st/x": "", "proj/v1/tools/x": ""})
		if c.link != "" {
			if err := os.Symlink(c.to, filepath.Join(home, c.link)); err != nil {
				t.Fatal(err)
			}
		}
		if name == "the tools" {
			if err := os.Symlink("v1", filepath.Join(home, "proj", "cur")); err != nil {
				t.Fatal(err)
			}
		}
		w.ownAll(t, home)
		if o := w.confinesIn(filepath.Join(home, "proj"), []string{"HOME=" + home}, "--", "true"); o.code != cli.ExitNotStarted || !strings.Contains(o.err, c.says) {
			t.Errorf("%s: %+v", name, o)
		}
		if _, err := os.Lstat(filepath.Join(home, "proj", "seal")); err == nil {
			t.Errorf("%s: something was made in its place", name)
		}
		if o := w.confinesIn(filepath.Join(home, "data"), []string{"HOME=" + home}, "--", "true"); name == "a file of its" && o.code != 0 {
			t.Errorf("elsewhere: %+v", o)
		}
	}
}

// Without a home nothing is made where the command happens to run.
func TestRunWithoutHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	dir := w.directory(t, nil)
	w.ownAll(t, dir)
	for _, home := range []string{"HOME=", "HOME=relative"} {
		if o := w.confinesIn(dir, []string{home, "XDG_STATE_HOME="}, "--config", w.config, "--", "true"); o.code != cli.ExitNotStarted || !strings.Contains(o.err, "there is no home: neither $XDG_STATE_HOME nor $HOME") {
			t.Errorf("%s: %+v", home, o)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
