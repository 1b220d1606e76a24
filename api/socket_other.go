//go:build !linux

package api

import (
	"errors"
	"net"
)

// ownUserOnly relies on the socket's mode where peers cannot be asked; who they are is
// then not known, and Writ-Agent makes nobody an agent.
type ownUserOnly struct {
	net.Listener
	proofs *proofs
}

func (l ownUserOnly) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return arrived(c, l.proofs, network, 0), nil
}

func listenAgents(path string, _ *proofs) (net.Listener, error) {
	if path == "" {
		return nil, nil
	}
	return nil, errors.New("listen.socket: whose a connection is can be asked on Linux only; remove it, and let agents use the address with a token")
}
