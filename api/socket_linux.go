package api

import (
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// ownUserOnly takes connections from the daemon's own user and from root; the
// socket's mode says the same, and this holds even where the mode was changed.
type ownUserOnly struct{ net.Listener }

func (l ownUserOnly) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peer(c); err == nil && (uid == uint32(os.Geteuid()) || uid == 0) {
			return c, nil
		}
		c.Close()
	}
}

func peer(c net.Conn) (uint32, error) {
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) { cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil {
		return 0, err
	}
	if credErr != nil {
		return 0, credErr
	}
	return cred.Uid, nil
}
