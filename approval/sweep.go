package approval

import (
	"context"
	"encoding/json"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// Sweep ends every request whose time is over, so that what was sealed with it goes.
// A request that finds too many waiting does this first; call it at start and now and
// then, for a desk that nobody asks.
func (d *Desk) Sweep(ctx context.Context) error {
	d.expiring.Lock()
	defer d.expiring.Unlock()
	for {
		over, err := d.store.OverInvocations(ctx, stamp(d.now()))
		if err != nil || len(over) == 0 {
			return err
		}
		for _, i := range over {
			if err := d.expire(ctx, i); err != nil {
				return err
			}
		}
	}
}

// expire ends a request whose time is over. Losing the race to an answer is fine.
func (d *Desk) expire(ctx context.Context, i store.Invocation) error {
	err := d.ledger.Write(context.WithoutCancel(ctx), func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.ExpireInvocation(i.ID, stamp(d.now()))
		if err != nil || !ok {
			return ledger.Entry{}, err
		}
		return ledger.Entry{Kind: "approval.expired", Call: i.ID, Agent: i.Agent, Data: []wire.Field{wire.Str("approval", i.ID), wire.Str("tool", i.Tool)}}, nil
	})
	if err == nil {
		d.Changed()
	}
	return err
}

// Escalate says which requests are put to somebody higher now.
func (d *Desk) Escalate(ctx context.Context) error {
	t, now := d.terms(), d.now()
	if len(t.Escalation) == 0 {
		return nil
	}
	waiting, err := d.store.PendingInvocations(ctx, stamp(now))
	if err != nil {
		return err
	}
	for _, i := range waiting {
		asked, err := time.Parse(time.RFC3339Nano, i.Requested)
		if err != nil {
			return err
		}
		for step := i.Escalations + 1; step <= t.step(i.Risk, asked, now); step++ {
			if err := d.escalate(ctx, i, step, t.Escalation[step-1].Role); err != nil {
				return err
			}
		}
	}
	return nil
}

func (d *Desk) escalate(ctx context.Context, i store.Invocation, step int, to string) error {
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.EscalateInvocation(i.ID, step)
		if err != nil || !ok {
			return ledger.Entry{}, err
		}
		return ledger.Entry{Kind: "approval.escalated", Call: i.ID, Agent: i.Agent, Data: []wire.Field{
			wire.Str("approval", i.ID), wire.Int("step", int64(step)), wire.Str("to", to)}}, nil
	})
}

// Renew keeps this desk's hold on what runs here.
func (d *Desk) Renew(ctx context.Context) error {
	d.mu.Lock()
	none := len(d.fences) == 0
	d.mu.Unlock()
	if none {
		return nil
	}
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		return ledger.Entry{}, tx.RenewInvocations(d.worker, stamp(d.now().Add(lease)))
	})
}

// Forget drops outcomes that nobody came for in a day.
func (d *Desk) Forget(ctx context.Context) error {
	before := stamp(d.now().Add(-keepFor))
	if old, err := d.store.OldResults(ctx, before); err != nil || !old {
		return err
	}
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) { return ledger.Entry{}, tx.DropResults(before) })
}

// Recover settles what a worker that is gone was running. What may have had an effect
// becomes unknown, is never run again by itself, and waits for a person; what changes
// nothing is run again, or may be. Call it once, before anything runs, with nobody
// else on the store.
func (d *Desk) Recover(ctx context.Context) error {
	for {
		held, err := d.store.HeldInvocations(ctx, d.worker)
		if err != nil || len(held) == 0 {
			return err
		}
		for _, i := range held {
			if err := d.settle(ctx, i); err != nil {
				return err
			}
		}
	}
}

func (d *Desk) settle(ctx context.Context, i store.Invocation) error {
	again := i.Reads && i.Class != "write"
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if again && i.Sealed != nil {
			ok, err := tx.ReleaseInvocation(i.ID, i.Worker)
			return say("call.released", i, nil), whole(ok, err)
		}
		end := store.Ended{ID: i.ID, Worker: i.Worker, Fence: i.Fence, Status: "unknown", Outcome: "unknown", At: stamp(d.now())}
		lost := writ.Fail(writ.Unknown, "the daemon was cut off while the call ran, so what came of it is not known; it is not run again by itself. A person looks at what it was to change, then: writ invocation resolve "+i.ID+" --happened yes|no|partly --note TEXT", nil)
		if again {
			end.Status, end.Outcome = "failed", "interrupted" // which frees its key: made again, it runs again
		}
		if ok, err := tx.FinishInvocation(end); err != nil || !ok {
			return ledger.Entry{}, whole(ok, err)
		}
		e := say("call."+map[bool]string{true: "interrupted", false: "unknown"}[again], i, &end)
		if again || i.Asked == "" && i.Key == "" {
			return e, nil
		}
		var args json.RawMessage
		if s, err := d.unsealed(i); i.Sealed != nil && err == nil {
			args = s.Args
		}
		return e, tx.KeepResult(store.Kept{Invocation: i.ID, Asked: i.Asked, At: end.At, Sealed: d.sealedSaid(i.ID, said{Args: args}, lost)})
	})
}

func say(kind string, i store.Invocation, end *store.Ended) ledger.Entry {
	e := ledger.Entry{Kind: kind, Call: i.ID, Agent: i.Agent, Data: []wire.Field{wire.Str("tool", i.Tool), wire.Str("class", i.Class)}}
	if end != nil {
		e.Data = append(e.Data, wire.Str("status", end.Status))
	}
	return e
}
