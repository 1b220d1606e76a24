package wrapped

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

// TestJobIsBytes: arguments and names need not be text.
func TestJobIsBytes(t *testing.T) {
	j := Job{Path: "/\xff", Argv: []string{"", "\xff\xfe", "a\nb"}, Env: []string{"A=\x80"}, Hidden: []File{{Path: "/\xc0", Dev: 1, Ino: 1 << 60}}}
	text, err := j.encode()
	if err != nil {
		t.Fatal(err)
	}
	passed, got, err := takeJob(bytes.NewReader(append(text, msgTerm)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(j, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if !bytes.Equal(passed, text[4:]) {
		t.Error("what is passed on is not what came")
	}
	if _, _, err := takeJob(bytes.NewReader(text[:len(text)-1])); err == nil {
		t.Error("half a job was taken")
	}
	if _, _, err := takeJob(bytes.NewReader([]byte{0xff, 0xff, 0xff, 0xff})); err == nil {
		t.Error("a job without end was taken")
	}
}

func TestUnescape(t *testing.T) {
	for in, want := range map[string]string{`/a`: "/a", `/a\040b`: "/a b", `/a\011\012`: "/a\t\n", `/a\134040`: `/a\040`} {
		if got := unescape(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
