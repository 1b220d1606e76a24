package native

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/cgroup"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/protect"
	"golang.org/x/sys/unix"
)

// Driver starts boxes with namespaces of their own.
type Driver struct {
	opts   Options
	finder *protect.Finder // nil: nothing is protected

	probing sync.Mutex
	base    sandbox.Features // what a box showed, once one did
	probed  sandbox.Features // with protected names, once those were kept

	mu      sync.Mutex
	groups  *cgroup.Root // nil: there are none
	looked  bool         // whether groups can be had
	factory *factory
	retired []*factory // whose cells may be there still
	ready   pool
	closed  bool
}

// Start implements sandbox.Driver. Stdin is read until it ends or the box does;
// a reader that blocks forever keeps one goroutine. Writers must not block
// forever: a box whose output nobody takes is not waited out.
func (d *Driver) Start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, error) {
	r, err := d.Plan(ctx, w, spec)
	if err != nil {
		return nil, err
	}
	return r.Start(ctx)
}

// Plan implements sandbox.Keeper.
func (d *Driver) Plan(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Plan, error) {
	if err := sandbox.Admit(ctx, d, w); err != nil {
		return nil, err
	}
	return d.plan(w, spec, nil)
}

// cell makes a box with the view of a plan, for one command or for more; by a recipe where
// there is one already, and from a template where others like it follow soon. Where the
// factory is gone, another one is begun.
func (d *Driver) cell(p *plan, again bool, by *recipe, from func(*recipe) (*template, error)) (*cell, error) {
	const tries = 3
	for try := range tries {
		f, err := d.running(p)
		if err != nil {
			return nil, err
		}
		var c *cell
		if by == nil || by.factory != f {
			by, err = f.newRecipe(p.Plan, p.show)
		}
		var in *template
		if err == nil && from != nil {
			in, err = from(by)
		}
		if err == nil {
			c, err = f.newCell(by, again, in)
		}
		f.over()
		if err == nil || try+1 == tries || !errors.Is(err, errFactory) {
			return c, err
		}
		if !errors.Is(err, errRetired) {
			d.gone(f)
		}
	}
	return nil, errors.New("the factory cannot be begun")
}

// running is the factory, begun where there is none with what is mounted now. Whoever asked
// says when it is over.
func (d *Driver) running(p *plan) (*factory, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, errors.New("the driver is closed")
	}
	paths := shownPaths(p.Plan)
	if f := d.factory; f != nil && f.stale(p.mounts, paths) {
		if p.mounts.Before(f.mounts) {
			return nil, errMoved
		}
		d.retired = append(slices.DeleteFunc(d.retired, func(f *factory) bool { return f.life.ended.Load() }), f)
		d.factory = nil
		d.ready.empty()
		f.retire()
	}
	if d.factory == nil {
		f, err := d.begin()
		if err != nil {
			return nil, err
		}
		d.factory = f
		d.openGroups()
		f.groups = d.groups
	}
	if d.factory.stale(p.mounts, paths) {
		return nil, errMoved // between the plan and the factory, or while that was begun
	}
	return d.factory, d.factory.begin() // it does not end while a cell is made
}

// begin is a factory: the one that was begun ahead, the first time.
func (d *Driver) begin() (*factory, error) {
	if a := d.opts.Ahead; a != nil {
		d.opts.Ahead = nil
		return a.take()
	}
	return startFactory()
}

// openGroups makes room for control groups, where that can be had; what a daemon before
// left of its own is removed first.
func (d *Driver) openGroups() {
	if d.looked || d.opts.Deployment == "" {
		return
	}
	d.looked = true
	cgroup.Sweep(d.opts.Deployment) // what cannot be removed bounds nobody
	d.groups, _ = cgroup.Open(d.opts.Deployment)
}

// gone forgets a factory that ended, and its boxes with it.
func (d *Driver) gone(f *factory) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.factory == f {
		d.factory = nil
		d.ready.empty()
		f.end(nil)
	}
}

// refill makes boxes ahead, one after the other, while nobody waits for it, by the recipe
// of the one that was used. Protected names are kept in them as they were for the run that
// wants more. For a factory that is gone there is none: who needs a box begins another.
func (d *Driver) refill(v view, by *recipe, kept covers) {
	if !d.ready.wants(v) {
		return
	}
	go func() {
		for {
			var c *cell
			var r *runner
			in, err := kept.template(by)
			if err == nil {
				c, err = by.factory.newCell(by, false, in)
			}
			if err == nil {
				r, err = c.ready()
			}
			if !d.ready.put(v, r, err) {
				return
			}
		}
	}()
}

// Close ends every box.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.ready.close()
	for _, f := range append(d.retired, d.factory) {
		if f != nil {
			f.end(nil)
		}
	}
	d.factory, d.retired = nil, nil
	if d.groups != nil {
		return d.groups.Close()
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
	if d.base == nil {
		found, err := d.probeBox(ctx)
		if err != nil {
			return nil, err
		}
		d.base = found
	}
	names := sandbox.Finding{Feature: sandbox.ProtectedName, Evidence: "not claimed: this driver was not told to; with a configuration (writ init) it is, and 'writ run' always does"}
	if d.finder != nil {
		names = probe.Names(ctx, d.show)
	}
	found := append(slices.Clip(d.base), names)
	if names.Enforced || d.finder == nil { // else something of the moment may be the cause
		d.probed = found
	}
	return found, nil
}

// probeBox attacks a box.
func (d *Driver) probeBox(ctx context.Context) (sandbox.Features, error) {
	if err := d.possible(); err != nil {
		return nil, err
	}
	program, err := d.opts.Program, error(nil)
	if program == "" {
		program, err = os.Executable()
	}
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: this program's own file cannot be found", err)
	}
	return probe.Run(ctx, program, d.show,
		d.probeNetwork(ctx), d.probeAgent(ctx),
		sandbox.Finding{Feature: sandbox.Containerized, Enforced: true, Evidence: "process table, network, mounts, users, IPC, host name and cgroups are its own"})
}

// possible says what this kernel lacks, without which there is no box.
func (d *Driver) possible() error {
	if landlockABI() < 1 {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver native needs Landlock; use Linux 5.13 or later with landlock in the lsm= list of the kernel", nil)
	}
	return nil
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
	case f.Step == stepSpace, f.Step == stepBegin && f.Errno == unix.ENOSPC,
		f.Step == stepLeave && (f.Errno == unix.EPERM || f.Errno == unix.EACCES): // AppArmor lets one be made, and nothing be done in it
		msg = "sandbox_unavailable: no namespaces can be made; allow unprivileged user namespaces (user.max_*_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), in a container give CAP_SYS_ADMIN"
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
