// Package unasked takes what a program does on its own account through a gate, since a box
// starts under a writ and no other way (I1). The program itself says what is allowed;
// nobody is asked, and nothing is recorded. It is for commands that are built in, or that
// the program's own user wrote, and never for an agent's.
package unasked

import (
	"context"

	"github.com/writ-run/writ"
)

// nobody is the id of calls that no agent made.
const nobody = "unasked"

// Is reports whether a call was taken through the gate here.
func Is(c writ.Call) bool { return c.ID == nobody }

// Do calls run with a writ for c, for a call from dir; empty: from nowhere.
func Do(ctx context.Context, c writ.Confinement, dir string, run func(context.Context, writ.Writ) error) error {
	return As(ctx, "command", c, dir, run)
}

// As is Do for something that has a name where boxes are listed.
func As(ctx context.Context, what string, c writ.Confinement, dir string, run func(context.Context, writ.Writ) error) error {
	g := gate{c, run}
	_, err := writ.NewGate(g, g, g, g).Do(ctx, writ.Call{ID: nobody, Agent: "program", Tool: what, Definition: writ.Digest{1}, Dir: dir, Resolved: true})
	return err
}

type gate struct {
	confine writ.Confinement
	run     func(context.Context, writ.Writ) error
}

func (g gate) Decide(context.Context, writ.Call) (writ.Decision, error) {
	return writ.Decision{Effect: writ.Allow, Confine: g.confine}, nil
}
func (g gate) Approve(context.Context, writ.Call, writ.Decision) (writ.Approval, error) {
	return writ.Approval{}, writ.Fail(writ.Denied, "nobody is asked here", nil)
}
func (g gate) Record(context.Context, writ.Event) error { return nil }
func (g gate) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	return writ.Result{}, g.run(ctx, w)
}
