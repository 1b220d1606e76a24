package native

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/unasked"
	"golang.org/x/sys/unix"
)

// probeNetwork has a box connect to somewhere, and looks where that leads.
func (d *Driver) probeNetwork(ctx context.Context) sandbox.Finding {
	f := sandbox.Finding{Feature: sandbox.HostAllowlist}
	if d.opts.Outlet == nil {
		f.Evidence = "not claimed: a box has no network but its own, and nobody here leads it out"
		return f
	}
	if err := d.tryNetwork(ctx); err != nil {
		f.Evidence = "a box cannot be led out: " + err.Error() + "; a kernel with nftables (CONFIG_NF_TABLES, CONFIG_NFT_REDIR, CONFIG_NF_CONNTRACK) can"
		return f
	}
	f.Enforced, f.Evidence = true, "a connection of a box to "+nowhere.String()+" came to the broker, and to nobody else"
	return f
}

func (d *Driver) tryNetwork(ctx context.Context) error {
	ws, confined, err := probe.Somewhere()
	defer os.RemoveAll(ws)
	if err != nil {
		return err
	}
	return d.inCell(ctx, confined, ws, func(c *cell) error {
		defer c.end()
		return c.ledOut()
	})
}

// inCell has a cell tried that is as one of a call with this confinement. Whoever tries it
// ends it.
func (d *Driver) inCell(ctx context.Context, confined writ.Confinement, ws string, try func(*cell) error) error {
	return unasked.Do(ctx, confined, "", func(ctx context.Context, w writ.Writ) error {
		p, err := d.plan(w, sandbox.Spec{Argv: []string{"/bin/true"}, Dir: ws}, map[string]string{})
		if err != nil {
			return err
		}
		c, err := d.cell(p, false, nil, nil)
		if err != nil {
			return err
		}
		return try(c)
	})
}

// nowhere is of a range that is for documentation: nobody is there.
var nowhere = netip.MustParseAddrPort("192.0.2.1:9")

// ledOut has the cell's launcher connect to nowhere.
func (c *cell) ledOut() error {
	sockets, err := c.sockets(true)
	if err != nil {
		return err
	}
	m, err := mouth(sockets)
	if err != nil {
		return err
	}
	defer m.Close()
	s := &script{}
	s.doing("connect")
	a := nowhere.Addr().As4()
	to := append(binary.BigEndian.AppendUint16(endian.AppendUint16(nil, unix.AF_INET), nowhere.Port()), a[:]...)
	fd := s.call(unix.SYS_SOCKET, num(unix.AF_INET), num(unix.SOCK_STREAM|unix.SOCK_CLOEXEC), num(0))
	s.call(unix.SYS_CONNECT, fd, s.bytes(append(to, make([]byte, 8)...)), num(16))
	s.call(unix.SYS_CLOSE, fd)
	if err := c.conn.send(s, inPlace, 0, "", ""); err != nil {
		return err
	}
	if _, err := c.conn.expect(saysDone, s); err != nil {
		return err
	}
	m.TCP.(*net.TCPListener).SetDeadline(time.Now().Add(time.Second))
	got, err := m.TCP.Accept()
	if err != nil {
		return err
	}
	defer got.Close()
	if led, err := m.Original(got); err != nil || led != nowhere {
		return fmt.Errorf("a connection to %s came as one to %s: %w", nowhere, led, err)
	}
	return nil
}
