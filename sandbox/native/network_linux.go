package native

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

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
	if err := p.trust(r, out); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// mouth sets the namespace up, and makes of its sockets what Go can use.
func mouth(s divert.Sockets) (m sandbox.Mouth, err error) {
	defer unix.Close(s.Route)
	defer unix.Close(s.Filter)
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	file := func(fd int) *os.File {
		files = append(files, os.NewFile(uintptr(fd), "socket"))
		return files[len(files)-1]
	}
	var opened []io.Closer
	listener := func(f *os.File) (l net.Listener) {
		if err == nil {
			if l, err = net.FileListener(f); err == nil {
				opened = append(opened, l)
			}
		}
		return l
	}
	packets := func(f *os.File) (c net.PacketConn) {
		if err == nil {
			if c, err = net.FilePacketConn(f); err == nil {
				opened = append(opened, c)
			}
		}
		return c
	}
	tcp, udp, stream := file(s.TCP), file(s.DNS), file(s.DNSTCP)
	var tcp6, udp6 *os.File
	if s.TCP6 >= 0 {
		tcp6, udp6 = file(s.TCP6), file(s.DNS6)
	}
	if err := s.Set(); err != nil {
		return m, fmt.Errorf("lead the network of the box out: %w", err)
	}
	m = sandbox.Mouth{TCP: listener(tcp), DNS: packets(udp), DNSTCP: listener(stream), Original: divert.Original}
	if tcp6 != nil {
		m.TCP6, m.DNS6 = listener(tcp6), packets(udp6)
	}
	if err != nil {
		for _, o := range opened {
			o.Close()
		}
		return sandbox.Mouth{}, err
	}
	return m, nil
}

// knowsSix reports whether this machine knows IPv6, and new namespaces have it.
var knowsSix = sync.OnceValue(func() bool {
	fd, err := unix.Socket(unix.AF_INET6, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	unix.Close(fd)
	for _, of := range []string{"all", "default"} {
		b, err := os.ReadFile("/proc/sys/net/ipv6/conf/" + of + "/disable_ipv6")
		if err != nil || strings.TrimSpace(string(b)) != "0" {
			return false
		}
	}
	return true
})

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
	kinds := [][3]int{
		{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER},
		{unix.AF_INET, unix.SOCK_STREAM, 0}, {unix.AF_INET, unix.SOCK_DGRAM, 0}, {unix.AF_INET, unix.SOCK_STREAM, 0},
	}
	if six && knowsSix() {
		kinds = append(kinds, [3]int{unix.AF_INET6, unix.SOCK_STREAM, 0}, [3]int{unix.AF_INET6, unix.SOCK_DGRAM, 0})
	}
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
	out := divert.Sockets{Route: fds[0], Filter: fds[1], TCP: fds[2], DNS: fds[3], DNSTCP: fds[4], TCP6: -1, DNS6: -1}
	if len(fds) > 5 {
		out.TCP6, out.DNS6 = fds[5], fds[6]
	}
	return out, nil
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
