package docker

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/moby/moby/api/types/mount"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress/divert"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/trust"
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
	name, labels := p.identity()
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
