package prove

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// features are all that a driver could claim.
var features = []sandbox.Feature{
	sandbox.FileRead, sandbox.FileWrite, sandbox.StateHidden, sandbox.ExecListed, sandbox.NoNetwork, sandbox.HostAllowlist, sandbox.SSHAgent, sandbox.OwnProcesses,
	sandbox.ProcessTable, sandbox.WholeTreeDies, sandbox.Unprivileged, sandbox.Containerized, sandbox.LimitWall, sandbox.LimitMemory, sandbox.LimitPids, sandbox.LimitOutput,
}

// refuseProbes: what cannot be held is not started, and the refusal names it (I5).
func refuseProbes() []Probe {
	all := []Probe{
		{Name: "the zero writ", try: func(ctx context.Context, w *world) error { return w.refuses(ctx, writ.Writ{}) }},
		{Name: "a spent writ", try: trySpent},
		{Name: "another driver", try: func(ctx context.Context, w *world) error {
			c := w.confinement()
			c.Backend = "another"
			return w.unavailable(ctx, c, "another")
		}},
	}
	for _, f := range features {
		all = append(all, Probe{Name: string(f), try: func(ctx context.Context, w *world) error { return w.demand(ctx, f) }})
	}
	return group("refuse", "", all)
}

// demand asks for a feature that the driver does not have.
func (w *world) demand(ctx context.Context, f sandbox.Feature) error {
	if w.have.Has(f) {
		return skipped("the driver enforces it; the other probes show that it does")
	}
	c := w.confinement()
	switch f {
	case sandbox.HostAllowlist:
		c.Network = writ.Network{Mode: writ.NetworkHosts, Hosts: []string{"example.com:443"}}
	case sandbox.SSHAgent:
		c.SSH = []writ.SignIn{{Host: "example.com:22", User: "nobody"}}
	case sandbox.Containerized:
		c.Isolation = writ.Containerized
	case sandbox.ExecListed:
		c.Exec = writ.Exec{}
	}
	if !slices.Contains(sandbox.Demands(c), f) {
		return skipped("the driver does not enforce it, and no confinement demands it")
	}
	return w.unavailable(ctx, c, string(f))
}

// ran is a command that leaves a mark.
func (w *world) ran() (sandbox.Spec, string) {
	mark := filepath.Join(w.ws, "ran")
	return sandbox.Spec{Argv: []string{"touch", mark}, Dir: w.ws}, mark
}

// unavailable says whether a confinement was refused by name, with nothing run.
func (w *world) unavailable(ctx context.Context, c writ.Confinement, named string) error {
	spec, mark := w.ran()
	o := w.run(ctx, c, spec)
	if _, err := os.Stat(mark); err == nil {
		return broken("it ran")
	}
	kind, msg := writ.Kind(""), ""
	if o.Error != nil {
		kind, msg = writ.Public(o.Error)
	}
	if kind != writ.SandboxUnavailable || !strings.Contains(msg, named) {
		return broken("it was not refused as sandbox_unavailable with %q in it: %s", named, o.String()) // a box that was not started is what was asked for
	}
	return w.works(ctx)
}

// refuses says whether a writ that orders nothing starts nothing.
func (w *world) refuses(ctx context.Context, order writ.Writ) error {
	spec, mark := w.ran()
	b, err := w.driver.Start(ctx, order, spec)
	if err == nil {
		b.Wait(ctx)
		return broken("it started")
	}
	if _, err := os.Stat(mark); err == nil {
		return broken("it ran")
	}
	if kind := writ.KindOf(err); kind != writ.Denied {
		return broken("refused as %s, not as denied: %v", kind, err)
	}
	return w.works(ctx)
}

// works is the control: the same command runs where it may. A driver that lacks what
// every confinement demands has none.
func (w *world) works(ctx context.Context) error {
	if sandbox.Unmet(w.driver.Name(), w.have, w.confinement()) != nil {
		return nil
	}
	spec, mark := w.ran()
	o := w.run(ctx, w.confinement(), spec)
	if _, err := os.Stat(mark); err != nil || o.Error != nil || o.Exit.Code != 0 {
		return inconclusive("the command does not run where it may: %s", o)
	}
	return nil
}

func trySpent(ctx context.Context, w *world) error {
	var kept writ.Writ
	if err := With(ctx, w.confinement(), "", func(_ context.Context, order writ.Writ) { kept = order }); err != nil {
		return err
	}
	return w.refuses(ctx, kept)
}
