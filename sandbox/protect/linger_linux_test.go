package protect

import (
	"os"
	"path/filepath"
	"slices"
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
