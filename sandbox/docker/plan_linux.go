package docker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"syscall"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/mounted"
	"github.com/writ-run/writ/sandbox/protect"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/supervise"
	"github.com/writ-run/writ/sandbox/wrapped"
)

// A plan is one run that has not begun. It implements sandbox.Plan.
type plan struct {
	*reach.Plan
	driver *Driver
	writ   writ.Writ
	spec   sandbox.Spec
	probes bool // it is for a probe, which writes what it may
	outlet sandbox.Outlet

	config *container.Config
	host   *container.HostConfig
	shown  []wrapped.File
	hidden []wrapped.File
	labels map[string]string // those of the image, empty
	alike  string
	table  *mounted.Table
	mounts string // what the host has mounted in what it shows, by that
}

// plan works out a run for a writ whose demands have been checked.
func (d *Driver) plan(ctx context.Context, w writ.Writ, spec sandbox.Spec, show map[string]string, probes bool) (*plan, error) {
	if len(spec.Argv) == 0 {
		return nil, writ.Fail(writ.Invalid, "there is no command to run", nil)
	}
	// The program is looked for in the container.
	r, err := reach.Of(w, spec, d.opts.Options, append(slices.Collect(maps.Keys(show)), spec.Argv[0])...)
	if err != nil {
		return nil, err
	}
	p := &plan{Plan: r, driver: d, writ: w, spec: spec, probes: probes, outlet: d.opts.Outlet, labels: map[string]string{}}
	if err := p.build(ctx, show); err != nil {
		return nil, err
	}
	text, err := json.Marshal([]any{p.config, p.host})
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the box could not be described", err)
	}
	sum := sha256.Sum256(text)
	p.alike = hex.EncodeToString(sum[:])
	return p, p.look()
}

// look takes note of what is mounted now.
func (p *plan) look() error {
	now, err := mounted.Now()
	if err != nil {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
	}
	p.table, p.mounts = now, ""
	for _, path := range p.Write { // of what is read-only what is mounted below is left out (bind)
		p.mounts += now.Mark(path)
	}
	return nil
}

func (p *plan) readOnly() bool { return p.driver.opts.ReadOnly && !p.probes }

// leaves reports whether the container stays on the disk when its time is over.
func (p *plan) leaves() bool { return p.driver.opts.Leave && !p.probes }

// Alike implements sandbox.Plan.
func (p *plan) Alike() string { return p.alike }

