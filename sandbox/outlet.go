package sandbox

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"

	"github.com/writ-run/writ"
)

// Outlet takes up what leaves the box of one run, until it is closed, and lets through what
// the writ says.
type Outlet func(writ.Writ, Mouth) (io.Closer, error)

// Mouth is where all that leaves a box arrives. Whoever gets it closes it.
type Mouth struct {
	TCP      net.Listener
	DNS      net.PacketConn
	DNSTCP   net.Listener
	TCP6     net.Listener                           // of IPv6; nil: nothing of it leaves the box
	DNS6     net.PacketConn                         // the same
	Original func(net.Conn) (netip.AddrPort, error) // where a connection was meant to go
}

// Close closes its sockets.
func (m Mouth) Close() error {
	errs := []error{m.TCP.Close(), m.DNS.Close(), m.DNSTCP.Close()}
	if m.TCP6 != nil {
		errs = append(errs, m.TCP6.Close(), m.DNS6.Close())
	}
	return errors.Join(errs...)
}

// Authority is what the closer of an outlet can be besides: it looks into TLS of the box,
// whose programs have to trust this certificate, in PEM. Nil: it does not.
type Authority interface{ Authority() []byte }

// Agent is what the closer of an outlet is besides, where the writ has programs of the box
// sign in by ssh.
type Agent interface {
	// Talk answers one program, as an agent of ssh does, until the connection or the
	// context ends. It is safe for concurrent use.
	Talk(context.Context, net.Conn)
	// SSHFiles are what ssh is told in the box, by name: ssh_config, ssh_known_hosts.
	SSHFiles() map[string][]byte
}
