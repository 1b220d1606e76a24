package divert

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"syscall"

	"golang.org/x/sys/unix"
)

const originalDst6 = 80 // IP6T_SO_ORIGINAL_DST

// Original is where a connection that was led here was meant to go.
func Original(c net.Conn) (netip.AddrPort, error) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return netip.AddrPort{}, errors.New("not a socket")
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	var to netip.AddrPort
	var got error
	err = raw.Control(func(fd uintptr) {
		if at, ok := c.LocalAddr().(*net.TCPAddr); ok && at.IP.To4() == nil {
			// An option that begins as a struct sockaddr_in6 does.
			m, err := unix.GetsockoptIPv6MTUInfo(int(fd), unix.SOL_IPV6, originalDst6)
			if got = err; err == nil {
				port := binary.BigEndian.AppendUint16(nil, 0)
				binary.NativeEndian.PutUint16(port, m.Addr.Port)
				to = netip.AddrPortFrom(netip.AddrFrom16(m.Addr.Addr), binary.BigEndian.Uint16(port))
			}
			return
		}
		// Any option of at least sixteen bytes does, which a struct sockaddr_in has.
		m, err := unix.GetsockoptIPv6Mreq(int(fd), unix.SOL_IP, unix.SO_ORIGINAL_DST)
		if got = err; err == nil {
			to = netip.AddrPortFrom(netip.AddrFrom4([4]byte(m.Multiaddr[4:8])), binary.BigEndian.Uint16(m.Multiaddr[2:4]))
		}
	})
	return to, errors.Join(err, got)
}
