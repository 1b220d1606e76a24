package protect

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox/mounted"
	"golang.org/x/sys/unix"
)

// skipped are the directories that package managers fill: hundreds of thousands of
// directories that people do not work in, with names such as .gitattributes and keys such
// as cacert.pem in them that tools need.
var skipped = map[string]bool{
	"node_modules": true, ".venv": true, "venv": true, "__pycache__": true, ".tox": true, ".nox": true,
	".mypy_cache": true, ".pytest_cache": true, ".ruff_cache": true, ".gradle": true, ".terraform": true,
	".next": true, ".nuxt": true, ".yarn": true, ".pnpm-store": true,
}

// A region says which names count in a directory.
type region uint8

const (
	ordinary region = iota
	inGit           // directly in a .git: what git obeys
	inConfig        // it cannot be changed anyway: secrets only
)

// An entry is a protected name of a workspace.
type entry struct {
	id      id
	kind    uint16 // S_IFDIR, S_IFREG, S_IFLNK, ...
	class   policy.Class
	where   region   // of the directory that holds it
	since   uint64   // when it, and not another of its name, was seen first,
	changed int64    // and its time of change then
	risky   []string // of a .git/config: the keys that are not known to be harmless,
	was     []string // and those of the one before it;
	perTree bool     // whether it asks for a config.worktree
	placed  bool     // it looks like a placeholder, of another process
}

// An index is what is known of one workspace.
type index struct {
	finder *Finder
	root   string
	is     id
	mounts *mounted.Table // of the host, when it was begun
	owner  uint32
	above  [][2]uint64 // the root, and what it is in
	last   uint64      // use; guarded by the Finder

	mu      sync.Mutex
	top     int // the root's descriptor
	watch   int // inotify, or -1
	buf     []byte
	now     uint64
	version uint64 // changes when names do
	names   map[string]entry
	dirs    map[string]region // directories that were looked at
	wds     map[int32]string
	byDir   map[string]int32
	unseen  map[string]bool  // directories that were not looked at, since there are too many; false: but in passing
	entries int              // in all of them,
	sizes   map[string]int   // and in each
	bare    map[string]bool  // directories that are repositories without the name .git
	passes  int              // how many more are looked at in passing
	still   map[string]bool  // directories that need no look, since nobody could change them
	anew    atomic.Bool      // it is to be looked at from the beginning
	blind   string           // why changes go unnoticed, so that everything is looked at each time
	wanted  *wanted          // what the names come to,
	plans   map[string]*plan // and by a letter for each of those, whether it is open
}

func newIndex(f *Finder, root string, top int, is file, mounts *mounted.Table) *index {
	return &index{finder: f, root: root, is: is.id, mounts: mounts, owner: is.uid, above: placesAbove(top), top: top, watch: -1}
}

func (x *index) close() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.watch >= 0 {
		unix.Close(x.watch)
	}
	if x.top >= 0 {
		unix.Close(x.top)
	}
	x.watch, x.top = -1, -1
}

// refresh brings the index up to date. most bounds the directories.
func (x *index) refresh(ctx context.Context, most int) error {
	x.now++
	// Where there was too much to look at, there may be less by now.
	roomy := len(x.unseen) > 0 && len(x.dirs) < most*9/10 && x.entries < 45*most
	if x.anew.Swap(false) || x.names == nil || x.blind != "" || roomy {
		return x.walk(ctx, most)
	}
	again, err := x.drain(ctx, most)
	if err == nil && again {
		return x.walk(ctx, most)
	}
	return err
}

var errUnwatched = errors.New("they are not watched")

// walk looks at everything anew.
func (x *index) walk(ctx context.Context, most int) error {
	before := x.names
	if x.watch >= 0 {
		unix.Close(x.watch) // the cheapest way to end all watches
	}
	x.names, x.dirs = map[string]entry{}, map[string]region{}
	x.sizes, x.bare = map[string]int{}, map[string]bool{}
	x.wds, x.byDir = map[int32]string{}, map[string]int32{}
	x.unseen, x.entries, x.blind = map[string]bool{}, 0, ""
	x.version++
	fd, err := -1, errUnwatched
	if !x.finder.opts.Unwatched {
		fd, err = unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	}
	x.watch = fd
	if err != nil {
		x.watch, x.blind = -1, "changes go unnoticed ("+err.Error()+"), so every run looks at the whole workspace; raise fs.inotify.max_user_instances"
	}
	if err := x.scan(ctx, []place{{"", ordinary}}, most, before); err != nil {
		x.names = nil // half of it is nothing to rely on
		return err
	}
	return nil
}

// A place is a directory to look at.
type place struct {
	rel string
	in  region
}

