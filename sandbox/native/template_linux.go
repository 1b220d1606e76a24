package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"

	"github.com/writ-run/writ/egress/divert"
	"golang.org/x/sys/unix"
)

// A template is a mount namespace that has a view and nothing else, and in which nobody is: a
// cell begins in a copy of it, which takes the kernel a fraction of what making the view does.
// It belongs to the factory's user namespace: what came with it, a cell can neither take away
// nor open again.
type template struct {
	space *os.File
	made  stamps // what its mounts over protected names were made for
}

// shared is a template, made when it is first asked for, and anew when it is one for other
// names than are asked for.
type shared struct {
	mu sync.Mutex
	is *template
}

func (s *shared) get(made stamps, build func() (*os.File, error)) (*template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.is != nil && slices.Equal(s.is.made, made) {
		return s.is, nil
	}
	space, err := build()
	if err != nil {
		return nil, err
	}
	s.is = &template{space, made} // the one before may be in use, and is closed when it is not
	return s.is, nil
}

// template is the view of a recipe, with mounts over protected names where those last.
func (kept covers) template(r *recipe) (*template, error) {
	bare, err := r.bare.get(nil, func() (*os.File, error) {
		return r.factory.hand(r.root.copy(), unix.CLONE_NEWNS|unix.CLONE_NEWPID, nil)
	})
	made := kept.stamps()
	if err != nil || len(made) == 0 {
		return bare, err
	}
	return r.whole.get(made, func() (*os.File, error) {
		s := &script{}
		s.seeProc()
		s.doing(stepSpace)
		s.call(unix.SYS_SETNS, passed(1), num(unix.CLONE_NEWNS))
		s.call(unix.SYS_UNSHARE, num(unix.CLONE_NEWNS))
		for _, c := range kept {
			r.protect(s, c.Mounts)
		}
		return r.factory.hand(s, 0, bare)
	})
}

// theProc is the host's /proc, in a script that begins with seeProc. By it a process finds
// itself where it sees nothing of the host any more.
var theProc = arg{2, 0}

func (s *script) seeProc() {
	s.doing(stepSpace)
	s.call(unix.SYS_OPENAT, here, s.text(oldRoot+"/proc"), num(unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC), num(0))
}

// hand has a script that begins with seeProc done aside, and gives the mounts that it is in
// at its end.
func (f *factory) hand(s *script, clone uint64, in *template) (*os.File, error) {
	s.doing(stepSpace)
	space := s.call(unix.SYS_OPENAT, theProc, s.text("self/ns/mnt"), num(unix.O_RDONLY|unix.O_CLOEXEC), num(0))
	s.give(passed(0), space)
	s.call(unix.SYS_EXIT_GROUP, num(0))
	m, err := s.message(aside, clone)
	if err != nil {
		return nil, err
	}
	c, err := f.aside(m, in)
	if err != nil {
		return nil, err
	}
	defer c.close()
	fd, err := c.given(s)
	if err != nil {
		return nil, fmt.Errorf("make a view: %w", f.unsaid(err))
	}
	return os.NewFile(uintptr(fd), "view"), nil
}

// given is a descriptor that is sent instead of a reply.
func (c *conn) given(s *script) (fd int, err error) {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return -1, err
	}
	b, rights := make([]byte, replySize), make([]byte, unix.CmsgSpace(4))
	var n, nr, flags int
	var failed error
	err = raw.Read(func(from uintptr) bool {
		for {
			if n, nr, flags, _, failed = unix.Recvmsg(int(from), b, rights, unix.MSG_CMSG_CLOEXEC); failed != unix.EINTR {
				return failed != unix.EAGAIN
			}
		}
	})
	switch err := errors.Join(err, failed); {
	case err != nil:
		return -1, err
	case n == 0:
		return -1, io.EOF
	case n == replySize:
		var r reply
		if _, err := binary.Decode(b, binary.NativeEndian, &r); err != nil {
			return -1, err
		}
		return -1, s.failure(r)
	}
	fds, err := divert.Rights(rights[:nr], flags, 1)
	if err != nil {
		return -1, err
	}
	return fds[0], nil
}
