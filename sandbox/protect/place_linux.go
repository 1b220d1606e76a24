package protect

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Placeholders have the sticky bit and can be written by nobody, from the moment they are
// made: together with having nothing in them this is how one that was left is known.
const (
	dirMode  = unix.S_ISVTX | 0o555
	fileMode = unix.S_ISVTX | 0o444
)

// A hold is a placeholder that is there, for as many runs as need it.
type hold struct {
	runs  int
	is    id
	nth   uint64    // of all that were made
	until time.Time // with no runs: when it is taken away
}

var errExists = errors.New("a protected name came to be just now")

// Prepare makes the placeholders, and with them the Cover complete: when the workspace has
// changed since, or a name cannot be made by anyone, Mounts and Placeholders are others
// afterwards. The run begins after it. On error nothing is left; Done is called all the
// same.
func (c *Cover) Prepare() error {
	if c.index == nil {
		return nil
	}
	for range 5 {
		if err := c.compute(context.Background()); err != nil {
			return fmt.Errorf("protected names of %s: %w", c.Root, err)
		}
		err := c.take()
		if err == nil {
			return nil
		}
		_, undo := c.release()
		if err != errExists {
			return fmt.Errorf("protected names of %s: %w", c.Root, errors.Join(err, undo))
		}
	}
	return fmt.Errorf("protected names of %s: they keep coming and going; try again when nothing else works there", c.Root)
}

// take makes the placeholders or shares those of other runs.
func (c *Cover) take() error {
	f := c.finder
	f.mu.Lock()
	defer f.mu.Unlock()
	paths := make([]string, len(c.Placeholders))
	for i, p := range c.Placeholders {
		paths[i] = p.Path
	}
	if err := f.journal.note(paths); err != nil {
		return err
	}
	var never []string
	c.taken, c.held = nil, true
	for _, p := range c.Placeholders {
		err := f.hold(c, p)
		switch {
		case err == nil:
			c.taken = append(c.taken, taken{p.Path, f.held[p.Path].nth})
		case err == unix.EROFS || err == unix.EPERM || err == unix.EACCES && os.Geteuid() != 0: // the box cannot make it either
			never = append(never, p.Path)
		case err == unix.EEXIST || err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP:
			return errExists
		default:
			return fmt.Errorf("make a placeholder %s: %w", p.Path, err)
		}
	}
	if len(never) > 0 {
		c.Mounts = slices.DeleteFunc(slices.Clone(c.Mounts), func(m Mount) bool { return slices.Contains(never, m.Path) })
		c.Placeholders = slices.DeleteFunc(slices.Clone(c.Placeholders), func(p Placeholder) bool { return slices.Contains(never, p.Path) })
	}
	return nil
}

// hold makes one placeholder, or counts one more run for it.
func (f *Finder) hold(c *Cover, p Placeholder) error {
	rel := strings.TrimPrefix(p.Path, c.Root+"/")
	return in(c.index.top, rel, func(dir int, name string) error {
		if h := f.held[p.Path]; h != nil {
			if now, err := stat(dir, name); err == nil && now.id == h.is {
				h.runs++
				return nil
			}
		}
		if err := makePlaceholder(dir, name, p.Dir, p.file); err != nil {
			return err
		}
		made, err := stat(dir, name)
		if err != nil {
			return err
		}
		h := f.held[p.Path]
		if h == nil {
			h = &hold{}
			f.held[p.Path] = h
		}
		f.made++
		h.is, h.nth = made.id, f.made
		h.runs++
		return nil
	})
}

func makePlaceholder(dir int, name string, isDir, isFile bool) error {
	switch {
	case isDir:
		return unix.Mkdirat(dir, name, dirMode)
	case isFile:
		fd, err := unix.Openat(dir, name, unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, fileMode)
		if err != nil {
			return err
		}
		return unix.Close(fd)
	}
	err := unix.Mknodat(dir, name, unix.S_IFSOCK|fileMode, 0)
	if err == unix.EPERM { // a filesystem without sockets
		return makePlaceholder(dir, name, false, true)
	}
	return err
}

