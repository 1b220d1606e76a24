package wrapped

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
)

// TestFind: a wrapper is root's, and so is all that leads to it (group H: PATH shadowing).
func TestFind(t *testing.T) {
	if path, err := find([]string{"/nowhere", "/usr/bin"}, "env", ""); err != nil || filepath.Dir(path) != "/usr/bin" {
		t.Fatalf("inconclusive: %s, %v", path, err)
	}
	_, err := find([]string{"/usr/bin"}, "no-such-wrapper", "install it")
	if want := "sandbox_unavailable: no-such-wrapper is not installed in [/usr/bin]; install it"; writ.KindOf(err) != writ.SandboxUnavailable || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("%v", err)
	}
	t.Setenv("PATH", t.TempDir())
	dir, err := filepath.EvalSymlinks(t.TempDir()) // below a directory that everybody can write to
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "env"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if path, err := find([]string{dir}, "env", ""); writ.KindOf(err) != writ.SandboxUnavailable || !strings.Contains(err.Error(), "can be changed by others than root; reinstall it") {
		t.Errorf("%s, %v", path, err)
	}
}

func TestTrusted(t *testing.T) {
	need.Root(t)
	dir, err := os.MkdirTemp("/opt", "writ-test-")
	if err != nil {
		need.Lacking(t, "there is no directory that only root can write to: %v", err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, "wrapper")
	for _, tc := range []struct {
		name        string
		mode, above os.FileMode
		uid, gid    int
		good        bool
		because     string
	}{
		{name: "root's", mode: 0o755, above: 0o755, good: true},
		{name: "root's, set-uid", mode: 0o755 | os.ModeSetuid, above: 0o755, good: true},
		{name: "another's", mode: 0o755, above: 0o755, uid: 1, because: file},
		{name: "writable by all", mode: 0o757, above: 0o755, because: file},
		{name: "writable by a group", mode: 0o775, above: 0o755, gid: 1, because: file},
		{name: "in a directory that is writable by all", mode: 0o755, above: 0o777, because: dir},
		{name: "no program", mode: 0o644, above: 0o755, because: "is not a program"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := errors.Join(os.WriteFile(file, nil, 0o755), os.Chown(file, tc.uid, tc.gid), os.Chmod(file, tc.mode), os.Chmod(dir, tc.above))
			if err != nil {
				t.Fatal(err)
			}
			err = trusted(file)
			if (err == nil) != tc.good || err != nil && !strings.Contains(err.Error(), tc.because) {
				t.Errorf("%v", err)
			}
		})
	}
}
