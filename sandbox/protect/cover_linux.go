package protect

import (
	"context"
	"fmt"
	"path"
	"slices"

	"github.com/writ-run/writ/policy"
)

// How a path is mounted over.
type How uint8

const (
	Pin      How = iota + 1 // bound onto itself, writable: a mount point can be neither renamed nor removed
	ReadOnly                // bound onto itself, read-only
	Masked                  // something empty that cannot be read is shown instead
)

// Mount is one mount in a box, of a host path onto itself. A link is bound as the symlink
// it is: opened with O_PATH and O_NOFOLLOW, and mounted without following.
type Mount struct {
	Path      string
	How       How
	Dir, Link bool
}

// Placeholder is a name that does not exist and is there for the time of the run.
type Placeholder struct {
	Path string
	Dir  bool

	file bool // git reads it as a file, so an empty file is what says nothing
}

// Cover is how the protected names of one writable root are kept during one run. What it
// says is complete after Prepare.
type Cover struct {
	Root         string
	Mounts       []Mount       // parents first; placeholders are among them, read-only
	Placeholders []Placeholder // what Prepare makes

	finder  *Finder
	index   *index
	open    func(string) bool
	plan    *plan
	begun   uint64   // entries since then appeared
	unseen  []string // but in these, which cannot be changed,
	notSeen string   // as it is told
	heard   heard    // nothing by: changes go unnoticed

	started int64           // by the clock,
	row     int64           // and when the row that it continues began, or alone;
	stood   map[string]file // what was not harmless in that

	lock  *lock // of the root
	taken []taken

	doubtful int // names of which it is not known whether the run made them

	held  bool     // those are held for it
	inWay []string // placeholders of other processes where it may write
	done  bool
}

// taken is a placeholder that is held for a run.
type taken struct {
	path string
	nth  uint64 // of all that were made
}

// Stamp says what mounts were made for. Those of an equal one hold for a later Cover, too.
type Stamp struct {
	plan *plan
	nth  uint64 // the last placeholder that was made for it
}

// Stamp is that of a Cover that is prepared. It is zero where names can come to lead
// elsewhere without notice, so that mounts have to be made for each run.
func (c *Cover) Stamp() Stamp {
	if c.plan == nil || !c.plan.lasts {
		return Stamp{}
	}
	s := Stamp{plan: c.plan}
	for _, t := range c.taken {
		s.nth = max(s.nth, t.nth)
	}
	return s
}

// Since lists what is to be mounted where everything was for an earlier Cover: when a
// placeholder is taken away its mount goes with it. It is not ok where mounts may be there
// that should not; then they are all made in another box.
func (c *Cover) Since(s Stamp) (mounts []Mount, ok bool) {
	if s.plan == nil {
		return c.Mounts, true
	}
	if s.plan != c.plan {
		return nil, false
	}
	for _, m := range c.Mounts {
		if slices.ContainsFunc(c.taken, func(t taken) bool { return t.path == m.Path && t.nth > s.nth }) {
			mounts = append(mounts, m)
		}
	}
	return mounts, true
}

// Named is what is open to a box that may write some paths by name: those, and what is
// around them. What holds secrets never is.
func Named(paths []string) func(string) bool {
	if len(paths) == 0 {
		return nil
	}
	return func(path string) bool {
		return policy.Secret(path) == "" && slices.ContainsFunc(paths, func(named string) bool { return policy.Below(named, path) })
	}
}

func (c *Cover) opened(path string) bool { return c.open != nil && c.open(path) }

// compute brings the index up to date and derives the mounts from it.
func (c *Cover) compute(ctx context.Context) error {
	x := c.index
	if x == nil {
		return nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.refresh(ctx, c.finder.opts.MaxDirs); err != nil {
		return err
	}
	c.begun = x.now
	c.joinRow()
	p := x.planFor(c.opened)
	c.plan, c.heard = p, heard{}
	if p.lasts {
		c.heard = heard{x, x.version}
	}
	if len(p.mounts) > c.finder.opts.MaxMounts {
		why := "make a smaller directory the workspace, or let the tool's policy name what it may change"
		if few := x.notSeen(); few != "" {
			why = few
		}
		return fmt.Errorf("there are %d places to protect and at most %d can be: %s", len(p.mounts), c.finder.opts.MaxMounts, why)
	}
	c.Mounts, c.Placeholders = p.mounts, p.placeholders
	c.unseen, c.notSeen = x.wanted.unseen, x.notSeen()
	c.inWay = nil
	for rel, e := range x.names {
		if c.open != nil && e.placed && c.open(path.Join(x.root, rel)) {
			c.inWay = append(c.inWay, path.Join(x.root, rel))
		}
	}
	return nil
}
