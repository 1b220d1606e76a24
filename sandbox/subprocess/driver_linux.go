package subprocess

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/supervise"
)

// Driver starts boxes as confined processes of this host.
type Driver struct {
	opts Options

	mu     sync.Mutex
	probed sandbox.Features // of the first probe that succeeded
}

// launcherEnv keeps the daemon's environment out of the parts of a box and the
// garbage collector out of processes that live for milliseconds.
var launcherEnv = []string{"GOGC=off", "GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"}

// Start implements sandbox.Driver. Stdin is read until it ends or the box does;
// a reader that blocks forever keeps one goroutine. Writers must not block
// forever: a box whose output nobody takes is not waited out.
func (d *Driver) Start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, error) {
	if err := sandbox.Admit(ctx, d, w); err != nil {
		return nil, err
	}
	return d.start(ctx, w, spec, nil)
}

// start starts a box for a writ whose demands have been checked, with files besides those
// of the writ: at which path, which file.
func (d *Driver) start(ctx context.Context, w writ.Writ, spec sandbox.Spec, show map[string]string) (sandbox.Box, error) {
	p, err := reach.Of(w, spec, d.opts.Options, slices.Collect(maps.Keys(show))...)
	if err != nil {
		return nil, err
	}
	j, err := d.job(p, show)
	if err != nil {
		return nil, err
	}
	return supervise.Start(ctx, supervise.Launch{
		Args: part(d.opts.Launcher, partSupervise), Env: launcherEnv,
		Terms: supervise.Terms{
			Wall: p.Wall, Grace: p.Grace, Use: p.Limits.Together(),
			Explain: func(said string) error {
				return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the box could not be set up", errors.New(said))
			},
		},
	}, j, spec)
}
