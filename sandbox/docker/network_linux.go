package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/moby/moby/api/types/mount"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress/divert"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/trust"
	"github.com/writ-run/writ/sandbox/unasked"
	"golang.org/x/sys/unix"
)

// A way is the way out of one box. A nil one is none.
type way struct {
	beside *sidecar
	dir    string // removed at the end
	out    io.Closer
	shown  []mount.Mount // what the box has in place of what its image has
	once   sync.Once
}

func (p *plan) networked() bool { return p.writ.Confinement().Network.Mode != writ.NetworkNone }

func (p *plan) six() bool { return p.writ.Confinement().Network.IPv6 && divert.KnowsSix() }

// wayOut leads all that leaves the box of a plan to the outlet, before there is a box. Nil:
// nothing leaves it.
func (p *plan) wayOut(ctx context.Context) (*way, error) {
	if !p.networked() {
		return nil, nil
	}
	if p.outlet == nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver docker does not enforce host_allowlist", nil)
	}
	if err := p.driver.begin(ctx); err != nil { // before there is something of ours
		return nil, err
	}
	name, labels := p.driver.identity(p.writ.Call())
	w := &way{}
	err := p.lead(ctx, w, name, labels)
	if err != nil {
		return nil, errors.Join(err, w.end())
	}
	return w, nil
}

func (p *plan) lead(ctx context.Context, w *way, name string, labels map[string]string) (err error) {
	unmade := func(err error) error {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the files of a sidecar cannot be made in "+p.driver.opts.State+"; it must be a directory that this program can write", err)
	}
	if w.dir, err = p.driver.aside(name); err != nil {
		return unmade(err)
	}
	meet := filepath.Join(w.dir, "meet")
	if err := os.Mkdir(meet, 0o711); err != nil {
		return unmade(err)
	}
	l, err := listen(meet)
	if err != nil {
		return unmade(err)
	}
	defer l.Close()
	side := p.driver.opts.Sidecar
	w.beside, err = p.sidecar(ctx, name, labels, meet)
	if err != nil {
		return err
	}
	m, err := w.beside.mouth(ctx, l, terms{Six: p.six(), Bounds: divert.Bounds{NoNames: side.NoNames, NoLoopback: side.NoLoopback}})
	if err != nil {
		return err
	}
	if w.out, err = p.outlet(p.writ, m); err != nil {
		return errors.Join(err, m.Close())
	}
	go func() { // without the one that has the namespace, nothing gets out of it
		<-w.beside.dead
		w.close()
	}()
	return p.trust(w)
}

// close ends what leaves the box.
func (w *way) close() (err error) {
	if w != nil && w.out != nil {
		w.once.Do(func() { err = w.out.Close() })
	}
	return err
}

// end ends the sidecar too.
func (w *way) end() error {
	if w == nil {
		return nil
	}
	err := w.close()
	if w.beside != nil && w.beside.running != nil {
		err = errors.Join(err, w.beside.end())
	}
	if w.dir != "" {
		err = errors.Join(err, os.RemoveAll(w.dir))
	}
	return err
}

// Sidecar is the ID of the container that leads the network of the box out, and what that
// has said so far; empty of a box that reaches nothing.
func (b *box) Sidecar() (id string, said Said) {
	if b.out == nil {
		return "", Said{}
	}
	return b.out.beside.id, b.out.beside.said.so()
}

// trust has the programs of a box trust its outlet, where that looks into their TLS.
func (p *plan) trust(w *way) error {
	with, ok := w.out.(sandbox.Authority)
	if !ok || with.Authority() == nil {
		return nil
	}
	c, err := trust.Anywhere(with.Authority())
	if err != nil {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
	}
	p.Env = c.Over(p.Env)
	for i, path := range slices.Sorted(maps.Keys(c.Files)) {
		file := filepath.Join(w.dir, fmt.Sprintf("trust-%d", i))
		if err := errors.Join(os.WriteFile(file, c.Files[path], 0o644), os.Chmod(file, 0o444)); err != nil {
			return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the files that boxes are shown cannot be made in "+w.dir+"; it must be a directory that this program can write", err)
		}
		w.shown = append(w.shown, bound(file, path, true))
	}
	return nil
}

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
