package protect

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox/mounted"
	"golang.org/x/sys/unix"
)

// Appeared is something that a run left where it must not be, and that was moved away.
type Appeared struct {
	Path    string
	Why     string
	MovedTo string // empty: it could not be moved,
	unseen  bool   // or looked at
}

// Done takes the placeholders away and looks at what protected names came to be during the
// run. What must not stay is moved into the quarantine and listed. Nothing of the run may
// be alive any more. What could not be undone is an error, and the rest is done all the
// same.
func (c *Cover) Done() ([]Appeared, error) {
	if c.done {
		return nil, errors.New("protected names: Done was called before")
	}
	c.done = true
	if c.index == nil {
		return nil, nil
	}
	defer c.finder.end(c)
	x := c.index
	x.mu.Lock()
	defer x.mu.Unlock()
	others := c.filled()
	filled, err := c.release()
	filled = append(filled, others...)
	var out []Appeared
	moved := func(list []Appeared, moveErr error) {
		out, err = append(out, list...), errors.Join(err, moveErr)
	}
	m := mover{x: x}
	defer m.close()
	for _, rel := range filled {
		if !c.finder.mayWrite(path.Join(x.root, rel)) {
			moved(m.move(finding{rel, "a placeholder was filled"}))
		}
	}
	if len(x.unseen) > 0 { // what there is room to look at is what the run could change
		x.still = map[string]bool{}
		for _, rel := range c.unseen {
			x.still[rel] = true
		}
		defer func() { x.still = nil }()
		x.anew.Store(true)
	}
	// What another run moves about meanwhile is looked for again; what that one has left is
	// for its own end, when nothing moves any more.
	x.passes = 50 * c.finder.opts.MaxDirs
	defer func() {
		x.passes = 0
		if len(x.unseen) > 0 {
			x.anew.Store(true)
		}
	}()
	for range 3 {
		// A run may have made directories in order to hide something behind the bound.
		if lookErr := x.refresh(context.Background(), 4*c.finder.opts.MaxDirs); lookErr != nil {
			return out, errors.Join(err, fmt.Errorf("look at what the run left in %s: %w", x.root, lookErr))
		}
		elsewhere, mountErr := x.mounted() // after looking: what was moved has shown
		if mountErr != nil {
			return out, errors.Join(err, mountErr)
		}
		had := len(out)
		for _, rel := range c.appeared(elsewhere) {
			for _, f := range x.judge(rel, x.names[rel]) {
				if !c.finder.mayWrite(path.Join(x.root, f.rel)) && !c.unchanged(f.rel) {
					moved(m.move(f))
				}
			}
		}
		if len(out) == had || err != nil {
			break
		}
	}
	elsewhere, mountErr := x.mounted()
	err = errors.Join(err, mountErr)
	if c.doubtful > 0 {
		out = append(out, Appeared{Path: x.root, Why: fmt.Sprintf("something was unmounted there meanwhile, and the run has moved what it was mounted in: %d names may have come to light with that, and were left", c.doubtful), unseen: true})
	}
	for _, rel := range elsewhere {
		out = append(out, Appeared{Path: path.Join(x.root, rel), Why: "something was mounted or unmounted there meanwhile", unseen: true})
	}
	if c.notSeen != "" {
		out = append(out, Appeared{Path: x.root, Why: c.notSeen, unseen: true})
	}
	if missed := c.missed(); len(missed) > 0 {
		out = append(out, Appeared{Path: x.root, Why: fmt.Sprintf("there are more directories than can be looked at: %d that the run could change were not, such as %s", len(missed), some(missed)), unseen: true})
	}
	return out, err
}

// missed lists directories that were not looked at, and which the run could change.
func (c *Cover) missed() (out []string) {
	for rel, missed := range c.index.unseen {
		if missed && !slices.ContainsFunc(c.unseen, func(dir string) bool { return policy.Below(rel, dir) }) {
			out = append(out, rel)
		}
	}
	slices.Sort(out)
	return out
}

// mounted lists where something was mounted or unmounted since the index was begun. What is
// there is not what the run has seen there.
func (x *index) mounted() (out []string, err error) {
	now, err := mounted.Now()
	if err != nil || now.Mark(x.root) == x.mounts.Mark(x.root) {
		return nil, err
	}
	for _, at := range now.Others(x.mounts) {
		if rel, ok := strings.CutPrefix(at, x.root+"/"); ok && !slices.Contains(out, rel) {
			out = append(out, rel)
		}
	}
	slices.Sort(out)
	return out, nil
}

// appeared lists the names that came to be during the run, or its row, and that it may not
// write, those above others first; none within those directories.
func (c *Cover) appeared(but []string) []string {
	var out []string
	c.doubtful = 0
	lost := slices.ContainsFunc(but, func(dir string) bool { _, err := c.index.stat(dir); return err != nil }) // the run has moved one
	for rel, e := range c.index.names {
		within := func(dir string) bool { return policy.Below(rel, dir) }
		if slices.ContainsFunc(but, within) || slices.ContainsFunc(c.unseen, within) {
			continue
		}
		inRow := c.stood != nil && e.inRow(c.row) // otherwise nothing was run
		if !(e.since > c.begun || inRow) || c.finder.mayWrite(path.Join(c.Root, rel)) || e.placed && c.index.nothingIn(rel, e) && c.elsewhere(rel) {
			continue
		}
		if lost && e.changed < c.started { // it came to light there, wherever that is now
			c.doubtful++
			continue
		}
		out = append(out, rel)
	}
	slices.Sort(out)
	return out
}

// nothingIn reports whether a placeholder is still as it was made, by its latest looks.
func (x *index) nothingIn(rel string, e entry) bool {
	if e.kind == unix.S_IFDIR {
		return x.empty(rel)
	}
	is, err := x.stat(rel)
	return err == nil && is.looksPlaced()
}

// elsewhere reports whether other processes need placeholders where a name is.
func (c *Cover) elsewhere(rel string) (yes bool) {
	c.finder.mu.Lock()
	defer c.finder.mu.Unlock()
	in(c.index.top, rel, func(dir int, _ string) error {
		yes = c.finder.others(dir)
		return nil
	})
	return yes
}
