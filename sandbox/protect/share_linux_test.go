package protect

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// two are Finders of two processes, as far as locks go, for one workspace.
func two(t *testing.T, linger time.Duration) (ws string, a, b *Finder) {
	t.Helper()
	ws = t.TempDir()
	for _, f := range []**Finder{&a, &b} {
		state := t.TempDir()
		made, err := New(Options{State: state, Quarantine: filepath.Join(state, "quarantine"), Linger: linger})
		if err != nil {
			t.Fatal(err)
		}
		*f = made
		t.Cleanup(func() { made.Close() }) // where a test has not
	}
	return ws, a, b
}

func prepared(t *testing.T, f *Finder, ws string, open func(string) bool) *Cover {
	t.Helper()
	c, err := f.Cover(t.Context(), ws, open)
	if err == nil {
		err = c.Prepare()
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func finished(t *testing.T, c *Cover) {
	t.Helper()
	if found, err := c.Done(); err != nil || len(found) > 0 {
		t.Errorf("%v %v", found, err)
	}
}

func exists(path string) bool { _, err := os.Lstat(path); return err == nil }

// Placeholders that two processes need stay until both are done, whoever made them, and
// are nobody's find.
func TestTwoProcesses(t *testing.T) {
	ws, a, b := two(t, 0)
	name := filepath.Join(ws, ".envrc")
	first := prepared(t, a, ws, nil)
	second := prepared(t, b, ws, nil)
	if len(second.Placeholders) != len(first.Placeholders) || len(second.Mounts) != len(first.Mounts) {
		t.Errorf("the second has %d placeholders and %d mounts, the first %d and %d", len(second.Placeholders), len(second.Mounts), len(first.Placeholders), len(first.Mounts))
	}
	finished(t, first)
	if !exists(name) {
		t.Fatal("the first took away what the second needs")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if !exists(name) {
		t.Fatal("the first took away what the second needs, at its end")
	}
	finished(t, second)
	if exists(name) {
		t.Error("the last one left it")
	}
	third := prepared(t, b, ws, nil)
	finished(t, third)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(ws)
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// One that was killed has left placeholders; while another needs them, recovery leaves
// them, and removes them afterwards.
func TestLeftButNeeded(t *testing.T) {
	ws, a, b := two(t, 0)
	prepared(t, a, ws, nil) // and is killed
	a.journal.file.Close()
	for _, l := range a.locks {
		os.NewFile(uintptr(l.fd), "").Close()
	}
	needs := prepared(t, b, ws, nil)
	again, err := New(Options{State: a.opts.State, Quarantine: a.opts.Quarantine})
	if err != nil {
		t.Fatal(err)
	}
	if !exists(filepath.Join(ws, ".envrc")) {
		t.Fatal("recovery took away what another process needs")
	}
	finished(t, needs)
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if last, err := New(Options{State: a.opts.State, Quarantine: a.opts.Quarantine}); err != nil || last.Close() != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(ws); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Locks of a process that was killed are swept away; those that are held are not.
func TestLocksAreSwept(t *testing.T) {
	ws, a, _ := two(t, 0)
	c := prepared(t, a, ws, nil)
	var held string
	for _, l := range a.locks {
		held = l.path
	}
	left := filepath.Join(lockHome(), "writ-0-"+filepath.Base(t.TempDir())+".lock")
	if err := os.WriteFile(left, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	sweepLocks()
	if exists(left) || !exists(held) {
		t.Errorf("left: %v, held: %v", exists(left), exists(held))
	}
	finished(t, c)
}

// A run that may write a name finds no placeholder there, unless another run needs it.
func TestInTheWay(t *testing.T) {
	ws, a, b := two(t, time.Hour)
	open := Named([]string{filepath.Join(ws, ".vscode")})
	finished(t, prepared(t, a, ws, nil)) // whose placeholders stay for an hour
	named := prepared(t, a, ws, open)
	if exists(filepath.Join(ws, ".vscode")) || !exists(filepath.Join(ws, ".claude")) {
		t.Error("a placeholder is in the way, or another is not there")
	}
	finished(t, named)
	needs := prepared(t, a, ws, nil)
	for _, f := range []*Finder{a, b} {
		c, err := f.Cover(t.Context(), ws, open)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Prepare(); err == nil || !strings.Contains(err.Error(), "/.vscode is ") || !strings.Contains(err.Error(), "kept as it is for another") {
			t.Errorf("%v", err)
		}
		finished(t, c)
	}
	finished(t, needs)

	named = prepared(t, a, ws, open)
	c, err := a.Cover(t.Context(), ws, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Prepare(); err == nil || !strings.Contains(err.Error(), "/.vscode is changed by one run and kept as it is for another; try again when the other has ended") {
		t.Errorf("%v", err)
	}
	finished(t, c)
	finished(t, named)
}

// A placeholder that is known to be there is not looked at for each run; what becomes of it
// is heard, and it is made anew.
func TestPlaceholderGoesBetweenRuns(t *testing.T) {
	ws, a, _ := two(t, time.Minute)
	git := filepath.Join(ws, ".git")
	if err := os.MkdirAll(filepath.Join(git, "objects"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 3 { // until it is known
		finished(t, prepared(t, a, ws, nil))
	}
	sure := a.held[filepath.Join(ws, ".envrc")].sure
	if sure.by == nil {
		t.Fatal("nothing is known of a placeholder after three runs")
	}
	aside := filepath.Join(ws, "aside")
	for _, c := range []struct {
		what string
		do   func() error
		name string
	}{
		{"removed", func() error { return os.Remove(filepath.Join(ws, ".envrc")) }, ".envrc"},
		{"renamed", func() error { return os.Rename(filepath.Join(ws, ".bashrc"), aside) }, ".bashrc"},
		{"written over", func() error {
			other := filepath.Join(ws, "other")
			if err := os.WriteFile(other, nil, 0o644); err != nil {
				return err
			}
			return errors.Join(os.Rename(other, filepath.Join(ws, ".zshrc")), os.Remove(filepath.Join(ws, ".zshrc")))
		}, ".zshrc"},
		{"in a directory that was exchanged", func() error {
			return errors.Join(os.Rename(git, filepath.Join(ws, "old")), os.MkdirAll(filepath.Join(git, "objects"), 0o755))
		}, ".git/hooks"},
	} {
		path := filepath.Join(ws, c.name)
		if !exists(path) {
			t.Fatalf("%s: there is none to begin with", c.name)
		}
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		if exists(path) {
			t.Fatalf("%s was %s and is there", c.name, c.what)
		}
		run := prepared(t, a, ws, nil)
		if !exists(path) {
			t.Errorf("%s was %s, and a run began without it", c.name, c.what)
		}
		finished(t, run)
	}
}

// A file that looks like a placeholder and has another name is none, whether it has it before
// another run begins or only afterwards: by that name it could be written later on.
func TestPlaceholderByAnotherName(t *testing.T) {
	for _, early := range []bool{true, false} {
		ws, a, b := two(t, 0)
		sub := filepath.Join(ws, "sub")
		name, other := filepath.Join(sub, ".mcp.json"), filepath.Join(ws, "foo")
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(os.Mkdir(sub, 0o755))
		first := prepared(t, a, ws, nil)
		must(os.WriteFile(name, nil, 0o644))
		must(os.Chmod(name, 0o444|os.ModeSticky))
		if early {
			must(os.Link(name, other))
		}
		second := prepared(t, b, sub, nil)
		if !early {
			must(os.Link(name, other))
		}
		found, err := first.Done()
		must(err)
		more, err := second.Done()
		must(err)
		if exists(name) || len(found)+len(more) == 0 {
			t.Errorf("early %v: it is there: %v, and what was found is %v, %v", early, exists(name), found, more)
		}
	}
}
