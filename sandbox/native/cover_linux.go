package native

import (
	"context"
	"errors"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/protect"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// covers are how the protected names of what a run may write are kept.
type covers protect.Covers

// cover readies them. Whatever comes of it, done is called.
func (p *plan) cover(ctx context.Context) (covers, error) {
	if p.driver.finder == nil {
		return nil, nil
	}
	all, err := p.driver.finder.CoverAll(ctx, p.Protected(), p.Named)
	if err != nil {
		return covers(all), writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
	}
	saw, err := all.Saw(p.mounts)
	if err == nil && !saw {
		err = errMoved
	}
	return covers(all), err
}

// errMoved says that something was mounted or unmounted in what a box shows, since it was
// planned.
var errMoved = errors.New("something keeps being mounted or unmounted in what the box shows; try again")

func (all covers) done() ([]string, error) { return protect.Covers(all).Done() }

// errStale says that a view has mounts for names that have changed since.
var errStale = errors.New("protected names have changed")

// stamps say what the mounts in a view were made for, by writable directory.
type stamps []protect.Stamp

// A mounting is a script that makes mounts over protected names, ready to be sent.
type mounting struct {
	message
	whole stamps // it makes all of those
}

// since is what is not mounted yet in a view; nil: nothing. What all of it comes to is
// remembered, since most boxes need the same.
func (r *recipe) since(all covers, made stamps) (*mounting, error) {
	want := all.stamps()
	if len(made) == 0 && want != nil {
		if m := r.mounts.Load(); m != nil && slices.Equal(m.whole, want) {
			return m, nil
		}
	}
	s := &script{}
	for i, c := range all {
		var last protect.Stamp
		if i < len(made) {
			last = made[i]
		}
		mounts, ok := c.Since(last)
		if !ok {
			return nil, errStale
		}
		r.protect(s, mounts)
	}
	if len(s.ops) == 0 {
		return nil, nil
	}
	ready, err := s.message(inPlace, 0)
	m := &mounting{ready, nil}
	if err == nil && len(made) == 0 && want != nil {
		m.whole = want
		r.mounts.Store(m)
	}
	return m, err
}

// stamps are those of all covers; nil where one is for a single run.
func (all covers) stamps() stamps {
	out := make(stamps, len(all))
	for i, c := range all {
		if out[i] = c.Stamp(); out[i] == (protect.Stamp{}) {
			return nil
		}
	}
	return out
}

// keep makes the mounts in the view of a runner that is about to run, as far as they are
// not there.
func (r *runner) keep(all covers) error {
	m, err := r.cell.recipe.since(all, r.made)
	if err != nil || m == nil {
		return err
	}
	r.cell.conn.tell('m') // while it waits for the runner
	return r.cell.mount(m)
}

// protect makes them in a cell ahead: every run that follows, and needs the same, has them.
func (c *cell) protect(all covers) error {
	want := all.stamps()
	if want == nil {
		return nil // they are made for each run
	}
	m, err := c.recipe.since(all, c.made)
	if err == nil && m != nil {
		err = c.soon(m.message)
	}
	if err == nil {
		c.made = want
	}
	return err
}

// mount has the cell's launcher do so.
func (c *cell) mount(m *mounting) error {
	if err := c.conn.pass(m.encoded, nil); err != nil {
		return err
	}
	_, err := c.conn.expect(saysDone, m.script)
	return err
}

// protect mounts protected names, but for those in what is hidden altogether.
func (r *recipe) protect(s *script, all []protect.Mount) {
	for _, m := range all {
		if !reach.InAny(m.Path, r.root.plan.Hide) {
			s.protect(m)
		}
	}
}

// protect mounts one protected name, within the root that was entered.
func (s *script) protect(m protect.Mount) {
	s.doing("protect " + m.Path)
	at := inside(m.Path)
	flags := uint64(unix.O_PATH | unix.O_CLOEXEC)
	if m.Link {
		flags |= unix.O_NOFOLLOW
	}
	switch {
	case m.How == protect.Masked && m.Dir:
		s.tmpfs(at, unix.MS_RDONLY|unix.MS_NOEXEC, "mode=0,size=4k")
		return
	case m.How == protect.Masked:
		s.onto("/dev/null", at, flags, readOnly|noExec) // without devices it cannot be opened
		return
	case m.How == protect.ReadOnly:
		s.onto(at, at, flags, readOnly)
		return
	}
	s.onto(at, at, flags, plain)
}

// onto binds what is at one path of the root to another, with what is mounted below it.
func (s *script) onto(from, at string, flags, attrs uint64) {
	how := s.bytes(words(flags, 0, unix.RESOLVE_NO_SYMLINKS))
	fd := s.call(unix.SYS_OPENAT2, here, s.text(from), how, num(unix.SizeofOpenHow))
	tree := s.call(unix.SYS_OPEN_TREE, fd, s.text(""), num(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH))
	s.setattr(tree, attrs, unix.AT_RECURSIVE)
	s.attach(tree, at)
	s.call(unix.SYS_CLOSE, fd)
}
