package native

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// Driver starts boxes with namespaces of their own.
type Driver struct {
	opts Options

	probing sync.Mutex
	probed  sandbox.Features // of the first probe that succeeded

	mu      sync.Mutex
	factory *factory
	ready   map[*skeleton][]*cell // boxes made ahead
	making  bool                  // somebody is refilling
	closed  bool
}

// ahead is how many boxes of a kind are kept ready.
const ahead = 4

// Start implements sandbox.Driver. Stdin is read until it ends or the box does;
// a reader that blocks forever keeps one goroutine. Writers must not block
// forever: a box whose output nobody takes is not waited out.
func (d *Driver) Start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, error) {
	if err := sandbox.Admit(ctx, d, w); err != nil {
		return nil, err
	}
	return d.start(ctx, w, spec, nil)
}

// start starts a box for a writ whose demands have been checked.
func (d *Driver) start(ctx context.Context, w writ.Writ, spec sandbox.Spec, show map[string]string) (sandbox.Box, error) {
	var shown []string
	for at := range show {
		shown = append(shown, at)
	}
	p, err := reach.Of(w, spec, d.opts.Options, shown...)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, writ.Fail(writ.Stopped, "stopped before the command started", err)
	}
	for {
		cell, err := d.take(p.Listed)
		if err != nil {
			return nil, explain(err)
		}
		b, err := cell.run(p, spec, show)
		if err == nil {
			d.refill(cell.kind) // now that the command is on its way
			return b, nil
		}
		cell.conn.close()
		if !cell.ahead || !errors.Is(err, unix.EPIPE) { // else it was dead already, and got nothing to run
			return nil, explain(err)
		}
	}
}

// take takes a box that is ready, or makes one. Where the factory is gone, another one
// is begun.
func (d *Driver) take(listed bool) (*cell, error) {
	for again := range 2 {
		f, err := d.running()
		if err != nil {
			return nil, err
		}
		kind := &f.any
		if listed {
			kind = &f.only
		}
		if cell := d.waiting(kind); cell != nil {
			return cell, nil
		}
		cell, err := f.make(kind)
		var failed *failure
		if err == nil || errors.As(err, &failed) || again > 0 {
			return cell, err
		}
		d.gone(f)
	}
	return nil, errors.New("the factory cannot be begun")
}

// waiting is a box that was made ahead; nil: there is none.
func (d *Driver) waiting(kind *skeleton) *cell {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.ready[kind]
	if len(all) == 0 {
		return nil
	}
	d.ready[kind] = all[:len(all)-1]
	cell := all[len(all)-1]
	cell.ahead = true
	return cell
}

// running is the factory, begun where it was not yet.
func (d *Driver) running() (*factory, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.New("the driver is closed")
	}
	if d.factory == nil {
		f, err := newFactory()
		if err != nil {
			return nil, err
		}
		d.factory, d.ready = f, map[*skeleton][]*cell{}
	}
	return d.factory, nil
}

// gone forgets a factory that ended, and its boxes with it.
func (d *Driver) gone(f *factory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.factory == f {
		d.factory = nil
		d.empty()
		f.end(nil)
	}
}

// empty ends the boxes that were made ahead.
func (d *Driver) empty() {
	for _, cells := range d.ready {
		for _, c := range cells {
			c.conn.close()
		}
	}
	d.ready = nil
}

// refill makes boxes ahead, one after the other, while nobody waits for it.
func (d *Driver) refill(kind *skeleton) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.factory
	if f == nil || d.making || len(d.ready[kind]) >= ahead {
		return
	}
	d.making = true
	go func() {
		for {
			cell, err := f.make(kind)
			if !d.keep(f, kind, cell, err) {
				return
			}
		}
	}()
}

// keep puts a box with those that are ready, and reports whether there is room for more.
func (d *Driver) keep(f *factory, kind *skeleton, cell *cell, err error) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil && d.factory != f { // it was closed meanwhile
		cell.conn.close()
	} else if err == nil {
		d.ready[kind] = append(d.ready[kind], cell)
	}
	more := err == nil && d.factory == f && len(d.ready[kind]) < ahead
	d.making = more
	return more
}

// Close ends every box.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.empty()
	if d.factory != nil {
		d.factory.end(nil)
		d.factory = nil
	}
	return nil
}

// Probe implements sandbox.Driver. The first result is kept; an error is not.
func (d *Driver) Probe(ctx context.Context) (sandbox.Features, error) {
	d.probing.Lock()
	defer d.probing.Unlock()
	if d.probed != nil {
		return d.probed, nil
	}
	if landlockABI() < 1 {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver native needs Landlock; use Linux 5.13 or later with landlock in the lsm= list of the kernel", nil)
	}
	program, err := d.opts.Program, error(nil)
	if program == "" {
		program, err = os.Executable()
	}
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: this program's own file cannot be found", err)
	}
	found, err := probe.Run(ctx, program, d.start,
		sandbox.Finding{Feature: sandbox.HostAllowlist, Evidence: "not claimed: a box has no network but its own; reaching single hosts needs the egress broker, which is not built into this version"},
		sandbox.Finding{Feature: sandbox.Containerized, Enforced: true, Evidence: "process table, network, mounts, users, IPC, host name and cgroups are its own"})
	if err != nil {
		return nil, err
	}
	d.probed = found
	return found, nil
}

// explain turns the failure of a step into an error with something to do.
func explain(err error) error {
	var known *writ.Error
	if errors.As(err, &known) {
		return err
	}
	var f *failure
	if !errors.As(err, &f) {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the box could not be set up: "+err.Error(), err)
	}
	kind, msg := writ.SandboxUnavailable, "sandbox_unavailable: the box could not be set up ("+f.Error()+")"
	switch {
	case f.Step == stepSpace:
		msg = "sandbox_unavailable: no namespaces can be made; allow unprivileged user namespaces (user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), in a container give CAP_SYS_ADMIN"
	case strings.HasPrefix(f.Step, "show "):
		msg = "sandbox_unavailable: " + f.Error() + "; each root must exist and be reached without symlinks"
	case f.Step == stepDir:
		kind, msg = writ.Invalid, "the working directory cannot be entered by the user of the box; check the modes of the directories above it"
	case f.Step == stepExec && f.Errno == unix.ENOEXEC:
		kind, msg = writ.Invalid, "the command cannot be executed: exec format error"
	case f.Step == stepExec:
		kind, msg = writ.Invalid, "the command cannot be executed: "+f.Errno.Error()
	}
	return writ.Fail(kind, msg, err)
}
