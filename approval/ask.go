package approval

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// Approve implements writ.Approver: the request for this exact call, where there is
// one; else a grant that covers it; else a new request; and its answer. Identical calls are one
// request, and one run: whoever comes second gets what came of it.
func (d *Desk) Approve(ctx context.Context, c writ.Call, dec writ.Decision) (writ.Approval, error) {
	if dec.Subject.IsZero() {
		return writ.Approval{}, writ.Fail(writ.Internal, "the call has no digest to approve", nil)
	}
	known, err := d.known(ctx, dec.Subject.String())
	if err != nil {
		return writ.Approval{}, err
	}
	if !known && !c.Detached {
		if g, ok, err := d.covers(ctx, c, dec); err != nil || ok {
			return writ.Approval{ID: c.ID, Grant: g.ID, Call: c, Subject: dec.Subject, By: g.By}, err
		}
	}
	id, until := "", d.now().Add(c.Patience)
	for {
		changed := d.Watch()
		i, err := d.find(ctx, id, c, dec)
		if err != nil {
			if id != "" { // whoever leaves here holds nothing, or nobody ever runs it
				d.letGo(id)
			}
			var before *writ.Already
			if errors.As(err, &before) {
				id = before.Call
			}
			return writ.Approval{ID: id}, err
		}
		if id != i.ID {
			if id != "" {
				d.letGo(id)
			}
			id = i.ID
			d.hold(id)
		}
		got, done, err := d.answered(ctx, i, c)
		if done && err == nil {
			return got, nil // held until the start or the refusal is written down
		}
		if !done {
			err = d.wait(ctx, changed, i, until)
		}
		if err != nil {
			d.letGo(id)
			return writ.Approval{ID: id}, err
		}
	}
}

// known reports whether this very call is asked about, runs, or has an outcome that
// waits for it. That comes before any grant: made again it would run twice, under the
// grant and by its own approval.
func (d *Desk) known(ctx context.Context, asked string) (bool, error) {
	i, open, err := d.store.OpenInvocation(ctx, asked)
	if err != nil || open && (i.Worker != "" || i.Expires > stamp(d.now())) {
		return err == nil, err
	}
	_, waits, err := d.store.Undelivered(ctx, asked)
	return waits, err
}

// answered is what became of a request; done is false while nothing has.
func (d *Desk) answered(ctx context.Context, i store.Invocation, c writ.Call) (got writ.Approval, done bool, err error) {
	switch {
	case i.Status == "pending", i.Status == "running" && i.Worker != "":
		return got, false, nil
	case i.Status == "running":
		got, err = d.agreed(ctx, i, c)
		return got, true, err
	case i.Status == "rejected":
		return got, true, writ.Fail(writ.Rejected, rejection(i), nil)
	case i.Status == "expired", i.Outcome == "expired":
		return got, true, writ.Fail(writ.Expired, "nobody answered in time, so it is denied", nil)
	case i.Fence > 0:
		return got, true, d.before(ctx, i)
	}
	return got, true, writ.Fail(writ.Changed, fmt.Sprintf("the request was ended (%s); make the call again", i.Outcome), nil)
}

// agreed is the agreement to what was shown; it must still be what there is.
func (d *Desk) agreed(ctx context.Context, i store.Invocation, c writ.Call) (writ.Approval, error) {
	s, err := d.unsealed(i) // a row that this desk did not make allows nothing
	if err != nil {
		return writ.Approval{}, err
	}
	if i.EditOf != "" {
		if c, _, err = d.edit(ctx, c, string(s.Args)); err != nil {
			return writ.Approval{}, d.drop(ctx, i, "changed", err)
		}
	}
	c.ID, c.Key = i.ID, i.Key // the identical call runs as the one that was asked about
	if now := d.inputs(c); !sameInputs(s.Inputs, now) {
		return writ.Approval{}, d.drop(ctx, i, "changed", writ.Fail(writ.Changed, "a file that the call names changed since it was asked about; make the call again", nil))
	}
	subject, err := writ.ParseDigest(i.Subject)
	return writ.Approval{ID: i.ID, Call: c, Subject: subject, Edited: i.EditOf != "", By: i.By}, err
}

// drop ends an approved call that cannot run any more, and says why.
func (d *Desk) drop(ctx context.Context, i store.Invocation, why string, err error) error {
	return errors.Join(err, d.Cancel(ctx, i.ID, why))
}

// find is the invocation by id, once known; else the open one of this call; else
// the outcome of one that nobody came for yet; else a new request.
func (d *Desk) find(ctx context.Context, id string, c writ.Call, dec writ.Decision) (store.Invocation, error) {
	for {
		if id != "" {
			i, ok, err := d.store.Invocation(ctx, id)
			if err == nil && !ok {
				err = writ.Fail(writ.Internal, "the request is gone", nil)
			}
			if err == nil && i.Replaced != "" {
				id = i.Replaced
				continue
			}
			return i, waitingError(ctx, err, id)
		}
		asked := dec.Subject.String()
		i, ok, err := d.store.OpenInvocation(ctx, asked)
		if err != nil {
			return i, err
		}
		if ok && i.Worker == "" && i.Expires <= stamp(d.now()) {
			if err := d.expire(ctx, i); err != nil {
				return i, err
			}
			continue
		}
		if ok {
			return i, nil
		}
		if err := d.deliver(ctx, asked); err != nil {
			return i, err
		}
		return d.request(ctx, c, dec)
	}
}

