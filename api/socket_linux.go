package api

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownUserOnly takes connections from the daemon's own user and from root; the
// socket's mode says the same, and this holds even where the mode was changed.
type ownUserOnly struct {
	net.Listener
	proofs *proofs
}

func (l ownUserOnly) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peer(c); err == nil && (uid == uint32(os.Geteuid()) || uid == 0) {
			return arrived(c, l.proofs, operatorSocket, uid), nil
		}
		c.Close()
	}
}

// listenAgents opens the socket that users of this machine come to; without a path
// there is none. Everybody can open it, and who they are is asked of the kernel.
func listenAgents(path string, p *proofs) (net.Listener, error) {
	if path == "" {
		return nil, nil
	}
	if err := onlyOurs(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	// The directory is ours alone and the store's lock is held, so a socket that is
	// there belongs to nobody; anything else is not removed.
	if info, err := os.Lstat(path); err == nil && info.Mode().Type() == os.ModeSocket {
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen on the agents' socket: %w; set listen.socket to a free path", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return byPeer{l, p}, nil
}

// onlyOurs holds a directory to what the configuration was held to, which may have been
// a while ago: nobody but this user and root may put anything there.
func onlyOurs(dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("%w; make the directory first: mkdir -m 755 %s", err, dir)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid != uint32(os.Geteuid()) && owner.Uid != 0 || info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("others can write to %s and put a socket of their own there; run: chown %d %s; chmod go-w %s", dir, os.Geteuid(), dir, dir)
	}
	return nil
}

// byPeer takes connections of anybody whom the kernel names.
type byPeer struct {
	net.Listener
	proofs *proofs
}

func (l byPeer) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if uid, err := peer(c); err == nil {
			return arrived(c, l.proofs, agentSocket, uid), nil
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
