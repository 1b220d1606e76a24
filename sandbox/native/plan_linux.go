package native

import (
	"context"
	"errors"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/mounted"
	"github.com/writ-run/writ/sandbox/reach"
)

// A plan is one run that has not begun. It implements sandbox.Plan.
type plan struct {
	*reach.Plan
	driver *Driver
	writ   writ.Writ
	spec   sandbox.Spec
	show   map[string]string
	mounts *mounted.Table // when it was worked out
	view   view
}

// plan works out a run for a writ whose demands have been checked.
func (d *Driver) plan(w writ.Writ, spec sandbox.Spec, show map[string]string) (*plan, error) {
	p, err := reach.Of(w, spec, d.opts.Options, slices.Collect(maps.Keys(show))...)
	if err != nil {
		return nil, err
	}
	out := &plan{Plan: p, driver: d, writ: w, spec: spec, show: show}
	return out, out.look()
}

// look takes note of what is mounted now.
func (p *plan) look() error {
	now, err := mounted.Now()
	if err != nil {
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
	}
	if now != p.mounts {
		p.mounts, p.view = now, viewOf(p.Plan, now)
	}
	return nil
}

// mostMoves is how often a box is made anew because something was mounted meanwhile, after a
// moment that grows: what mounts one thing often mounts some more.
const mostMoves = 8

func pause(try int) { time.Sleep(time.Duration(try) * 5 * time.Millisecond) }

// show starts a box that is for probing only, with files besides those of the writ.
func (d *Driver) show(ctx context.Context, w writ.Writ, spec sandbox.Spec, show map[string]string) (sandbox.Box, error) {
	p, err := d.plan(w, spec, show)
	if err != nil {
		return nil, err
	}
	return p.Start(ctx)
}

// Alike implements sandbox.Plan.
func (p *plan) Alike() string { return p.view.key }

// Start implements sandbox.Plan, in a box that was made ahead where there is one.
func (p *plan) Start(ctx context.Context) (sandbox.Box, error) {
	for try := 0; ; {
		if err := errors.Join(stopped(ctx), p.look()); err != nil {
			return nil, err
		}
		var r *runner
		var by *recipe
		if p.show == nil {
			r, by = p.driver.ready.take(p.view)
		}
		ahead := r != nil
		kept, err := p.cover(ctx)
		if !ahead && err == nil {
			var c *cell
			if c, err = p.driver.cell(p, false, by, kept.template); err == nil {
				r, err = c.ready()
			}
		}
		moved := func(err error) bool {
			if try++; !errors.Is(err, errMoved) || try == mostMoves {
				return false
			}
			pause(try)
			return true
		}
		if r == nil {
			_, undo := kept.done()
			if moved(err) && undo == nil {
				continue
			}
			return nil, errors.Join(explain(err), undo)
		}
		b, err := p.runKept(r, kept, err)
		if err == nil && p.show == nil {
			p.driver.refill(p.view, r.cell.recipe, b.covers) // now that the command is on its way
		}
		if err == nil {
			return b, nil
		}
		r.end()
		var known *writ.Error
		if moved(err) {
			continue
		}
		if !ahead || errors.As(err, &known) { // else it was dead already, and got nothing to run
			return nil, explain(err)
		}
	}
}

// runIn runs it by a runner, with protected names kept.
func (p *plan) runIn(ctx context.Context, r *runner) (*box, error) {
	kept, err := p.cover(ctx)
	return p.runKept(r, kept, err)
}

// runKept is runIn where the protected names have been readied, or that has failed.
func (p *plan) runKept(r *runner, kept covers, err error) (*box, error) {
	var out io.Closer
	if err == nil {
		out, err = p.wayOut(r)
	}
	var b *box
	if err == nil {
		b, err = r.run(p.Plan, p.spec, kept, out)
	}
	if err != nil {
		if out != nil {
			out.Close()
		}
		_, failed := kept.done()
		return nil, errors.Join(err, failed)
	}
	return b, nil
}

func stopped(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return writ.Fail(writ.Stopped, "stopped before the command started", err)
	}
	return nil
}

// A kept is a cell with a runner for the next command. It implements sandbox.Kept, and is
// used by one caller at a time, but for Close.
type kept struct {
	cell *cell
	view view
	next *runner
	last *box
}

// Keep implements sandbox.Plan.
func (p *plan) Keep(ctx context.Context) (sandbox.Kept, error) {
	if err := errors.Join(stopped(ctx), p.look()); err != nil {
		return nil, err
	}
	c, err := p.driver.cell(p, true, p.driver.ready.recipe(p.view), nil)
	if errors.Is(err, errMoved) {
		return nil, sandbox.ErrUnfit
	}
	if err != nil {
		return nil, explain(err)
	}
	r, err := c.ready()
	if err != nil {
		c.end()
		return nil, explain(err)
	}
	return &kept{cell: c, view: p.view, next: r}, nil
}

// StartIn implements sandbox.Plan.
func (p *plan) StartIn(ctx context.Context, in sandbox.Kept) (sandbox.Box, error) {
	if err := errors.Join(stopped(ctx), p.look()); err != nil {
		return nil, err
	}
	k := in.(*kept)
	if k.view != p.view || k.next == nil {
		return nil, sandbox.ErrUnfit
	}
	b, err := p.runIn(ctx, k.next)
	var known *writ.Error
	var failed *failure
	if errors.As(err, &known) || errors.As(err, &failed) {
		return nil, explain(err)
	}
	if err != nil {
		return nil, sandbox.ErrUnfit // it is dead or its view is an old one, and it got nothing to run
	}
	k.next, k.last = nil, b
	return b, nil
}

// Renew implements sandbox.Kept. A box whose command had to be ended is not used again, nor
// one in which it left something for the next.
func (k *kept) Renew(context.Context) error {
	if k.last != nil {
		k.last.mu.Lock()
		told := k.last.told
		k.last.mu.Unlock()
		if told || k.last.endErr != nil || k.last.traces {
			return sandbox.ErrUnfit
		}
	}
	var err error
	if g := k.cell.group; g != nil && !g.Again() {
		err = k.cell.bound()
	}
	if err == nil && k.last != nil {
		err = k.cell.protect(k.last.covers)
	}
	if err == nil {
		k.next, err = k.cell.ready()
	}
	return err
}

// Close implements sandbox.Kept. What runs is ended with it.
func (k *kept) Close() error {
	if k.next != nil {
		k.next.end()
	}
	return k.cell.end()
}
