package engine

import (
	"context"
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/wire"
)

// Sandboxes lists the boxes there are: in use, and kept for the next call.
func (e *Engine) Sandboxes() []sandbox.Live { return e.boxes.List() }

// Sandbox is everything that is known of one of them, or of one that ended not long ago.
func (e *Engine) Sandbox(id string) (sandbox.Shown, error) {
	s, ok := e.boxes.Show(id)
	if !ok {
		return s, noSandbox(id)
	}
	return s, nil
}

func noSandbox(id string) error {
	return writ.Fail(writ.NotFound, fmt.Sprintf("there is no sandbox %q, or it ended long ago; 'writ sandbox list' shows those there are", clip(id)), nil)
}

// KillSandbox ends a box and what runs in it. Like a stop it needs nobody's passphrase.
func (e *Engine) KillSandbox(ctx context.Context, id string) error {
	for _, b := range e.boxes.List() {
		if b.ID == id && e.boxes.Kill(id) {
			return e.ledger.Append(context.WithoutCancel(ctx), ledger.Entry{Kind: "sandbox.killed", Call: b.Call, Agent: b.Agent, Data: []wire.Field{
				wire.Str("box", b.ID), wire.Str("driver", b.Driver), wire.Bool("kept", b.Kept)}})
		}
	}
	return noSandbox(id)
}
