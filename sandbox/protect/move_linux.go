package protect

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Bounds of what is copied into the quarantine when it is on another filesystem.
const (
	maxCopy  = 256 << 20
	maxFiles = 10_000
)

func randomName() string { return "writ-" + rand.Text() }

// A mover moves what must not stay into a directory of the quarantine, under its path.
type mover struct {
	x   *index
	dir string // made with the first thing that is moved
	to  *os.Root
}

func (m *mover) close() {
	if m.to != nil {
		m.to.Close()
	}
}

// move moves one thing. It is renamed away where it is when it cannot be moved: then it
// stays in the workspace under a name that means nothing.
func (m *mover) move(f finding) ([]Appeared, error) {
	a := Appeared{Path: path.Join(m.x.root, f.rel), Why: f.why}
	err := permitted(m.x.top, parent(f.rel), 0o300, func(dir int) error {
		if err := m.ready(f.rel); err != nil {
			return err
		}
		name, to := path.Base(f.rel), filepath.Join(m.dir, f.rel)
		err := unix.Renameat2(dir, name, unix.AT_FDCWD, to, unix.RENAME_NOREPLACE)
		if err == nil {
			a.MovedTo = to
			return nil
		}
		if err == unix.ENOENT {
			return err
		}
		aside := randomName()
		if err := unix.Renameat2(dir, name, dir, aside, unix.RENAME_NOREPLACE); err != nil {
			return err
		}
		a.MovedTo = path.Join(m.x.root, parent(f.rel), aside)
		if m.copy(dir, aside, f.rel) == nil {
			a.MovedTo = to
		}
		return nil
	})
	switch {
	case err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP:
		return nil, nil // it is gone, or was moved, and is found where it is now
	case err != nil:
		return []Appeared{a}, fmt.Errorf("move %s away: %w; remove it", a.Path, err)
	}
	m.x.drop(f.rel, true)
	return []Appeared{a}, nil
}

// ready makes the directory for what is moved now.
func (m *mover) ready(rel string) error {
	if m.to == nil {
		m.dir = filepath.Join(m.x.finder.opts.Quarantine, time.Now().UTC().Format("20060102T150405Z")+"-"+rand.Text()[:8])
		if err := os.MkdirAll(m.dir, 0o700); err != nil {
			return err
		}
		root, err := os.OpenRoot(m.dir)
		if err != nil {
			return err
		}
		m.to = root
	}
	if above := parent(rel); above != "" {
		return m.to.MkdirAll(above, 0o700)
	}
	return nil
}

// copy copies what was put aside, and removes it there when all of it was copied.
func (m *mover) copy(dir int, aside, rel string) error {
	from, err := os.OpenRoot("/proc/self/fd/" + strconv.Itoa(dir))
	if err != nil {
		return err
	}
	defer from.Close()
	c := copier{from: from, to: m.to, bytes: maxCopy, files: maxFiles}
	if err := c.copy(aside, rel); err != nil {
		return errors.Join(err, m.to.RemoveAll(rel))
	}
	return from.RemoveAll(aside)
}

// A copier copies a tree of files, directories and symlinks, within bounds.
type copier struct {
	from, to *os.Root
	bytes    int64
	files    int
}

func (c *copier) copy(from, to string) error {
	info, err := c.from.Lstat(from)
	if err != nil {
		return err
	}
	if c.files--; c.files < 0 {
		return errors.New("too many files")
	}
	switch {
	case info.IsDir():
		return c.copyDir(from, to)
	case info.Mode()&os.ModeSymlink != 0:
		target, err := c.from.Readlink(from)
		if err != nil {
			return err
		}
		return c.to.Symlink(target, to)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is no file", from)
	}
	return c.copyFile(from, to)
}

func (c *copier) copyDir(from, to string) error {
	if err := c.to.Mkdir(to, 0o700); err != nil {
		return err
	}
	d, err := c.from.Open(from)
	if err != nil {
		return err
	}
	names, err := d.Readdirnames(c.files + 1)
	d.Close()
	if err != nil && err != io.EOF {
		return err
	}
	for _, name := range names {
		if err := c.copy(path.Join(from, name), path.Join(to, name)); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) copyFile(from, to string) error {
	in, err := c.from.OpenFile(from, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := c.to.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(out, io.LimitReader(in, c.bytes+1))
	if c.bytes -= n; c.bytes < 0 {
		err = errors.New("too many bytes")
	}
	return errors.Join(err, out.Sync(), out.Close())
}
