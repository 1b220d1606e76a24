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
	lock  *lock
	is    id
	nth   uint64    // of all that were made
	until time.Time // with no runs: when it is taken away
	sure  heard     // by this it was there; and nothing was heard of it since
}

// heard is what was known of a workspace at some time. The zero value is nothing.
type heard struct {
	by      *index
	version uint64
}

// doubt takes note that something has become of a name.
func (f *Finder) doubt(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.held[path]; h != nil {
		h.sure = heard{}
	}
}

var errExists = errors.New("a protected name came to be just now")

// Prepare makes the placeholders, and with them the Cover complete: when the workspace has
// changed since, or a name cannot be made by anyone, Mounts and Placeholders are others
// afterwards. The run begins after it. On error nothing is left; Done is called all the
// same.
func (c *Cover) Prepare() error { return c.prepare(context.Background()) }

func (c *Cover) prepare(ctx context.Context) error {
	if c.index == nil {
		return nil
	}
	for range 5 {
		if err := c.compute(ctx); err != nil {
			return fmt.Errorf("protected names of %s: %w", c.Root, err)
		}
		err := c.take()
		if err == nil {
			if c.row != alone {
				c.remember()
			}
			return nil
		}
		_, undo := c.release()
		c.index.anew.Store(true) // it may be one of which nothing was heard
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
	if err := errors.Join(c.conflicts(), c.makeWay()); err != nil {
		return err
	}
	var never []string
	c.taken, c.held = nil, true
	l, err := f.share(c.index.top)
	if err != nil {
		return err
	}
	l.continues(min(c.row, c.started))
	c.lock = l
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

// conflicts: a run that may change a name, and one from which it is kept, do not go on at
// the same time: the first can take the name away from under the mounts of the second.
func (c *Cover) conflicts() error {
	for o := range c.finder.active {
		if o == c || !o.held {
			continue
		}
		for _, pair := range [][2]*Cover{{c, o}, {o, c}} {
			for _, m := range pair[0].Mounts {
				if m.How != Pin && pair[1].opened(m.Path) {
					return fmt.Errorf("%s is changed by one run and kept as it is for another; try again when the other has ended", m.Path)
				}
			}
		}
	}
	return nil
}

// makeWay removes placeholders that other runs needed where this one may write. Those that
// some still need cannot be there and not be there.
func (c *Cover) makeWay() error {
	if c.open == nil {
		return nil
	}
	f := c.finder
	for _, p := range c.inWay {
		if gone, err := removeLeft(p); err != nil || !gone {
			return errors.Join(fmt.Errorf("%s is kept as it is for another run; try again when that has ended", p), err)
		}
	}
	for p, h := range f.held {
		if !strings.HasPrefix(p, c.Root+"/") || !c.open(p) {
			continue
		}
		alone := false
		var err error
		if h.runs == 0 {
			alone, err = h.lock.alone(func() error { return f.removeHeld(p, h) })
		}
		if err != nil || !alone {
			return errors.Join(fmt.Errorf("%s is kept as it is for another run; try again when that has ended", p), err)
		}
		f.letGo(p)
	}
	return nil
}

// hold makes one placeholder, takes over one of another process, or counts one more run for
// one of ours.
func (f *Finder) hold(c *Cover, p Placeholder) error {
	rel := strings.TrimPrefix(p.Path, c.Root+"/")
	if h := f.held[p.Path]; h != nil && h.sure.by != nil && h.sure == c.heard {
		h.runs++
		return nil
	}
	return in(c.index.top, rel, func(dir int, name string) error {
		h := f.held[p.Path]
		now, err := stat(dir, name)
		if h != nil && err == nil && now.id == h.is {
			if h.touched(dir, name) == unix.ENOTEMPTY { // it is none any more
				if h.runs == 0 {
					f.letGo(p.Path)
				}
				return unix.EEXIST
			}
			h.runs++
			h.sure = c.heard
			return nil
		}
		if h == nil {
			l, lockErr := f.share(dir) // before looking: nobody removes any from now on
			if lockErr != nil {
				return lockErr
			}
			h = &hold{lock: l}
			f.held[p.Path] = h
			now, err = stat(dir, name)
		}
		if err != nil || !now.looksPlaced() {
			now, err = h.lock.place(dir, name, p)
		}
		if err != nil {
			if h.runs == 0 {
				f.letGo(p.Path)
			}
			return err
		}
		f.made++
		h.is, h.nth = now.id, f.made
		h.runs++
		return nil
	})
}

// letGo forgets a placeholder that is not there, or is for others to remove.
func (f *Finder) letGo(p string) {
	h := f.held[p]
	delete(f.held, p)
	f.unshare(h.lock)
}

// place makes a placeholder: as another name of one that this process has made in the same
// directory, where it can, since a name costs a filesystem much less than a file.
func (l *lock) place(dir int, name string, p Placeholder) (file, error) {
	socket := !p.Dir && !p.file
	if socket && l.first(dir) && unix.Linkat(dir, l.named, dir, name, 0) == nil {
		now, err := stat(dir, name)
		if err == nil && now.id == l.is {
			return now, nil
		}
		if err == nil && now.links > 1 { // somebody has put that in the place of the other one just now, and has it still
			err = unix.Unlinkat(dir, name, 0)
		}
		if err != nil {
			return file{}, err
		}
	}
	if err := makePlaceholder(dir, name, p.Dir, p.file); err != nil {
		return file{}, err
	}
	now, err := stat(dir, name)
	if err == nil && now.is(unix.S_IFSOCK) {
		l.named, l.is = name, now.id
	}
	return now, err
}

// first reports whether the placeholder that others are names of is there. What somebody has
// put in its place is theirs, and a process that is killed would leave it with another name.
func (l *lock) first(dir int) bool {
	if l.named == "" {
		return false
	}
	now, err := stat(dir, l.named)
	return err == nil && now.id == l.is && now.is(unix.S_IFSOCK)
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

// unlessHeld looks at a name that is no placeholder, or not one any more. None is made or
// removed meanwhile.
func (f *Finder) unlessHeld(x *index, rel string) (found file, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.held[path.Join(x.root, rel)]
	err = in(x.top, rel, func(dir int, name string) error {
		if found, err = stat(dir, name); err == nil && h != nil && h.is == found.id && h.touched(dir, name) != unix.ENOTEMPTY {
			return unix.ENOENT
		}
		return err
	})
	if err != nil {
		return file{}, err
	}
	return found, nil
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
	if c.lock != nil {
		defer f.unshare(c.lock)
		c.lock = nil
	}
	for _, t := range c.taken {
		p := t.path
		h := f.held[p]
		if h.runs--; h.runs > 0 {
			continue
		}
		h.until = time.Now().Add(f.opts.Linger)
		rel := strings.TrimPrefix(p, c.Root+"/")
		if f.opts.Linger > 0 && c.touched(rel, h) == nil {
			f.lingers(f.opts.Linger)
			continue
		}
		var gone error
		alone, lockErr := h.lock.alone(func() error {
			gone = in(c.index.top, rel, func(dir int, name string) error { return removePlaceholder(dir, name, &h.is) })
			return nil
		})
		err = errors.Join(err, lockErr)
		if !alone { // others have it as well; whoever is last removes it
			if c.touched(rel, h) == unix.ENOTEMPTY {
				filled = append(filled, rel)
			}
			f.lingers(lookAgain)
			continue
		}
		f.letGo(p)
		switch {
		case errors.Is(gone, unix.ENOTEMPTY):
			filled = append(filled, rel)
		case os.Geteuid() != 0 && (gone == unix.EACCES || gone == unix.EPERM):
			// It is another user's, who made it and takes it away.
		case gone != nil && !errors.Is(gone, errNotOurs) && gone != unix.ENOENT && gone != unix.ENOTDIR && gone != unix.ELOOP:
			err = errors.Join(err, fmt.Errorf("remove the placeholder %s: %w", p, gone))
		}
	}
	return filled, err
}

var errNotOurs = errors.New("it is not a placeholder of ours")

// looksPlaced reports whether something looks like a placeholder, of this user or of a
// daemon that is root. A file with another name is none: by that one it could be written.
func (f file) looksPlaced() bool {
	kind := f.is(unix.S_IFDIR) || f.is(unix.S_IFSOCK) || f.is(unix.S_IFREG) && f.size == 0 && f.links == 1
	return kind && f.mode&unix.S_ISVTX != 0 && f.mode&0o222 == 0 && (f.uid == 0 || int(f.uid) == os.Geteuid())
}

// removePlaceholder removes a placeholder: what has nothing in it, and is the one that was
// made or, where that is not known, looks like one. A file is put aside before the last look, so that
// what somebody writes at the last moment is put back and not lost.
func removePlaceholder(dir int, name string, is *id) error {
	f, err := stat(dir, name)
	if err != nil {
		return err
	}
	if is != nil && f.id != *is || is == nil && !f.looksPlaced() {
		return errNotOurs
	}
	switch {
	case f.is(unix.S_IFDIR):
		return unix.Unlinkat(dir, name, unix.AT_REMOVEDIR) // and no other way: this ends mounts of it in boxes
	case f.is(unix.S_IFSOCK):
		return unix.Unlinkat(dir, name, 0)
	case !f.is(unix.S_IFREG):
		return errNotOurs
	case f.size != 0 || f.links != 1: // somebody has written to it, or can by another name
		return unix.ENOTEMPTY
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

// removeLeft removes a placeholder that a killed process has left at a path; false: another
// process needs it. The path is taken as it was written, without symlinks: a box may have
// put one there since.
func removeLeft(p string) (bool, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(p), &how)
	if err != nil {
		return true, nil // its directory is gone, or another
	}
	defer unix.Close(fd)
	key, path, err := lockOf(fd)
	if err != nil {
		return false, err
	}
	l, err := tryLock(key, path, unix.F_WRLCK)
	if errors.Is(err, unix.EAGAIN) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("lock %s: %w; remove the file", path, err)
	}
	defer l.end()
	err = removePlaceholder(fd, filepath.Base(p), nil)
	if err == nil || err == unix.ENOENT || err == unix.ENOTEMPTY || errors.Is(err, errNotOurs) {
		return true, nil
	}
	return false, fmt.Errorf("%s: %w", p, err)
}
