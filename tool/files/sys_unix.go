//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

const nonblock = syscall.O_NONBLOCK

// rename moves between two open directories, so that neither is looked up again.
func rename(from, to place) error {
	a, err1 := from.dir.Open(".")
	if err1 == nil {
		defer a.Close()
	}
	b, err2 := to.dir.Open(".")
	if err2 == nil {
		defer b.Close()
	}
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	return unix.Renameat(int(a.Fd()), from.name, int(b.Fd()), to.name)
}

// adopt gives a new file to the owner of what it replaces, or of its directory: a
// daemon that runs as root must not leave files that the agent's own commands,
// which run as the workspace's owner, cannot change.
func adopt(f *os.File, like fs.FileInfo) error {
	if os.Geteuid() != 0 {
		return nil
	}
	st, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return f.Chown(int(st.Uid), int(st.Gid))
}

// give does the same for a directory that was made.
func give(dir *os.Root, name string, like fs.FileInfo) error {
	st, ok := like.Sys().(*syscall.Stat_t)
	if os.Geteuid() != 0 || !ok {
		return nil
	}
	return dir.Lchown(name, int(st.Uid), int(st.Gid))
}
