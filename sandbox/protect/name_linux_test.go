package protect

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
)

// sockets are the placeholders of a workspace that are neither directories nor files.
func sockets(c *Cover) (out []string) {
	for _, p := range c.Placeholders {
		if !p.Dir && !p.file {
			out = append(out, p.Path)
		}
	}
	return out
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	return info.Sys().(*syscall.Stat_t).Ino
}

// changed is when a file, or the number of its names, was changed last.
func changed(t *testing.T, path string) syscall.Timespec {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	return info.Sys().(*syscall.Stat_t).Ctim
}

// TestPlaceholdersAreNames: one file is made for a whole directory, and nothing of it is
// left.
func TestPlaceholdersAreNames(t *testing.T) {
	f := finder(t, Options{})
	ws := workspace(t, "sub/go.mod=x")
	c := cover(t, f, ws)
	must(t, c.Prepare())
	all := sockets(c)
	if len(all) < 10 {
		t.Fatalf("there are %d placeholders: %v", len(all), all)
	}
	for _, p := range all {
		if inode(t, p) != inode(t, all[0]) {
			t.Errorf("%s is a file of its own", p)
		}
	}
	if got := ended(t, c); len(got) > 0 {
		t.Errorf("appeared: %v", got)
	}
	for _, p := range all {
		if _, err := os.Lstat(p); err == nil {
			t.Errorf("%s is left", p)
		}
	}
}

// TestPlaceholderExchanged: what somebody has put in the place of the first one is theirs,
// and gets no other names.
func TestPlaceholderExchanged(t *testing.T) {
	f := finder(t, Options{})
	ws := workspace(t)
	first := cover(t, f, ws)
	must(t, first.Prepare())
	all := sockets(first)
	must(t, os.Remove(all[0]))
	must(t, os.WriteFile(all[0], []byte("mine"), 0o600))
	must(t, os.Remove(all[3])) // which the next run makes again
	before := changed(t, all[0])

	second := cover(t, f, ws)
	must(t, second.Prepare())
	if !slices.Contains(sockets(second), all[3]) {
		t.Fatalf("%s is not protected: %v", all[3], sockets(second))
	}
	for _, p := range all[1:] {
		if inode(t, p) == inode(t, all[0]) {
			t.Errorf("%s is another name of what somebody has put at %s", p, filepath.Base(all[0]))
		}
	}
	if changed(t, all[0]) != before {
		t.Errorf("%s had another name for a moment", all[0])
	}
	ended(t, second)
	first.Done()
	if text, err := os.ReadFile(all[0]); err == nil && string(text) != "mine" {
		t.Errorf("%s holds %q", all[0], text)
	}
}
