package native

import (
	"errors"
	"fmt"
	"io"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress/divert"
	"github.com/writ-run/writ/sandbox"
	"golang.org/x/sys/unix"
)

// wayOut leads all that leaves the box of a runner to the outlet, before there is anything
// that could leave. Nil: nothing leaves it.
func (p *plan) wayOut(r *runner) (io.Closer, error) {
	if p.writ.Confinement().Network.Mode == writ.NetworkNone {
		return nil, p.signIn(r, nil)
	}
	if p.driver.opts.Outlet == nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver native does not enforce host_allowlist", nil)
	}
	r.cell.conn.tell('m') // while it waits for the runner
	s, err := r.cell.sockets(p.writ.Confinement().Network.IPv6)
	if err != nil {
		return nil, err
	}
	m, err := mouth(s)
	if err != nil {
		return nil, err
	}
	out, err := p.driver.opts.Outlet(p.writ, m)
	if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	if err := errors.Join(p.trust(r, out), p.signIn(r, out)); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// mouth sets the namespace up, and makes of its sockets what Go can use.
func mouth(s divert.Sockets) (sandbox.Mouth, error) {
	defer s.Close()
	if err := s.Set(divert.Bounds{}); err != nil {
		s.Listening.Close()
		return sandbox.Mouth{}, fmt.Errorf("lead the network of the box out: %w", err)
	}
	return s.Mouth()
}

// sockets are opened in the network namespace of a cell, by its launcher, which hands
// them out: what is bound to them afterwards is bound in there.
func (c *cell) sockets(six bool) (divert.Sockets, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return divert.Sockets{}, err
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	s := &script{}
	kinds := divert.Kinds(six && divert.KnowsSix())
	s.handOut(passed(0), kinds)
	b, err := s.encode(inPlace, 0, "", "")
	if err == nil {
		err = c.conn.pass(b, []int{pair[1]})
	}
	if err == nil {
		_, err = c.conn.expect(saysDone, s)
	}
	if err != nil {
		return divert.Sockets{}, err
	}
	fds, err := received(pair[0], len(kinds))
	if err != nil {
		return divert.Sockets{}, err
	}
	return divert.Of(fds), nil
}

// handOut opens sockets of these families, types and protocols, and sends them by another.
func (s *script) handOut(by arg, kinds [][3]int) {
	s.doing("open sockets")
	opened := make([]arg, len(kinds))
	for i, k := range kinds {
		opened[i] = s.call(unix.SYS_SOCKET, num(k[0]), num(k[1]|unix.SOCK_CLOEXEC), num(k[2]))
	}
	s.give(by, opened...)
}

// give sends descriptors by a socket, and closes them.
func (s *script) give(by arg, all ...arg) {
	rights := s.bytes(unix.UnixRights(make([]int, len(all))...))
	for i, fd := range all {
		s.store(rights, unix.CmsgLen(0)+4*i, fd)
	}
	s.giveAll(by, rights, all)
}

func (s *script) giveAll(by, rights arg, all []arg) {
	one := s.bytes([]byte{1})
	part := s.bytes(words(0, 1)) // struct iovec
	s.pointer(part, 0, one)
	message := s.bytes(words(0, 0, 0, 1, 0, uint64(unix.CmsgSpace(4*len(all))), 0)) // struct msghdr
	s.pointer(message, 16, part)
	s.pointer(message, 32, rights)
	s.call(unix.SYS_SENDMSG, by, message, num(unix.MSG_NOSIGNAL))
	for _, fd := range all {
		s.call(unix.SYS_CLOSE, fd)
	}
}

// received takes so many descriptors, or none.
func received(from, want int) ([]int, error) {
	b, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4*want))
	_, n, flags, _, err := unix.Recvmsg(from, b, rights, unix.MSG_CMSG_CLOEXEC|unix.MSG_DONTWAIT)
	if err != nil {
		return nil, err
	}
	return divert.Rights(rights[:n], flags, want)
}
