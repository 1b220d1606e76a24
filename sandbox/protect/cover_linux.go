package protect

import (
	"context"
	"fmt"
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
	Notes        []string      // for the operator: what is not looked at, and the remedy

	finder *Finder
	index  *index
	open   func(string) bool
	begun  uint64   // entries since then appeared
	taken  []string // placeholders that are held for it
	done   bool
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
	p := x.planFor(c.opened)
	if len(p.mounts) > c.finder.opts.MaxMounts {
		return fmt.Errorf("there are %d places to protect and at most %d can be: make a smaller directory the workspace, or let the tool's policy name what it may change", len(p.mounts), c.finder.opts.MaxMounts)
	}
	c.Mounts, c.Placeholders, c.Notes = p.mounts, p.placeholders, x.notes()
	return nil
}