// scan looks at directories and what is below them, those nearest to the root first, so
// that a bound leaves out the farthest. Beyond it some more are looked at in passing: what is in
// them is found, and nothing is heard of them afterwards.
func (x *index) scan(ctx context.Context, queue []place, most int, before map[string]entry) error {
	left := x.passes
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		if err := ctx.Err(); err != nil {
			return err
		}
		full := len(x.dirs) >= most || x.entries >= 50*most
		if x.still[at.rel] || full && left <= 0 {
			x.unseen[at.rel] = true
			continue
		}
		if full {
			left--
			if _, known := x.dirs[parent(at.rel)]; known {
				x.unseen[at.rel] = false
			}
		}
		below, err := x.look(at, full, before)
		if err != nil {
			return err
		}
		queue = append(queue, below...)
	}
	return nil
}

// look looks at one directory and returns those in it that count. What was there and is
// not now has nothing in it; nor has what this user cannot read, nor a box of the same user.
func (x *index) look(at place, passing bool, before map[string]entry) ([]place, error) {
	if _, known := x.dirs[parent(at.rel)]; at.rel != "" && !known && !passing {
		return nil, nil // what holds it is gone
	}
	var entries []os.DirEntry
	err := readable(x.top, at.rel, func(fd int) (err error) {
		if !passing {
			x.observe(fd, at.rel) // before reading, so that nothing comes between
			x.dirs[at.rel] = at.in
		}
		entries, err = list(fd, -1)
		return err
	})
	if err == unix.ENOENT || err == unix.ENOTDIR || err == unix.ELOOP || err == unix.EACCES && os.Geteuid() != 0 {
		return nil, nil
	}
	if err == unix.ENAMETOOLONG {
		x.unseen[at.rel] = true
		return nil, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path.Join(x.root, at.rel), err)
	}
	if !passing {
		x.entries += len(entries) - x.sizes[at.rel]
		x.sizes[at.rel] = len(entries)
	}
	x.setBare(at.rel, at.in == ordinary && isBare(entries))
	var below []place
	for _, e := range entries {
		if next, ok := x.name(at, e.Name(), e.IsDir(), before); ok {
			below = append(below, next)
		}
	}
	return below, nil
}

// name takes note of one name, and says whether to look inside.
func (x *index) name(at place, name string, dir bool, before map[string]entry) (place, bool) {
	class := policy.ClassOf(name, at.in == inGit)
	rel := path.Join(at.rel, name)
	if x.bare[at.rel] && class == policy.Unprotected && policy.ClassOf(name, true) == policy.Config {
		// Git obeys it; but anyone can make a directory look like a repository, so it is also
		// what it would be otherwise.
		x.note(rel, policy.Config, inGit, before)
	}
	switch {
	case class == policy.Unprotected:
		return place{rel, at.in}, dir && at.in != inGit && !skipped[name] && !x.finder.owns(path.Join(x.root, rel))
	case at.in == inGit && class != policy.Config, at.in == inConfig && class == policy.Repository:
		return place{}, false
	case at.in == inConfig && class == policy.Config:
		return place{rel, inConfig}, dir
	}
	e, ok := x.note(rel, class, at.in, before)
	switch {
	case !ok || e.kind != unix.S_IFDIR || class == policy.SecretName || at.in == inGit:
		return place{}, false
	case class == policy.Repository:
		return place{rel, inGit}, true
	}
	return place{rel, inConfig}, true
}

// note writes a protected name down. One that is a placeholder of ours is none.
func (x *index) note(rel string, class policy.Class, where region, before map[string]entry) (entry, bool) {
	f, err := x.finder.unlessHeld(x, rel)
	if err != nil {
		if _, ok := x.names[rel]; ok {
			delete(x.names, rel)
			x.version++
		}
		return entry{}, false
	}
	e := entry{id: f.id, kind: f.mode & unix.S_IFMT, class: class, where: where, since: x.now, changed: f.changed, placed: f.looksPlaced()}
	old, ok := x.names[rel]
	if !ok {
		old, ok = before[rel]
	}
	switch {
	case ok && old.id == e.id && old.kind == e.kind:
		e.since, e.changed, e.risky, e.was, e.perTree = old.since, old.changed, old.risky, old.was, old.perTree
	case where == inGit && strings.HasPrefix(policy.Fold(path.Base(rel)), "config"):
		e.risky, e.perTree = x.settings(rel)
		e.was = old.risky
		if ok && (old.since > x.finder.oldest(x) || old.inRow(x.finder.row())) { // a run may have written it
			e.was = old.was
		}
	}
	if now, was := x.names[rel]; !was || now.id != e.id {
		x.version++
	}
	x.names[rel] = e
	return e, true
}

// isBare reports whether git could take a directory for a repository.
func isBare(entries []os.DirEntry) bool {
	names := map[string]bool{}
	for _, e := range entries {
		if policy.PartOfRepository(e.Name()) {
			names[e.Name()] = e.IsDir()
		}
	}
	return policy.TakenForRepository(names)
}

// setBare notes whether a directory is a repository by itself, in which git obeys what it
// obeys in a .git.
func (x *index) setBare(rel string, bare bool) {
	if bare == x.bare[rel] {
		return
	}
	x.version++
	if bare {
		x.bare[rel] = true
		return
	}
	delete(x.bare, rel)
	for name, e := range x.names {
		if e.where == inGit && parent(name) == rel {
			delete(x.names, name)
		}
	}
}