// Start implements sandbox.Plan.
func (p *plan) Start(ctx context.Context) (sandbox.Box, error) {
	if err := p.look(); err != nil {
		return nil, err
	}
	out, err := p.wayOut(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.create(ctx, out)
	if err != nil {
		return nil, errors.Join(err, out.end())
	}
	b, err := p.runIn(ctx, c)
	if err != nil {
		err = errors.Join(err, c.end())
		return nil, errors.Join(err, out.end()) // the namespace is the sidecar's
	}
	b.last, b.out, b.silent = c.end, out, p.probes
	return b, nil
}

// A kept is a container for one command after the other. It implements sandbox.Kept.
type kept struct {
	*running
	alike, mounts string
}

// Keep implements sandbox.Plan.
func (p *plan) Keep(ctx context.Context) (sandbox.Kept, error) {
	if p.networked() {
		return nil, sandbox.ErrUnfit // a way out is one call's
	}
	if err := p.look(); err != nil {
		return nil, err
	}
	c, err := p.create(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &kept{c, p.alike, p.mounts}, nil
}

// StartIn implements sandbox.Plan.
func (p *plan) StartIn(ctx context.Context, in sandbox.Kept) (sandbox.Box, error) {
	if err := p.look(); err != nil {
		return nil, err
	}
	k := in.(*kept)
	if k.alike != p.alike || k.mounts != p.mounts || k.gone() || k.spent.Load() {
		return nil, sandbox.ErrUnfit
	}
	b, err := p.runIn(ctx, k.running)
	if errors.Is(err, errMoved) {
		return nil, sandbox.ErrUnfit
	}
	if err != nil {
		return nil, err
	}
	return b, nil
}

// Renew implements sandbox.Kept.
func (k *kept) Renew(ctx context.Context) error { return k.clear(ctx) }

// Close implements sandbox.Kept.
func (k *kept) Close() error { return k.end() }

// A box is one command in a container.
type box struct {
	sandbox.Box
	in     *running
	is     sandbox.Container
	covers protect.Covers
	out    *way         // its way out; nil: none
	silent bool         // nobody wants to know what that has to say
	last   func() error // ends the container; nil: it is kept
}

// Container implements sandbox.Contained.
func (b *box) Container() sandbox.Container { return b.is }

// Wait implements sandbox.Box.
func (b *box) Wait(ctx context.Context) (sandbox.Exit, error) {
	exit, err := b.Box.Wait(ctx)
	if errors.Is(err, supervise.ErrSilent) || b.in.unended.Load() {
		exit, err = b.in.lost(exit, cmp.Or(err, supervise.ErrSilent))
	}
	if exit.Met == "pids" {
		b.in.spent.Store(true)
	}
	b.out.close() // nothing is left that it could serve
	exit.Container = &b.is
	undone, failed := b.covers.Done()
	exit.Undone = undone
	if failed != nil && err == nil {
		err = writ.Fail(writ.Internal, "what the command left among protected names could not all be undone; look at the workspace: "+failed.Error(), failed)
	}
	if b.last != nil {
		if failed := b.last(); failed != nil && err == nil {
			err = writ.Fail(writ.Internal, "the container of the command could not be removed", failed)
		}
	}
	if b.out != nil && b.silent {
		b.out.end()
	} else if b.out != nil {
		id, said := b.Sidecar()
		b.is.Sidecar, b.is.Lines, b.is.Said = id, sandbox.Lines{Parsed: said.Lines, Malformed: said.Skipped, Left: said.Dropped}, b.out.last()
	}
	return exit, err
}

// runIn has a supervisor in the container run the command, with protected names kept.
func (p *plan) runIn(ctx context.Context, c *running) (*box, error) {
	covers, err := p.cover(ctx)
	var b sandbox.Box
	if err == nil {
		b, err = p.runBy(ctx, c, covers)
	}
	if err != nil {
		_, failed := covers.Done()
		return nil, errors.Join(err, failed)
	}
	return &box{Box: b, in: c, covers: covers, is: sandbox.Container{ID: c.id, Image: p.driver.opts.Image, ImageID: p.config.Image, ReadOnly: p.readOnly(), Bounds: p.bounds()}}, nil
}

func (p *plan) runBy(ctx context.Context, c *running, covers protect.Covers) (sandbox.Box, error) {
	link, err := c.supervisor(ctx)
	if err != nil {
		return nil, err
	}
	cmd := supervise.Of(p.Plan)
	cmd.Alone = true
	cmd.Limits.Pids = min(cmd.Limits.Pids, uint64(p.driver.opts.Pids))
	own := p.driver.opts.Runtime != runsc // which has neither Landlock nor namespaces of one's own
	cmd.GVisor = !own
	j := job{Command: cmd, Read: p.Read, Write: p.Write, Programs: p.Programs, Landlock: own, Spaces: own, Shown: p.shown, Hidden: p.hidden, Use: p.Limits.Together()}
	if p.readOnly() {
		j.Read, j.Write = slices.Concat(p.Read, p.Write), nil
	}
	for _, c := range covers {
		j.Covers = append(j.Covers, slices.DeleteFunc(slices.Clone(c.Mounts), func(m protect.Mount) bool { return reach.InAny(m.Path, p.Hide) })...)
	}
	terms := supervise.Terms{Holds: true, Wall: p.Wall, Grace: p.Grace, Explain: func(said string) error {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the container does not run this program: "+said, errors.New(said))
	}}
	if !own { // and it numbers files itself: what was shown is looked at from here
		j.As = &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.GID)}
		j.Shown, j.Hidden = nil, nil
		terms.Check = p.unmoved
	}
	b, err := supervise.Over(ctx, link, terms, j, p.spec)
	if err != nil {
		if _, gone := c.asked(); gone != nil && !errdefs.IsNotFound(gone) { // it may have begun all the same
			_, err = c.lost(sandbox.Exit{}, err)
		}
	}
	return b, err
}

// unmoved reports whether everything is still where it was when this was planned.
func (p *plan) unmoved() error {
	for _, was := range slices.Concat(p.shown, p.hidden) {
		if now, err := wrapped.Seen(was.Path); err != nil || now != was {
			return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+was.Path+": something moved it while the box was made; try again", err)
		}
	}
	return nil
}

// cover readies what keeps the protected names of what a run may write. Whatever comes of
// it, Done is called.
func (p *plan) cover(ctx context.Context) (protect.Covers, error) {
	if p.driver.opts.Runtime == runsc && !p.readOnly() && p.writ.Confinement().Limits.Disk > 0 {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: runtime runsc cannot count the bytes that a command writes to the disk; use sandboxing.docker.mount_mode: ro, or runtime: runc", nil)
	}
	if p.driver.finder == nil || p.readOnly() {
		return nil, nil
	}
	if p.driver.opts.Runtime == runsc {
		if p.probes {
			return nil, nil // it writes what the probe made
		}
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: runtime runsc cannot keep protected names in what a container may write; use sandboxing.docker.mount_mode: ro, or runtime: runc", nil)
	}
	all, err := p.driver.finder.CoverAll(ctx, p.Protected(), p.Named)
	saw := true
	if err == nil {
		saw, err = all.Saw(p.table)
	}
	if err == nil && !saw {
		err = errMoved
	}
	if err != nil {
		err = writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
	}
	return all, err
}

// errMoved says that something was mounted or unmounted in what a container shows, while it
// was made.
var errMoved = errors.New("something was mounted or unmounted in what the container shows; try again")
