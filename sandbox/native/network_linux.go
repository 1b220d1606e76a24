package native

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress/divert"
	"github.com/writ-run/writ/sandbox"
	"golang.org/x/sys/unix"
)

// wayOut leads all that leaves the box of a runner to the outlet, before there is anything
// that could leave. Nil: nothing leaves it.
func (p *plan) wayOut(r *runner) (io.Closer, error) {
	if p.writ.Confinement().Network.Mode == writ.NetworkNone {
		return nil, nil
	}
	if p.driver.opts.Outlet == nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver native does not enforce host_allowlist", nil)
	}
	r.cell.conn.tell('m') // while it waits for the runner
	s, err := r.cell.sockets()
	if err != nil {
		return nil, err
	}
	m, err := mouth(s)
	if err != nil {
		return nil, err
	}
	out, err := p.driver.opts.Outlet(p.writ, m)
	if err != nil {
		return nil, errors.Join(err, m.TCP.Close(), m.DNS.Close(), m.DNSTCP.Close())
	}
	if err := p.trust(r, out); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// mouth sets the namespace up, and makes of its sockets what Go can use.
func mouth(s divert.Sockets) (m sandbox.Mouth, err error) {
	defer unix.Close(s.Route)
	defer unix.Close(s.Filter)
	tcp, udp, stream := os.NewFile(uintptr(s.TCP), "tcp"), os.NewFile(uintptr(s.DNS), "dns"), os.NewFile(uintptr(s.DNSTCP), "dns-tcp")
	defer tcp.Close()
	defer udp.Close()
	defer stream.Close()
	if err := s.Set(); err != nil {
		return m, fmt.Errorf("lead the network of the box out: %w", err)
	}
	m.Original = divert.Original
	if m.TCP, err = net.FileListener(tcp); err != nil {
		return m, err
	}
	if m.DNS, err = net.FilePacketConn(udp); err != nil {
		return m, errors.Join(err, m.TCP.Close())
	}
	if m.DNSTCP, err = net.FileListener(stream); err != nil {
		return m, errors.Join(err, m.TCP.Close(), m.DNS.Close())
	}
	return m, nil
}

// sockets are opened in the network namespace of a cell, by its launcher, which hands
// them out: what is bound to them afterwards is bound in there.
func (c *cell) sockets() (divert.Sockets, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return divert.Sockets{}, err
	}
	defer unix.Close(pair[0])
	defer unix.Close(pair[1])
	s := &script{}
	s.handOut(passed(0), [][3]int{
		{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER},
		{unix.AF_INET, unix.SOCK_STREAM, 0}, {unix.AF_INET, unix.SOCK_DGRAM, 0}, {unix.AF_INET, unix.SOCK_STREAM, 0},
	})
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
	fds, err := received(pair[0], 5)
	if err != nil {
		return divert.Sockets{}, err
	}
	return divert.Sockets{Route: fds[0], Filter: fds[1], TCP: fds[2], DNS: fds[3], DNSTCP: fds[4]}, nil
}

// handOut opens sockets of these families, types and protocols, and sends them by another.
func (s *script) handOut(by arg, kinds [][3]int) {
	s.doing("open sockets")
	rights := s.bytes(unix.UnixRights(make([]int, len(kinds))...))
	opened := make([]arg, len(kinds))
	for i, k := range kinds {
		opened[i] = s.call(unix.SYS_SOCKET, num(k[0]), num(k[1]|unix.SOCK_CLOEXEC), num(k[2]))
		s.store(rights, unix.CmsgLen(0)+4*i, opened[i])
	}
	one := s.bytes([]byte{1})
	part := s.bytes(words(0, 1)) // struct iovec
	s.pointer(part, 0, one)
	message := s.bytes(words(0, 0, 0, 1, 0, uint64(unix.CmsgSpace(4*len(kinds))), 0)) // struct msghdr
	s.pointer(message, 16, part)
	s.pointer(message, 32, rights)
	s.call(unix.SYS_SENDMSG, by, message, num(unix.MSG_NOSIGNAL))
	for _, fd := range opened {
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
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	var fds []int
	for i := range messages {
		got, parsed := unix.ParseUnixRights(&messages[i])
		fds, err = append(fds, got...), errors.Join(err, parsed)
	}
	if err == nil && (len(fds) != want || flags&unix.MSG_CTRUNC != 0) {
		err = fmt.Errorf("%d sockets came instead of %d", len(fds), want)
	}
	if err != nil {
		for _, fd := range fds {
			unix.Close(fd)
		}
		return nil, err
	}
	return fds, nil
}
