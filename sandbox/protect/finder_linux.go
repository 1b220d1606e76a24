package protect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ/sandbox/mounted"
	"golang.org/x/sys/unix"
)

// Options of a Finder.
type Options struct {
	State      string // directory of this program's own: the journal of placeholders
	Quarantine string // where to move what a run must not leave behind; made when needed
	MaxDirs    int    // directories of one workspace that are looked at and watched; zero: 20000
	MaxMounts  int    // most mounts of one Cover; zero: 4000
	// Unwatched is for one run: it looks at everything before and after. To stop watching
	// takes the kernel longer than to look at a few hundred directories.
	Unwatched bool
	// Linger is how long placeholders stay after the last run that needs them: runs come
	// in rows, and the next one needs the same. Zero: they are gone when Done returns.
	Linger time.Duration
}

const (
	defaultDirs   = 20_000
	defaultMounts = 4000
	maxRoots      = 32 // workspaces that are watched at once
)

// Finder knows the protected names of workspaces. It is safe for concurrent use; one
// process at a time can have it for a State.
type Finder struct {
	opts    Options
	journal *journal

	mu     sync.Mutex
	roots  map[string]*index
	used   uint64 // counts uses of roots
	held   map[string]*hold
	locks  map[[2]uint64]*lock
	free   free
	made   uint64 // placeholders, ever
	active map[*Cover]bool
	later  *time.Timer // takes away placeholders that nobody came back for
	closed bool
}

// New makes a Finder, after removing placeholders that a killed one has left.
func New(o Options) (*Finder, error) {
	for _, dir := range []string{o.State, o.Quarantine} {
		if !filepath.IsAbs(dir) {
			return nil, fmt.Errorf("protected names: %q is not an absolute path; name directories of writ's own", dir)
		}
	}
	if o.MaxDirs <= 0 {
		o.MaxDirs = defaultDirs
	}
	if o.MaxMounts <= 0 {
		o.MaxMounts = defaultMounts
	}
	sweepLocks()
	j, err := openJournal(o.State, o.Unwatched)
	if err != nil {
		return nil, err
	}
	return &Finder{opts: o, journal: j, roots: map[string]*index{}, held: map[string]*hold{}, locks: map[[2]uint64]*lock{}, active: map[*Cover]bool{}}, nil
}

// Close lets go of everything. Covers must be done before.
func (f *Finder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.active) > 0 {
		return fmt.Errorf("protected names: %d runs are still going; end them first", len(f.active))
	}
	f.closed = true
	if f.later != nil {
		f.later.Stop()
	}
	left := f.takeAway(true)
	var needed []string // by others, who take them away
	for p, h := range f.held {
		needed = append(needed, p)
		f.unshare(h.lock)
	}
	for _, x := range f.roots {
		x.close()
	}
	f.roots = nil
	return errors.Join(left, f.journal.close(needed))
}

// Cover says how the protected names below a directory that a box may write are kept. The
// path is absolute and without symlinks. A name for which open is true, by its absolute
// path, is left alone: the policy of the tool names it, or something in it. Open is called
// during Cover, Prepare and Done, possibly of other runs, and has to answer alike. Whoever
// gets a Cover calls Done once, also when nothing was run.
func (f *Finder) Cover(ctx context.Context, root string, open func(path string) bool) (*Cover, error) {
	c, err := f.cover(root, open)
	if err != nil {
		return nil, err
	}
	if err := c.compute(ctx); err != nil {
		f.end(c)
		return nil, fmt.Errorf("protected names of %s: %w", root, err)
	}
	return c, nil
}

// cover is a Cover that says nothing yet.
func (f *Finder) cover(root string, open func(path string) bool) (*Cover, error) {
	if !filepath.IsAbs(root) || filepath.Clean(root) != root {
		return nil, fmt.Errorf("protected names: %q is not an absolute clean path; resolve it first", root)
	}
	if len(root) > unix.PathMax/2 { // what is in it has to have a path
		return nil, fmt.Errorf("protected names: the path of %s… has %d bytes; at most %d can be, make a workspace with a shorter one", shown(strings.ToValidUTF8(root[:80], "")), len(root), unix.PathMax/2)
	}
	if root == "/" {
		return nil, errors.New("protected names: the whole system cannot be a workspace; name a directory")
	}
	c := &Cover{Root: root, finder: f, open: open}
	if err := f.begin(c); err != nil {
		return nil, fmt.Errorf("protected names of %s: %w", root, err)
	}
	return c, nil
}

// begin finds what is known of the workspace, and notes that a run uses it. A root that is
// no directory has nothing below it.
func (f *Finder) begin(c *Cover) error {
	top, err := unix.Openat2(unix.AT_FDCWD, c.Root, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	is, err := statFD(top)
	if err != nil || !is.is(unix.S_IFDIR) {
		unix.Close(top)
		return err
	}
	now, err := mounted.Now()
	if err != nil {
		unix.Close(top)
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		unix.Close(top)
		return errors.New("writ is shutting down")
	}
	f.used++
	x := f.roots[c.Root]
	if x != nil && x.is == is.id && now.Mark(c.Root) == x.mounts.Mark(c.Root) {
		unix.Close(top)
	} else {
		if x != nil {
			f.forget(x) // another directory has its place, or the place of one in it
		}
		f.evict()
		x = newIndex(f, c.Root, top, is, now)
		f.roots[c.Root] = x
	}
	x.last, c.index = f.used, x
	c.started, c.row = ticks(), alone
	f.active[c] = true
	return nil
}

// evict forgets a workspace that was not used for long when there are too many. Those in
// use are kept by the runs that use them.
func (f *Finder) evict() {
	if len(f.roots) < maxRoots {
		return
	}
	var oldest *index
	for _, x := range f.roots {
		if oldest == nil || x.last < oldest.last {
			oldest = x
		}
	}
	f.forget(oldest)
}

// forget is called with the lock held.
func (f *Finder) forget(x *index) {
	delete(f.roots, x.root)
	if !f.inUse(x) {
		x.close()
	}
}

// inUse is called with the lock held.
func (f *Finder) inUse(x *index) bool {
	for c := range f.active {
		if c.index == x {
			return true
		}
	}
	return false
}

// end notes that a run is over, and lets go of its workspace when nothing else has it.
func (f *Finder) end(c *Cover) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.active[c] {
		return
	}
	delete(f.active, c)
	if f.roots[c.Root] != c.index && !f.inUse(c.index) {
		c.index.close()
	}
}

// oldest is when the first of the runs that are going in a workspace began.
func (f *Finder) oldest(x *index) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := x.now
	for c := range f.active {
		if c.index == x && c.begun > 0 {
			first = min(first, c.begun)
		}
	}
	return first
}

// row is when the first of the rows began that go on now, or alone.
func (f *Finder) row() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	began := int64(alone)
	for c := range f.active {
		began = min(began, c.row)
	}
	return began
}

// owns reports whether a directory is one of ours, in which protected names are kept that
// were moved away.
func (f *Finder) owns(path string) bool { return path == f.opts.State || path == f.opts.Quarantine }

// mayWrite reports whether a run that is going may write a name.
func (f *Finder) mayWrite(path string) bool {
	f.mu.Lock()
	var runs []*Cover
	for c := range f.active {
		if strings.HasPrefix(path, c.Root+"/") {
			runs = append(runs, c)
		}
	}
	f.mu.Unlock()
	for _, c := range runs {
		if c.opened(path) {
			return true
		}
	}
	return false
}
