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
// Unless replace is set, what stands at the destination stays.
func rename(from, to place, replace bool) error {
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
	if !replace {
		err := renameNew(int(a.Fd()), from.name, int(b.Fd()), to.name)
		if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
			return err
		}
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

// give does the same for a directory that was made. It goes by the descriptor: by
// name, somebody could put another file there to be given away.
func give(dir *os.Root, like fs.FileInfo) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	return adopt(d, like)
}
