package protect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// A pool keeps empty directories to be moved in as placeholders and back, and a socket to
// be linked to: a filesystem that is made to make and remove files over and over gets a
// hundred times slower at it (ext4 passes over numbers that were in use lately). It works
// where the state directory and the workspace are on one mount; elsewhere placeholders are
// made and removed. It is guarded by the Finder.
type pool struct {
	dir  int
	path string
	free []string
	made int
	far  map[uint64]bool // devices to which nothing can be moved or linked from here
}

// socket is the name of the one that placeholders are links to.
const socket = "socket"

// maxFree bounds the directories that are kept.
const maxFree = 256

// openPool removes what a process before has kept.
func openPool(state string) (*pool, error) {
	p := &pool{path: filepath.Join(state, "pool"), far: map[uint64]bool{}}
	if err := os.MkdirAll(p.path, 0o700); err != nil {
		return nil, fmt.Errorf("placeholders: %w; give writ a state directory that it can write", err)
	}
	fd, err := unix.Open(p.path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("placeholders: %s: %w; give writ a state directory that it can write", p.path, err)
	}
	p.dir = fd
	err = p.empty()
	if err == nil {
		err = unix.Mknodat(fd, socket, unix.S_IFSOCK|fileMode, 0)
	}
	if err != nil && err != unix.EPERM {
		return nil, fmt.Errorf("placeholders: %s: %w; empty the directory", p.path, err)
	}
	return p, nil
}

// empty removes the directories; what has something in it stays for a person to look at.
func (p *pool) empty() error {
	entries, err := os.ReadDir(p.path)
	for _, e := range entries {
		unix.Unlinkat(p.dir, e.Name(), unix.AT_REMOVEDIR)
	}
	unix.Unlinkat(p.dir, socket, 0)
	p.free = nil
	return err
}

func (p *pool) close() error { return errors.Join(p.empty(), unix.Close(p.dir)) }

// link makes a socket by a name, by linking to ours if that is possible.
func (p *pool) link(dir int, name string) error {
	to, err := statFD(dir)
	if err != nil {
		return err
	}
	if !p.far[to.dev] {
		err = unix.Linkat(p.dir, socket, dir, name, 0)
		if err == nil || err == unix.EEXIST {
			return err
		}
		p.far[to.dev] = true
	}
	return unix.Mknodat(dir, name, unix.S_IFSOCK|fileMode, 0)
}

// lend makes a directory by a name, by moving one there if that is possible.
func (p *pool) lend(dir int, name string) error {
	to, err := statFD(dir)
	if err != nil {
		return err
	}
	if p.far[to.dev] {
		return unix.Mkdirat(dir, name, dirMode)
	}
	if len(p.free) == 0 {
		p.made++
		fresh := strconv.Itoa(p.made)
		if err := unix.Mkdirat(p.dir, fresh, dirMode); err != nil && err != unix.EEXIST {
			return err
		}
		p.free = append(p.free, fresh)
	}
	last := p.free[len(p.free)-1]
	err = unix.Renameat2(p.dir, last, dir, name, unix.RENAME_NOREPLACE)
	switch err {
	case nil:
		p.free = p.free[:len(p.free)-1]
	case unix.EXDEV, unix.EINVAL, unix.EACCES, unix.EPERM:
		p.far[to.dev] = true
		return unix.Mkdirat(dir, name, dirMode)
	}
	return err
}

// takeBack removes a placeholder directory that is known to be ours, by moving it here if
// that is possible. One that turns out to have something in it goes back.
func (p *pool) takeBack(dir int, name string, is file) error {
	if p.far[is.dev] || len(p.free) >= maxFree {
		return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	}
	p.made++
	mine := strconv.Itoa(p.made)
	if err := unix.Renameat2(dir, name, p.dir, mine, unix.RENAME_NOREPLACE); err != nil {
		return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR)
	}
	now, err := stat(p.dir, mine)
	if err == nil && now.id == is.id && p.isEmpty(mine) {
		p.free = append(p.free, mine)
		return nil
	}
	back := unix.Renameat2(p.dir, mine, dir, name, unix.RENAME_NOREPLACE)
	if now.id != is.id {
		return errors.Join(errNotOurs, back)
	}
	return errors.Join(unix.ENOTEMPTY, back)
}

func (p *pool) isEmpty(name string) bool {
	fd, err := openDir(p.dir, name, unix.O_RDONLY)
	if err != nil {
		return false
	}
	entries, err := list(fd, 1)
	return err == nil && len(entries) == 0
}
