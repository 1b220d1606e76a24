package protect

import (
	"fmt"
	"math"
	"os"
	"path"
	"time"

	"github.com/writ-run/writ/policy"
	"golang.org/x/sys/unix"
)

// Runs that go on at the same time can hand each other what one alone cannot do. One makes
// a repository, and may write it. Another from which it is kept opens it meanwhile, by a
// second name or while it is elsewhere, where no mounts are, and writes into it when the
// first one has ended and what it left was found to be harmless.
//
// So a run also answers for what came to be before it, in the row of runs that it continues:
// those that overlap, one with the next, in all processes. Of that it answers for what is
// otherwise at its end than at its beginning.

// alone is the beginning of no row.
const alone = math.MaxInt64

// ticks is the clock by which filesystems say when something was changed.
func ticks() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return 0 // everything came to be since then
	}
	return now.Nano()
}

// joinRow finds out which row a run continues. Runs in directories of which none is within
// the other have nothing to hand over.
func (c *Cover) joinRow() {
	f, began := c.finder, int64(alone)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free.look()
	for o := range f.active {
		if o != c && (policy.Below(o.Root, c.Root) || policy.Below(c.Root, o.Root)) {
			began = min(began, o.row, o.started)
		}
	}
	// Other processes have locks in the directory that they work in, which may hold this one or
	// be within it, and where they have placeholders.
	for _, dir := range c.index.above {
		began = min(began, f.rowAt(dir, c.index.owner))
	}
	for dir, l := range f.locks {
		if l.of != c.Root && policy.Below(l.of, c.Root) {
			began = min(began, f.rowAt(dir, c.index.owner))
		}
	}
	for _, dir := range f.within(c.Root) {
		began = min(began, f.rowAt(dir, c.index.owner))
	}
	c.row = began
}

// within lists the directories of locks of other processes that are below a root, or could be:
// a lock says which directory it was for, and what is not that any more may have been moved.
func (f *Finder) within(root string) (out [][2]uint64) {
	for _, dir := range f.free.others(f.locks) {
		at, ok := lockedAt(dir)
		if ok && !policy.Below(at, root) && whereIs(at) == dir {
			continue
		}
		out = append(out, dir)
	}
	return out
}

// lockedAt is what a lock says of where its directory is. Anybody may have written that.
func lockedAt(dir [2]uint64) (string, bool) {
	fd, err := unix.Open(lockPath(dir), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // it may be a pipe
	if err != nil {
		return "", false
	}
	defer unix.Close(fd)
	if is, err := statFD(fd); err != nil || !is.is(unix.S_IFREG) {
		return "", false
	}
	text := make([]byte, unix.PathMax)
	n, err := unix.Read(fd, text)
	at := string(text[:max(n, 0)])
	return at, err == nil && path.IsAbs(at) && path.Clean(at) == at
}

// whereIs is the directory at a path that goes by no symlink, as locks name it.
func whereIs(at string) [2]uint64 {
	fd, err := unix.Openat2(unix.AT_FDCWD, at, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return [2]uint64{}
	}
	defer unix.Close(fd)
	is, err := statFD(fd)
	if err != nil {
		return [2]uint64{}
	}
	return is.place()
}

// rowAt is when the row of other processes began that have a lock on a directory. Locks of
// unrelated users are not asked: those could keep a row going for ever.
func (f *Finder) rowAt(dir [2]uint64, owner uint32) int64 {
	l := f.locks[dir]
	if l == nil {
		if f.free.dirs[dir] {
			return alone
		}
		fd, err := unix.Open(lockPath(dir), unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			f.free.note(dir, err)
			return alone
		}
		defer unix.Close(fd)
		l = &lock{fd: fd}
	}
	is, err := statFD(l.fd)
	if err != nil || !l.shared() || is.uid != 0 && is.uid != owner && int(is.uid) != os.Geteuid() {
		return alone
	}
	return is.began()
}

// free are directories that have no lock, as of a time at which the home of locks was as it is
// now. Runs ask that of each directory above theirs.
type free struct {
	home unix.StatxTimestamp // when that was changed last
	old  bool                // so long ago that whatever changes it now shows
	dirs map[[2]uint64]bool

	known bool // which locks there are,
	locks [][2]uint64
}

// settled is how long nothing has changed where a change would show: times of files go by a
// coarser clock than the processors'.
const settled = int64(time.Second)

func (s *free) look() {
	var is unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, lockHome(), 0, unix.STATX_MTIME, &is)
	if err != nil || s.dirs == nil || is.Mtime != s.home {
		s.home, s.dirs, s.known = is.Mtime, map[[2]uint64]bool{}, false
	}
	s.old = err == nil && ticks()-nanoseconds(s.home) > settled
}

func (s *free) note(dir [2]uint64, err error) {
	if s.old && err == unix.ENOENT {
		s.dirs[dir] = true
	}
}

// others lists the locks that there are besides some.
func (s *free) others(ours map[[2]uint64]*lock) (out [][2]uint64) {
	if !s.known {
		s.locks = nil
		entries, _ := os.ReadDir(lockHome())
		for _, e := range entries {
			var dir [2]uint64
			if n, err := fmt.Sscanf(e.Name(), lockName, &dir[0], &dir[1]); err == nil && n == 2 {
				s.locks = append(s.locks, dir)
			}
		}
		s.known = s.old
	}
	for _, dir := range s.locks {
		if ours[dir] == nil {
			out = append(out, dir)
		}
	}
	return out
}

// placesAbove lists a directory and those above it, as locks name them.
func placesAbove(top int) (out [][2]uint64) {
	for dir := top; len(out) < 64; {
		is, err := statFD(dir)
		if err != nil || len(out) > 0 && out[len(out)-1] == is.place() {
			return out // above the root is the root
		}
		out = append(out, is.place())
		next, err := unix.Openat(dir, "..", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return out
		}
		defer unix.Close(next)
		dir = next
	}
	return out
}

// began is when the row began that the file of a lock stands for. Nobody but its owner can
// make that earlier.
func (f file) began() int64 {
	if born := nanoseconds(f.born); born != 0 {
		return min(born, f.modified)
	}
	return f.modified
}

// continues tells other processes that this lock is for a row that began then. Where the file
// is another user's they know from when it is itself.
func (l *lock) continues(row int64) {
	if is, err := statFD(l.fd); err == nil && row < is.began() {
		at := unix.NsecToTimeval(row)
		unix.Futimes(l.fd, []unix.Timeval{at, at})
	}
}

// inRow reports whether something came to be in a row.
func (e entry) inRow(began int64) bool { return began != alone && e.changed >= began }

// remember takes note of what is not harmless at the beginning of a run, and came to be in
// its row. Those who made it answer for it.
func (c *Cover) remember() {
	c.index.mu.Lock()
	defer c.index.mu.Unlock()
	c.stood = map[string]file{}
	for rel, e := range c.index.names {
		if !e.inRow(c.row) {
			continue
		}
		for _, found := range c.index.judge(rel, e) {
			if is, err := c.index.stat(found.rel); err == nil {
				c.stood[found.rel] = is
			}
		}
	}
}

// unchanged reports whether something is as it was when the run began.
func (c *Cover) unchanged(rel string) bool {
	was, ok := c.stood[rel]
	is, err := c.index.stat(rel)
	return ok && err == nil && is == was
}

func (x *index) stat(rel string) (is file, err error) {
	err = in(x.top, rel, func(dir int, name string) error {
		is, err = stat(dir, name)
		return err
	})
	return is, err
}
