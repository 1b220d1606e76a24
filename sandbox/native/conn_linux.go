package native

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A conn is the daemon's end of a launcher's socket. It is used by one goroutine at a time,
// but for tell.
type conn struct {
	file *os.File
	due  []due // replies that nobody has waited for yet, before any other
}

// A due is a reply that is still to come.
type due struct {
	what uint32
	of   *script
}

// newPair makes a conn, and the other end of it as a descriptor.
func newPair() (*conn, int, error) { return sockets(true) }

// newLine is newPair for what is told something once and answers elsewhere: nobody waits
// for what it says, so there is nothing to be woken by.
func newLine() (*conn, int, error) { return sockets(false) }

func sockets(heard bool) (*conn, int, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil && heard {
		err = unix.SetNonblock(fds[0], true)
	}
	if err != nil {
		return nil, -1, err
	}
	return &conn{file: os.NewFile(uintptr(fds[0]), "launcher")}, fds[1], nil
}

// A reply is what a launcher says.
type reply struct {
	What         uint32
	A, B         int32
	_            uint32
	User, System uint64 // microseconds
}

const replySize = 32

const (
	saysDone    = 'S' // a script that ran in place is done
	saysFailed  = 'F' // op A failed with errno B, and nothing of the command ran
	saysOK      = 'O' // saysDone of what a runner was told
	saysNot     = 'N' // saysFailed of that
	saysReady   = 'R'
	saysBox     = 'B' // a box was made; its process is A
	saysEnded   = 'E' // the command ended with the wait status A
	saysCleared = 'D' // no process of it is left; B: but something else
)

// send hands a script over.
func (c *conn) send(s *script, m mode, clone uint64, uidMap, gidMap string) error {
	b, err := s.encode(m, clone, uidMap, gidMap)
	if err != nil {
		return err
	}
	return c.pass(b, nil)
}

// pass hands an encoded script over, and descriptors for it.
func (c *conn) pass(b []byte, fds []int) error {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	var sendErr error
	err = raw.Write(func(fd uintptr) bool {
		for len(b) > 0 {
			n, err := unix.SendmsgN(int(fd), b, rights, nil, unix.MSG_NOSIGNAL)
			if err == unix.EAGAIN {
				return false
			}
			if err == unix.EINTR {
				continue
			}
			if err != nil {
				sendErr = err
				return true
			}
			b, rights = b[n:], nil
		}
		return true
	})
	return errors.Join(err, sendErr)
}

// later is expect, for a reply that is looked at before the next one is: a launcher is told
// several things at once, and nothing is executed until all of them have been done.
func (c *conn) later(what uint32, s *script) { c.due = append(c.due, due{what, s}) }

// settle waits for what was left for later.
func (c *conn) settle() error {
	for len(c.due) > 0 {
		d := c.due[0]
		c.due = c.due[1:]
		if _, err := c.heard(d.what, d.of); err != nil {
			return err
		}
	}
	return nil
}

// next is the next reply.
func (c *conn) next() (reply, error) {
	if err := c.settle(); err != nil {
		return reply{}, err
	}
	return c.read()
}

func (c *conn) read() (reply, error) {
	var r reply
	b := make([]byte, replySize)
	if _, err := io.ReadFull(c.file, b); err != nil {
		return r, err
	}
	_, err := binary.Decode(b, binary.NativeEndian, &r)
	return r, err
}

// expect is the next reply, which has to be one of a kind.
func (c *conn) expect(what uint32, s *script) (reply, error) {
	if err := c.settle(); err != nil {
		return reply{}, err
	}
	return c.heard(what, s)
}

func (c *conn) heard(what uint32, s *script) (reply, error) {
	r, err := c.read()
	if err != nil {
		return r, fmt.Errorf("the launcher ended: %w", err)
	}
	return s.expected(what, r)
}

// expected is a reply to the script, which has to be one of a kind.
func (s *script) expected(what uint32, r reply) (reply, error) {
	switch r.What {
	case what:
		return r, nil
	case saysFailed, saysNot:
		return r, s.failure(r)
	}
	return r, fmt.Errorf("the launcher said %q instead of %q", rune(r.What), rune(what))
}

// A failure is a step that kept a box from starting.
type failure struct {
	Step  string
	Errno unix.Errno
}

func (f *failure) Error() string { return f.Step + ": " + f.Errno.Error() }

func (f *failure) Unwrap() error { return f.Errno }

func (s *script) failure(r reply) error {
	f := &failure{stepBegin, unix.Errno(r.B)}
	if r.A >= 0 && int(r.A) < len(s.steps) {
		f.Step = s.steps[r.A]
	}
	return f
}

// tell sends one of the messages that a command under way can be sent.
func (c *conn) tell(b byte) { c.file.Write([]byte{b}) }

// hangUp says that nothing more is told. What the launcher says can be read until it ends.
func (c *conn) hangUp() error {
	raw, err := c.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = unix.Shutdown(int(fd), unix.SHUT_WR) })
	return errors.Join(err, failed)
}

func (c *conn) close() error { return c.file.Close() }
