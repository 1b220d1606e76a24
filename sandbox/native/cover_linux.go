package native

import (
	"context"
	"errors"
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/protect"
	"golang.org/x/sys/unix"
)

// covers are how the protected names of what a run may write are kept.
type covers []*protect.Cover

// cover readies them. Whatever comes of it, done is called.
func (p *plan) cover(ctx context.Context) (all covers, err error) {
	if p.driver.finder == nil {
		return nil, nil
	}
	for _, root := range p.Write {
		if !isDir(root) || p.Unprotected(root) {
			continue
		}
		c, err := p.driver.finder.Cover(ctx, root, nil)
		if err == nil {
			all = append(all, c)
			err = c.Prepare()
		}
		if err != nil {
			return all, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
		}
	}
	return all, nil
}

// done takes away what was made for the run, and says what the run left that may not stay.
func (all covers) done() (undone []string, err error) {
	for _, c := range all {
		found, failed := c.Done()
		err = errors.Join(err, failed)
		for _, a := range found {
			where := "moved to " + a.MovedTo
			if a.MovedTo == "" {
				where = "still there"
			}
			undone = append(undone, fmt.Sprintf("%s (%s): %s", a.Path, a.Why, where))
		}
	}
	return undone, err
}

// keep makes the mounts in a runner's view, by the process beside it, which goes then.
func (r *runner) keep(all covers) error {
	if r.mounts == nil {
		return nil
	}
	defer r.mounts.close()
	var s script
	for _, c := range all {
		for _, m := range c.Mounts {
			s.protect(m)
		}
	}
	if len(s.ops) > 0 {
		if err := r.mounts.send(&s, inPlace, 0, "", ""); err != nil {
			return err
		}
		if _, err := r.mounts.expect(saysDone, &s); err != nil {
			return err
		}
	}
	return nil
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
// Nothing is closed: whoever does this has nothing else to do.
func (s *script) onto(from, at string, flags, attrs uint64) {
	how := s.bytes(words(flags, 0, unix.RESOLVE_NO_SYMLINKS))
	fd := s.call(unix.SYS_OPENAT2, here, s.text(from), how, num(unix.SizeofOpenHow))
	tree := s.call(unix.SYS_OPEN_TREE, fd, s.text(""), num(unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH))
	s.setattr(tree, attrs, unix.AT_RECURSIVE)
	s.call(unix.SYS_MOVE_MOUNT, tree, s.text(""), here, s.text(at), num(unix.MOVE_MOUNT_F_EMPTY_PATH))
}
