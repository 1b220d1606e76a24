package docker

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/writ-run/writ/need"
	"golang.org/x/sys/unix"
)

// What a call left is removed, and the engine's own directories above something that the
// box is shown do not keep a container from being used again.
func TestEmptyBesideTheEngines(t *testing.T) {
	need.Root(t) // to be another user
	dir, err := os.MkdirTemp("/tmp", "writ-empty-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	const nobody = 65534
	for _, made := range []struct {
		path string
		mode os.FileMode
		uid  int
	}{{dir, 0o777 | os.ModeSticky, 0}, {dir + "/theirs/ws", 0o755, 0}, {dir + "/left/deep", 0o700, nobody}} {
		if err := os.MkdirAll(made.path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(made.path, made.uid, made.uid); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(made.path, made.mode); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(filepath.Join(dir, "left"), nobody, nobody); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and the thread ends with this
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
			failed <- errno
			return
		}
		var is unix.Stat_t
		unix.Lstat(dir, &is)
		failed <- empty(dir, is.Dev)
	}()
	if err := <-failed; err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != "theirs" {
		t.Errorf("%v", left)
	}
}