func waitingError(ctx context.Context, err error, id string) error {
	if err != nil && ctx.Err() != nil {
		return pending(id)
	}
	return err
}

func pending(id string) error {
	return &writ.Error{Kind: writ.Pending, Ref: id, Msg: "a person has to approve this call (request " + id + "); make the same call again to wait for the answer"}
}

// wait returns nil when something changed, or when the request's time is over and it
// has been ended; and that it is pending when the caller's patience is over.
func (d *Desk) wait(ctx context.Context, changed <-chan struct{}, i store.Invocation, until time.Time) error {
	ends := until
	expires, err := time.Parse(time.RFC3339Nano, i.Expires)
	if err != nil {
		return err
	}
	over := i.Status == "pending" && expires.Before(until)
	if over {
		ends = expires
	}
	timer := time.NewTimer(max(0, ends.Sub(d.now())))
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return pending(i.ID)
	case <-timer.C:
	}
	if !over {
		return pending(i.ID)
	}
	return d.expire(ctx, i)
}

func rejection(i store.Invocation) string {
	if i.Reason == "" {
		return "a person rejected this call"
	}
	return fmt.Sprintf("a person rejected this call and said: %q", i.Reason)
}

// request makes a new one, and writes down that it was made.
func (d *Desk) request(ctx context.Context, c writ.Call, dec writ.Decision) (store.Invocation, error) {
	if err := d.Sweep(ctx); err != nil {
		return store.Invocation{}, err
	}
	approvers, err := d.store.Approvers(ctx)
	if err != nil {
		return store.Invocation{}, err
	}
	i, err := d.requested(c, dec, approvers)
	if err != nil {
		return i, err
	}
	t := d.terms()
	err = d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := d.roomFor(tx, c.Agent, t); err != nil {
			return ledger.Entry{}, err
		}
		if open, err := tx.IsOpen(i.Asked); err != nil || open {
			return ledger.Entry{}, errors.Join(err, errJoin)
		}
		if err := keyFree(tx, c); err != nil {
			return ledger.Entry{}, err
		}
		ok, err := tx.AddInvocation(&i)
		if err == nil && !ok {
			err = unregistered(c)
		}
		return ledger.Entry{Kind: "approval.requested", Call: i.ID, Agent: c.Agent, Data: []wire.Field{
			wire.Str("approval", i.ID), wire.Str("digest", i.Digest), wire.Str("subject", i.Subject), wire.Str("tool", c.Tool),
			wire.Str("args_sha256", i.ArgsDigest), wire.Str("expires", i.Expires), wire.Int("quorum", int64(i.Quorum)),
		}}, err
	})
	if errors.Is(err, errJoin) { // an identical request was made meanwhile
		return d.find(ctx, "", c, dec)
	}
	if err == nil {
		d.Changed()
	}
	return i, err
}

var errJoin = errors.New("somebody else asked")

func unregistered(c writ.Call) error {
	return writ.Fail(writ.Denied, fmt.Sprintf("denied: tool %s is not registered as it was decided about; make the call again", c.Tool), nil)
}

// requested is a new request for a call.
func (d *Desk) requested(c writ.Call, dec writ.Decision, approvers int) (store.Invocation, error) {
	t, now := d.terms(), d.now()
	i := invocationOf(c, dec)
	i.Asked, i.Subject = dec.Subject.String(), dec.Subject.String()
	i.Requested, i.Expires = stamp(now), stamp(t.expires(dec.Risk, now))
	i.Status, i.Approval = "pending", "pending"
	i.Quorum, i.NotBy = max(1, t.Quorum, dec.Quorum), t.notBy(c, dec, approvers)
	return i, d.show(&i, c, dec, nil)
}

// roomFor refuses a question too many.
func (d *Desk) roomFor(tx *store.Tx, agent string, t Terms) error {
	now := d.now()
	waiting, err := tx.Waiting(agent, stamp(now))
	if err != nil {
		return err
	}
	if waiting >= t.MaxPending {
		return writ.Fail(writ.Conflict, fmt.Sprintf("agent %s already has %d requests waiting for a person; no more are taken until some are answered", agent, waiting), nil)
	}
	if t.Rate.Max == 0 {
		return nil
	}
	asked, err := tx.Asked(agent, stamp(now.Add(-t.Rate.Window)))
	if err == nil && asked >= t.Rate.Max {
		err = writ.Fail(writ.Conflict, fmt.Sprintf("agent %s asked a person %d times within %s, which is all it may; wait, or ask the operator for a higher approvals.rate", agent, asked, t.Rate.Window), nil)
	}
	return err
}

// invocationOf is a call as it is kept, before anything became of it.
func invocationOf(c writ.Call, dec writ.Decision) store.Invocation {
	return store.Invocation{
		ID: c.ID, Tool: c.Tool, Definition: c.Definition.String(), Agent: c.Agent, Person: c.Person, Token: c.Token, Session: c.Session, Task: c.Task,
		Door: c.Door, Action: dec.Action, Risk: dec.Risk, Class: dec.Class.String(), Dangerous: dec.Dangerous, Reads: dec.Reads,
		ArgsDigest: c.ArgsDigest.String(), ArgsBytes: int64(len(c.Args)), Key: c.Key, Cost: c.Cost,
	}
}
