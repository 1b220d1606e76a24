package engine

import (
	"context"
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// Sandboxes lists the boxes there are: in use, and kept for the next call.
func (e *Engine) Sandboxes() []sandbox.Live { return e.boxes.List() }

// Sandbox is everything that is known of one of them, or of one that ended not long ago;
// else WasSandbox has what is kept.
func (e *Engine) Sandbox(id string) (sandbox.Shown, bool) { return e.boxes.Show(id) }

// WasSandbox is what is kept of one that ended long ago, or with a daemon before.
func (e *Engine) WasSandbox(ctx context.Context, id string) (store.Sandbox, error) {
	s, ok, err := e.store.Sandbox(ctx, id)
	if err == nil && !ok {
		err = noSandbox(id)
	}
	return s, err
}

func noSandbox(id string) error {
	return writ.Fail(writ.NotFound, fmt.Sprintf("there is no sandbox %q; 'writ sandbox list' shows those there are, and with --ended those there were", clip(id)), nil)
}

// KillSandbox ends a box and what runs in it. Like a stop it needs nobody's passphrase.
func (e *Engine) KillSandbox(ctx context.Context, id string) error {
	for _, b := range e.boxes.List() {
		if b.ID == id && e.boxes.Kill(id) {
			return e.ledger.Append(context.WithoutCancel(ctx), ledger.Entry{Kind: "sandbox.killed", Call: b.Call, Agent: b.Agent, Data: []wire.Field{
				wire.Str("box", b.ID), wire.Str("driver", b.Driver), wire.Bool("kept", b.Kept)}})
		}
	}
	_, was := e.boxes.Show(id)
	if !was { // what is written down comes later
		_, kept, err := e.store.Sandbox(ctx, id)
		was = kept && err == nil
	}
	if was {
		return writ.Fail(writ.Conflict, fmt.Sprintf("sandbox %q has ended already; 'writ sandbox show %[1]s' says when", id), nil)
	}
	return noSandbox(id)
}
