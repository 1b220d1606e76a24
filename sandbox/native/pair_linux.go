package native

import (
	"net"

	"golang.org/x/sys/unix"
)

// newPair has the launcher of a cell make two connected sockets, while it waits for a
// command. tell tells it what to do, when nobody else tells it something; heard waits for
// what it says of that.
func (c *cell) newPair(tell func(func() error) error, heard func(*script) error) (ours, theirs int, err error) {
	by, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, -1, err
	}
	defer unix.Close(by[0])
	defer unix.Close(by[1])
	s := &script{}
	s.doing("open a pair of sockets")
	rights := s.bytes(unix.UnixRights(0, 0))
	at := arg{rights.kind, rights.value + uint64(unix.CmsgLen(0))}
	s.call(unix.SYS_SOCKETPAIR, num(unix.AF_UNIX), num(unix.SOCK_STREAM|unix.SOCK_CLOEXEC), num(0), at)
	s.giveAll(passed(0), rights, []arg{held(at, 0), held(at, 4)})
	encoded, err := s.encode(inPlace, 0, "", "")
	if err == nil {
		err = tell(func() error {
			c.conn.tell('m')
			return c.conn.pass(encoded, []int{by[1]})
		})
	}
	if err == nil {
		err = heard(s)
	}
	if err != nil {
		return -1, -1, err
	}
	fds, err := received(by[0], 2)
	if err != nil {
		return -1, -1, err
	}
	return fds[0], fds[1], nil
}

// pair is newPair while the command of a box runs, whose end may come in between.
func (b *box) pair() (ours, theirs int, err error) {
	return b.runner.cell.newPair(func(ask func() error) error {
		b.mu.Lock() // as whatever else its launcher is told
		defer b.mu.Unlock()
		if b.ended {
			return net.ErrClosed
		}
		b.told = true
		return ask()
	}, func(s *script) error {
		select {
		case r := <-b.made:
			if r.What == saysFailed {
				return s.failure(r)
			}
			return nil
		case <-b.silent:
			return net.ErrClosed
		}
	})
}
