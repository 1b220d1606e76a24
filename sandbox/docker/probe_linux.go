package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/unasked"
	"golang.org/x/sys/unix"
)

// probeNetwork has a box connect to somewhere, and looks where that leads.
func (d *Driver) probeNetwork(ctx context.Context, program string) sandbox.Finding {
	f := sandbox.Finding{Feature: sandbox.HostAllowlist}
	if d.opts.Outlet == nil {
		f.Evidence = "not claimed: a box has no network but its own, and nobody here leads it out"
		return f
	}
	if err := d.tryNetwork(ctx, program); err != nil {
		f.Evidence = "a box cannot be led out: " + strings.TrimPrefix(err.Error(), "sandbox_unavailable: ")
		return f
	}
	f.Enforced, f.Evidence = true, "a connection of a box to "+nowhere.String()+" came to the broker, and to nobody else"
	return f
}

// nowhere is of a range that is for documentation: nobody is there.
var nowhere = netip.MustParseAddrPort("192.0.2.1:9")

func (d *Driver) tryNetwork(ctx context.Context, program string) error {
	ws, confined, err := probe.Somewhere()
	defer os.RemoveAll(ws)
	if err != nil {
		return err
	}
	confined.Network = writ.Network{Mode: writ.NetworkHosts, Hosts: []string{nowhere.String()}}
	const at = reach.PrivateTmp + "/writ-connect"
	return unasked.Do(ctx, confined, "", func(ctx context.Context, w writ.Writ) error {
		said := sandbox.NewTail(4 << 10)
		p, err := d.plan(ctx, w, sandbox.Spec{Argv: []string{at, probe.Verb, partConnect}, Dir: ws, Stderr: said}, map[string]string{at: program}, true)
		if err != nil {
			return err
		}
		came := make(chan error, 1)
		p.outlet = func(_ writ.Writ, m sandbox.Mouth) (io.Closer, error) {
			go func() { came <- led(m) }()
			return m, nil
		}
		b, err := p.Start(ctx)
		if err != nil {
			return err
		}
		exit, err := b.Wait(ctx)
		if err == nil && exit.Code != 0 {
			err = fmt.Errorf("the box said %q", strings.TrimSpace(said.String()))
		}
		return errors.Join(err, <-came)
	})
}

// led waits for a connection to nowhere.
func led(m sandbox.Mouth) error {
	m.TCP.(*net.TCPListener).SetDeadline(time.Now().Add(sidecarWithin))
	c, err := m.TCP.Accept()
	if err != nil {
		return err
	}
	defer c.Close()
	if to, err := m.Original(c); err != nil || to != nowhere {
		return fmt.Errorf("a connection to %s came as one to %s: %w", nowhere, to, err)
	}
	return nil
}

// connect is what the box of a probe does.
func connect() {
	c, err := net.DialTimeout("tcp", nowhere.String(), sidecarWithin)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		unix.Exit(1)
	}
	c.Close()
	unix.Exit(0)
}
