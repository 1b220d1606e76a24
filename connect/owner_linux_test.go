package connect

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/writ-run/writ/need"
)

// Root edits a file of somebody, who can still read it and its backup.
func TestWriteKeepsOwner(t *testing.T) {
	need.Root(t)
	const uid, gid = 65534, 65533
	path := filepath.Join(t.TempDir(), "c.json")
	write(t, path, "one", 0o640)
	if err := os.Chown(path, uid, gid); err != nil {
		t.Fatal(err)
	}
	backup, err := read(t, path).Write([]byte("two"), 0, noon)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, path, "two", 0o640)
	holds(t, backup, "one", 0o600)
	for _, p := range []string{path, backup} {
		info, err := os.Stat(p)
		if err != nil {
			t.Fatal(err)
		}
		if s := info.Sys().(*syscall.Stat_t); s.Uid != uid || s.Gid != gid {
			t.Errorf("%s belongs to %d:%d, want %d:%d", p, s.Uid, s.Gid, uid, gid)
		}
	}
}
