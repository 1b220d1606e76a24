//go:build unix

package upstream

import (
	"net"
	"syscall"
)

// quiet reports whether the other side of a connection that nobody uses has neither closed
// it nor said anything.
func quiet(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	waits := false
	err = raw.Control(func(fd uintptr) {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		waits = err == syscall.EAGAIN
	})
	return err == nil && waits
}
