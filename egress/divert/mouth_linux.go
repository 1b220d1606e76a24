package divert

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"

	"github.com/writ-run/writ/sandbox"
	"golang.org/x/sys/unix"
)

// Kinds are the family, type and protocol of each of the Sockets, in order.
func Kinds(six bool) [][3]int {
	kinds := [][3]int{
		{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE}, {unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER},
		{unix.AF_INET, unix.SOCK_STREAM, 0}, {unix.AF_INET, unix.SOCK_DGRAM, 0}, {unix.AF_INET, unix.SOCK_STREAM, 0},
	}
	if six {
		kinds = append(kinds, [3]int{unix.AF_INET6, unix.SOCK_STREAM, 0}, [3]int{unix.AF_INET6, unix.SOCK_DGRAM, 0})
	}
	return kinds
}

// Of are the sockets of Kinds, in the same order.
func Of(fds []int) Sockets {
	s := Sockets{Route: fds[0], Filter: fds[1], Listening: Listening{fds[2], fds[3], fds[4], -1, -1}}
	if len(fds) > 5 {
		s.TCP6, s.DNS6 = fds[5], fds[6]
	}
	return s
}

// Listening are those of the sockets to which everything is led.
type Listening struct {
	TCP    int // stream, IPv4
	DNS    int // datagram, IPv4
	DNSTCP int // stream, IPv4, for answers that do not fit
	TCP6   int // stream, IPv6; -1: the machine has none
	DNS6   int // datagram, IPv6; -1: the same
}

// All are those there are, in the order of their fields.
func (l Listening) All() []int {
	if l.TCP6 < 0 {
		return []int{l.TCP, l.DNS, l.DNSTCP}
	}
	return []int{l.TCP, l.DNS, l.DNSTCP, l.TCP6, l.DNS6}
}

// Close closes them.
func (l Listening) Close() {
	for _, fd := range l.All() {
		unix.Close(fd)
	}
}

// Mouth makes of them what Go can use. They are closed, whatever comes of it.
func (l Listening) Mouth() (m sandbox.Mouth, err error) {
	defer l.Close()
	var opened []io.Closer
	open := func(fd int, of func(*os.File) (io.Closer, error)) {
		if err != nil {
			return
		}
		again, failed := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		if err = failed; err != nil {
			return
		}
		f := os.NewFile(uintptr(again), "socket")
		defer f.Close()
		var c io.Closer
		if c, err = of(f); err == nil {
			opened = append(opened, c)
		}
	}
	listen := func(fd int, to *net.Listener) {
		open(fd, func(f *os.File) (io.Closer, error) {
			got, err := net.FileListener(f)
			*to = got
			return got, err
		})
	}
	packets := func(fd int, to *net.PacketConn) {
		open(fd, func(f *os.File) (io.Closer, error) {
			got, err := net.FilePacketConn(f)
			*to = got
			return got, err
		})
	}
	m.Original = Original
	listen(l.TCP, &m.TCP)
	packets(l.DNS, &m.DNS)
	listen(l.DNSTCP, &m.DNSTCP)
	if l.TCP6 >= 0 {
		listen(l.TCP6, &m.TCP6)
		packets(l.DNS6, &m.DNS6)
	}
	if err != nil {
		for _, o := range opened {
			o.Close()
		}
		return sandbox.Mouth{}, err
	}
	return m, nil
}

// Rights are the descriptors that came with a message: so many, or none.
func Rights(control []byte, flags, want int) (fds []int, err error) {
	messages, err := unix.ParseSocketControlMessage(control)
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

// KnowsSix reports whether this machine knows IPv6, and new namespaces have it.
var KnowsSix = sync.OnceValue(func() bool {
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
