package docker

import (
	"context"
	"crypto/rand"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/moby/moby/client"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/protect"
)

// Driver starts boxes as containers.
type Driver struct {
	opts   Options
	finder *protect.Finder // nil: nothing is protected
	key    []byte          // proves that a container is ours

	reconciling sync.Mutex
	reconciled  bool
	begun       bool
	here        sync.Map // names of the containers that somebody here has

	mu       sync.Mutex
	engine   *client.Client
	podman   bool   // it takes a filter of system calls by its file
	root     string // where the engine keeps its files
	apparmor bool   // its own profile of that lets nothing mount, also not over protected names
	files    *files
	probed   sandbox.Features // of the last probe; nil: it failed

	beatEvery time.Duration // how often boxes hear of the daemon
	silence   time.Duration // and after how long without that they end
	answers   time.Duration // how long the engine is waited for
}

// New makes a driver. It does nothing yet. Until it is told a key (Own), what it makes is
// nobody else's, also not another's of the same deployment that only looks (writ doctor).
func New(o Options) *Driver {
	return &Driver{opts: o, key: []byte(rand.Text()), beatEvery: beatEvery, silence: silence, answers: answers}
}

// Protect has the driver keep the protected names of what a box may write. It is said
// before the first box; without it, what may be written can be written whole.
func (d *Driver) Protect(f *protect.Finder) { d.finder = f }

// Start implements sandbox.Driver. Stdin is read until it ends or the box does;
// a reader that blocks forever keeps one goroutine. Writers must not block
// forever: a box whose output nobody takes is not waited out.
func (d *Driver) Start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, error) {
	p, err := d.Plan(ctx, w, spec)
	if err != nil {
		return nil, err
	}
	return p.Start(ctx)
}

// Plan implements sandbox.Keeper.
func (d *Driver) Plan(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Plan, error) {
	if err := sandbox.Admit(ctx, d, w); err != nil {
		return nil, err
	}
	return d.plan(ctx, w, spec, nil, false)
}

// show starts a box that is for probing only, with files besides those of the writ.
func (d *Driver) show(ctx context.Context, w writ.Writ, spec sandbox.Spec, show map[string]string) (sandbox.Box, error) {
	p, err := d.plan(ctx, w, spec, show, true)
	if err != nil {
		return nil, err
	}
	return p.Start(ctx)
}

// Probe implements sandbox.Driver. The last result is kept; an error is not.
func (d *Driver) Probe(ctx context.Context) (sandbox.Features, error) {
	d.mu.Lock()
	found := d.probed
	d.mu.Unlock()
	if found != nil {
		return found, nil
	}
	return d.Examine(ctx)
}

// Examine implements sandbox.Examiner.
func (d *Driver) Examine(ctx context.Context) (sandbox.Features, error) {
	if err := d.Close(); err != nil { // a connection from before says nothing of the engine now
		return nil, err
	}
	found, err := d.examine(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.probed = found
	if err != nil || !found.Has(sandbox.ProtectedName) && d.finder != nil && d.opts.Runtime != runsc { // something of the moment may be the cause
		d.probed = nil
	}
	return found, err
}

func (d *Driver) examine(ctx context.Context) (sandbox.Features, error) {
	program, err := d.program()
	if err != nil {
		return nil, err
	}
	if err := d.reachable(ctx); err != nil {
		return nil, err
	}
	beyond := []sandbox.Finding{d.probeNetwork(ctx, program),
		{Feature: sandbox.SSHAgent, Evidence: sandbox.NoAgent},
		{Feature: sandbox.Containerized, Enforced: true, Evidence: "process table, network, mounts, users, IPC, host name and cgroups are its own"}}
	if d.opts.Runtime == runsc { // a limit can be set there, and is not kept
		beyond = append(beyond, sandbox.Finding{Feature: sandbox.GVisor, Enforced: true, Evidence: "supervisors found its kernel by its log, and start nothing in another"},
			sandbox.Finding{Feature: sandbox.LimitPids, Evidence: "not claimed: the kernel of runsc does not count processes"})
	}
	found, err := probe.Run(ctx, program, d.show, beyond...)
	if err != nil {
		return nil, err
	}
	names := sandbox.Finding{Feature: sandbox.ProtectedName, Evidence: "not claimed: it was not told to"}
	switch {
	case d.opts.Runtime == runsc:
		names.Evidence = "not claimed: with runsc nothing is mounted over them, so that calls which could write some are refused; with mount_mode: ro none can"
	case d.finder != nil:
		names = probe.Names(ctx, d.show)
	}
	return append(slices.Clip(found), names), nil
}

func (d *Driver) program() (string, error) {
	program, err := d.opts.Program, error(nil)
	if program == "" {
		program, err = os.Executable()
	}
	if err != nil {
		return "", writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: this program's own file cannot be found", err)
	}
	return program, nil
}

// Close ends the talk with the engine, which begins again when something is asked of it.
// Boxes are ended by whoever has them.
func (d *Driver) Close() error {
	d.reconciling.Lock()
	begun := d.begun
	d.reconciling.Unlock()
	if begun { // an engine may have been slow to make one for a daemon before
		ctx, cancel := context.WithTimeout(context.Background(), endWithin)
		defer cancel()
		_, _ = d.Reconcile(ctx) // where it is away, the next daemon does it
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.engine == nil {
		return nil
	}
	return d.engine.Close()
}
