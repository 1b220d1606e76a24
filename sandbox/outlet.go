package sandbox

import (
	"io"
	"net"
	"net/netip"

	"github.com/writ-run/writ"
)

// Outlet takes up what leaves the box of one run, until it is closed, and lets through what
// the writ says.
type Outlet func(writ.Writ, Mouth) (io.Closer, error)

// Mouth is where all that leaves a box arrives. Whoever gets it closes the three sockets.
type Mouth struct {
	TCP      net.Listener
	DNS      net.PacketConn
	DNSTCP   net.Listener
	Original func(net.Conn) (netip.AddrPort, error) // where a connection was meant to go
}

// Authority is what the closer of an outlet can be besides: it looks into TLS of the box,
// whose programs have to trust this certificate, in PEM. Nil: it does not.
type Authority interface{ Authority() []byte }
