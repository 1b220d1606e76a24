package protect

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// touched says what became of a placeholder: nil, it is as it was made, with nothing in it.
func (c *Cover) touched(rel string, h *hold) error {
	return in(c.index.top, rel, h.touched)
}

func (h *hold) touched(dir int, name string) error {
	now, err := stat(dir, name)
	if err != nil || now.id != h.is {
		return errNotOurs
	}
	if now.is(unix.S_IFREG) && (now.size != 0 || now.links != 1) {
		return unix.ENOTEMPTY
	}
	if !now.is(unix.S_IFDIR) {
		return nil
	}
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil { // we made it so that everybody can look
		return unix.ENOTEMPTY
	}
	defer unix.Close(fd)
	var entries [1024]byte // . and .. take 48, any other at most 280
	if n, err := unix.Getdents(fd, entries[:]); err != nil || n > 48 {
		return unix.ENOTEMPTY
	}
	return nil
}

// filled lists placeholders of other runs below this one's root in which there is something
// now. Over those that were made after it began this run has no mounts, and nothing is heard of
// what comes to be in them.
func (c *Cover) filled() (out []string) {
	f := c.finder
	f.mu.Lock()
	defer f.mu.Unlock()
	own := make(map[string]bool, len(c.taken))
	for _, t := range c.taken {
		own[t.path] = true
	}
	for p, h := range f.held {
		rel, below := strings.CutPrefix(p, c.Root+"/")
		if !below || own[p] || c.opened(p) || c.touched(rel, h) != unix.ENOTEMPTY {
			continue
		}
		out = append(out, rel)
		if h.runs == 0 {
			f.letGo(p)
		}
	}
	slices.Sort(out)
	return out
}

// anew has workspaces that hold a path looked at from the beginning: something became of it of
// which nothing was heard.
func (f *Finder) anew(p string) {
	for root, x := range f.roots {
		if strings.HasPrefix(p, root+"/") {
			x.anew.Store(true)
		}
	}
	for c := range f.active { // of which some are in no list any more
		if c.index != nil && strings.HasPrefix(p, c.Root+"/") {
			c.index.anew.Store(true)
		}
	}
}

// lookAgain is when placeholders that other processes need are looked at once more.
const lookAgain = 250 * time.Millisecond

// lingers has placeholders without runs taken away after a while. Without Linger that is
// when the Finder closes.
func (f *Finder) lingers(after time.Duration) {
	if f.later == nil && f.opts.Linger > 0 {
		f.later = time.AfterFunc(after, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.later = nil
			if !f.closed {
				f.takeAway(false) // what cannot be removed now is in the journal
			}
		})
	}
}

// takeAway removes placeholders that have no runs, and whose time is over or all. Those
// that other processes need stay, and are looked at again.
func (f *Finder) takeAway(all bool) (err error) {
	next := time.Duration(0)
	for p, h := range f.held {
		if h.runs > 0 {
			continue
		}
		wait := time.Until(h.until)
		if all || wait <= 0 {
			alone, failed := h.lock.alone(func() error { return f.removeHeld(p, h) })
			err = errors.Join(err, failed)
			if alone {
				f.letGo(p)
				continue
			}
			wait = lookAgain
		}
		if next == 0 || wait < next {
			next = wait
		}
	}
	if next > 0 && !all {
		f.lingers(next)
	}
	return err
}

// removeHeld removes a placeholder by its path, taken without symlinks.
func (f *Finder) removeHeld(p string, h *hold) error {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS}
	fd, err := unix.Openat2(unix.AT_FDCWD, filepath.Dir(p), &how)
	if err != nil {
		return nil // its directory is gone, or another
	}
	defer unix.Close(fd)
	err = removePlaceholder(fd, filepath.Base(p), &h.is)
	if err == unix.ENOTEMPTY {
		f.anew(p)
	}
	if err == unix.ENOENT || err == unix.ENOTEMPTY || errors.Is(err, errNotOurs) {
		return nil // somebody made something of it
	}
	return err
}
