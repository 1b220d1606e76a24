package protect

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Placeholders that linger are the next run's, are gone when nobody comes, and at once
// when the Finder closes; what was made of one is not lost, and is not taken for one.
func TestLinger(t *testing.T) {
	root := workspace(t, "file")
	state := t.TempDir()
	f, err := New(Options{State: state, Quarantine: filepath.Join(state, "quarantine"), Linger: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c := cover(t, f, root)
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	there := func() bool {
		return slices.Contains(names(t, root), ".envrc") && slices.Contains(names(t, root), ".vscode")
	}
	if got := ended(t, c); len(got) != 0 || !there() {
		t.Fatalf("%v, lingering: %v", got, there())
	}
	before, err := os.Lstat(filepath.Join(root, ".vscode"))
	if err != nil {
		t.Fatal(err)
	}
	c = cover(t, f, root)
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	if now, err := os.Lstat(filepath.Join(root, ".vscode")); err != nil || !os.SameFile(now, before) {
		t.Errorf("it was made anew: %v", err)
	}
	// Somebody of the host fills one while the run goes on.
	mine := filepath.Join(root, ".vscode", "mine")
	if err := os.Chmod(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := ended(t, c); len(got) != 1 {
		t.Errorf("a placeholder that was filled: %v", got)
	}
	for end := time.Now().Add(10 * time.Second); there() || slices.Contains(names(t, root), ".envrc"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("they are left: %v", names(t, root))
		}
	}
	c = cover(t, f, root)
	if err := c.Prepare(); err != nil {
		t.Fatal(err)
	}
	ended(t, c)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if got := names(t, root); !slices.Equal(got, []string{"file"}) {
		t.Errorf("left after the end: %v", got)
	}
}

// A run that began earlier has nothing over the placeholders that a later one needed. What it
// makes of them while they linger, or when they have gone, is found at its end; with another
// run in between, which does not take them for placeholders either.
func TestFilledWhileLingering(t *testing.T) {
	for _, between := range []string{"nothing", "a run", "a directory that cannot be read"} {
		t.Run(between, func(t *testing.T) {
			root := workspace(t, "file")
			f := finder(t, Options{Linger: time.Minute})
			first := prepared(t, f, root, nil)
			for _, item := range []string{"app/.git/HEAD=ref: refs/heads/main", "app/.git/objects/", "app/.git/refs/"} {
				put(t, root, item)
			}
			finished(t, prepared(t, f, root, nil))
			at := func(rel string) string { return filepath.Join(root, "app", rel) }
			fill := func(name, text string, mode os.FileMode) {
				t.Helper()
				if err := errors.Join(os.Chmod(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), 0o644), os.Chmod(filepath.Dir(name), mode)); err != nil {
					t.Fatal(err)
				}
			}
			long := filepath.Join(at(".idea"), strings.Repeat("x", 255)) // which no small buffer holds
			fill(long, "x", os.ModeSticky|0o555)
			if err := errors.Join(os.Chmod(at(".git/config"), 0o644), os.WriteFile(at(".git/config"), []byte("[core]\n\tfsmonitor = evil\n"), 0o644)); err != nil {
				t.Fatal(err)
			}
			fill(at(".git/hooks/post-index-change"), "evil", os.ModeSticky|0o555)
			mode := os.FileMode(0o755)
			if between == "a directory that cannot be read" {
				mode = 0
			}
			fill(at(".vscode/tasks.json"), "{}", mode)
			var got []string
			if between == "a run" {
				got = ended(t, prepared(t, f, root, nil)) // whoever comes upon it
			}
			got = append(got, ended(t, first)...)
			slices.Sort(got)
			if want := []string{"app/.git/config", "app/.git/hooks", "app/.idea", "app/.vscode"}; !slices.Equal(got, want) {
				t.Errorf("found %v, want %v", got, want)
			}
			for _, rel := range []string{".git/config", ".git/hooks/post-index-change", ".vscode/tasks.json"} {
				if text, err := os.ReadFile(at(rel)); err == nil && len(text) > 0 {
					t.Errorf("%s is there still: %s", rel, text)
				}
			}
			finished(t, prepared(t, f, root, nil)) // which nothing keeps from beginning
		})
	}
}