// unlessHeld looks at a name that is no placeholder. None is made or removed meanwhile.
func (f *Finder) unlessHeld(x *index, rel string) (found file, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	err = in(x.top, rel, func(dir int, name string) error {
		found, err = stat(dir, name)
		return err
	})
	if h := f.held[path.Join(x.root, rel)]; err == nil && h != nil && h.is == found.id {
		return file{}, unix.ENOENT
	}
	return found, err
}

// release lets go of the placeholders; the last run takes each away. One in which there is
// something now stays and is listed; what has replaced one is not ours to remove.
func (c *Cover) release() (filled []string, err error) {
	f := c.finder
	f.mu.Lock()
	defer f.mu.Unlock()
	if !c.held {
		return nil, nil
	}
	c.held = false
	for _, t := range c.taken {
		p := t.path
		h := f.held[p]
		if h.runs--; h.runs > 0 {
			continue
		}
		rel := strings.TrimPrefix(p, c.Root+"/")
		if f.opts.Linger > 0 && c.untouched(rel, h) {
			h.until = time.Now().Add(f.opts.Linger)
			f.lingers()
			continue
		}
		delete(f.held, p)
		gone := in(c.index.top, rel, func(dir int, name string) error { return removePlaceholder(dir, name, &h.is) })
		switch {
		case errors.Is(gone, unix.ENOTEMPTY):
			filled = append(filled, rel)
		case gone != nil && !errors.Is(gone, errNotOurs) && gone != unix.ENOENT && gone != unix.ENOTDIR && gone != unix.ELOOP:
			err = errors.Join(err, fmt.Errorf("remove the placeholder %s: %w", p, gone))
		}
	}
	return filled, err
}

var errNotOurs = errors.New("it is not a placeholder of ours")

// removePlaceholder removes a placeholder: what has nothing in it, and is the one that was
// made or, where that is not known, looks like one. A file is put aside before the last look, so that
// what somebody writes at the last moment is put back and not lost.
func removePlaceholder(dir int, name string, is *id) error {
	f, err := stat(dir, name)
	if err != nil {
		return err
	}
	if is != nil && f.id != *is || is == nil && (f.mode&unix.S_ISVTX == 0 || f.mode&0o222 != 0 || int(f.uid) != os.Geteuid()) {
		return errNotOurs
	}
	switch {
	case f.is(unix.S_IFDIR):
		return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) // and no other way: this ends mounts of it in boxes
	case f.is(unix.S_IFSOCK):
		return unix.Unlinkat(dir, name, 0)
	case !f.is(unix.S_IFREG) || f.size != 0 || f.links != 1:
		return errNotOurs
	}
	aside := name + "." + randomName()
	if err := unix.Renameat2(dir, name, dir, aside, unix.RENAME_NOREPLACE); err != nil {
		return err
	}
	if now, err := stat(dir, aside); err == nil && now.id == f.id && now.size == 0 && now.links == 1 {
		return unix.Unlinkat(dir, aside, 0)
	}
	return errors.Join(errNotOurs, unix.Renameat2(dir, aside, dir, name, unix.RENAME_NOREPLACE))
}

// removeLeft removes a placeholder that a killed process has left at a path. The path is
// taken as it was written, without symlinks: a box may have put one there since.
func removeLeft(p string) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(p), &how)
	if err != nil {
		return nil // its directory is gone, or another
	}
	defer unix.Close(fd)
	err = removePlaceholder(fd, filepath.Base(p), nil)
	if err == nil || err == unix.ENOENT || err == unix.ENOTEMPTY || errors.Is(err, errNotOurs) {
		return nil
	}
	return fmt.Errorf("%s: %w", p, err)
}
