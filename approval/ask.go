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
	if c.Detached {
		return d.takeUp(ctx, c)
	}
	grants, changed := d.grants(), d.Watch() // before looking, so that no change is missed
	first, g, err := d.first(ctx, c, dec)
	var before *writ.Already
	switch {
	case errors.As(err, &before):
		return writ.Approval{ID: before.Call}, err
	case err != nil:
		return writ.Approval{}, err
	case g != nil:
		if first.ID == c.ID { // its own request, which ended for the grant
			c.ID = NewID(d.now())
		}
		return writ.Approval{ID: c.ID, Grant: g.ID, Call: c, Subject: dec.Subject, By: g.By}, nil
	}
	// Patience is for people. What runs is waited for like any call, within reason.
	i, id, until, ends := first, "", d.now().Add(c.Patience), d.now().Add(max(c.Patience, runPatience))
	leave, ok := d.mayWait(c)
	defer leave()
	if !ok { // it is asked about all the same, and has to be made again
		until, ends = d.now(), d.now()
	}
	for {
		if id != "" {
			changed = d.Watch()
			if i, err = d.standing(ctx, id); err != nil {
				d.letGo(id) // whoever leaves here holds nothing, or nobody ever runs it
				return writ.Approval{ID: id}, err
			}
		}
		if id != i.ID {
			if id != "" {
				d.letGo(id)
			}
			id = i.ID
			d.hold(id)
			if err := d.sameKey(ctx, c, i); err != nil {
				d.letGo(id)
				return writ.Approval{ID: id}, err
			}
		}
		if i.Outcome == granted || i.Status == "pending" && d.grants() != grants { // it may cover this caller too
			d.letGo(id)
			c.Patience = max(0, until.Sub(d.now()))
			return d.Approve(ctx, c, dec)
		}
		got, done, err := d.answered(ctx, i, c)
		if done && err == nil {
			return got, nil // held until the start or the refusal is written down
		}
		switch {
		case done:
		case i.Status == "running":
			err = d.wait(ctx, changed, i, ends)
		case !until.After(d.now()): // nothing is newer than what was just looked at
			err = pending(id)
		default:
			err = d.wait(ctx, changed, i, until)
		}
		if err != nil {
			d.letGo(id)
			return writ.Approval{ID: id}, err
		}
	}
}

// sameKey lets a caller's own key stand for a request that somebody else made with
// another: the two calls are one, also when they are made again.
func (d *Desk) sameKey(ctx context.Context, c writ.Call, i store.Invocation) error {
	if c.Key == "" || c.Key == i.Key || i.EditOf != "" {
		return nil
	}
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		err := keyFree(tx, c)
		var taken *keyTaken
		if errors.As(err, &taken) && taken.id == i.ID {
			return ledger.Entry{}, nil
		}
		if err != nil {
			return ledger.Entry{}, errOtherKey
		}
		ok, err := tx.AddKey(c.Agent, c.Key, i.ID)
		if err == nil && !ok {
			err = errOtherKey
		}
		return ledger.Entry{}, err
	})
}

// takeUp is the agreement to a call that nobody waits for, by its id. Where somebody
// else has taken it up meanwhile there is nothing left to do: it is not asked about
// again, uses no grant, and takes no outcome away from whoever comes for it.
func (d *Desk) takeUp(ctx context.Context, c writ.Call) (writ.Approval, error) {
	i, ok, err := d.store.Invocation(ctx, c.ID)
	if err != nil {
		return writ.Approval{ID: c.ID}, err
	}
	if !ok || i.Status != "running" || i.Worker != "" {
		return writ.Approval{ID: c.ID}, runs(c.ID)
	}
	d.hold(c.ID)
	got, err := d.agreed(ctx, i, c)
	if errors.Is(err, errTaken) {
		err = runs(c.ID)
	}
	if err != nil {
		d.letGo(c.ID)
		got.ID = c.ID
	}
	return got, err
}

// first finds what there is for a call: this very call asked about, approved or
// running; the outcome of one that nobody came for yet, as the error that says so; a
// grant that covers it, in whose favour a request that only waits ends; else a new
// request. What was approved comes before any grant: it would run twice.
func (d *Desk) first(ctx context.Context, c writ.Call, dec writ.Decision) (store.Invocation, *store.Grant, error) {
	asked := dec.Subject.String()
	for _, look := d.asked.get(asked); ; look = true {
		var i store.Invocation
		var open bool
		var err error
		if look {
			i, open, err = d.store.OpenInvocation(ctx, asked)
		}
		switch {
		case err != nil:
			return i, nil, err
		case open && i.Worker == "" && i.Expires <= stamp(d.now()):
			if err := d.expire(ctx, i); err != nil {
				return i, nil, err
			}
			continue
		case open && i.Status != "pending":
			return i, nil, nil
		case !open: // mostly there is nothing else either, and a person is asked
			made, err := d.request(ctx, c, dec, true)
			if errors.Is(err, errJoin) { // an identical one is there
				continue
			}
			if !errors.Is(err, errElse) {
				return made, nil, err
			}
		}
		there, err := d.store.There(ctx, asked, c.Agent, c.Tool)
		if err == nil && there.Outcome && !open {
			err = d.deliver(ctx, asked)
		}
		g, covered := store.Grant{}, false
		if err == nil && there.Grant {
			g, covered, err = d.covers(ctx, c, dec)
		}
		if err == nil && covered && open {
			err = d.Cancel(ctx, i.ID, granted)
			if writ.KindOf(err) == writ.Conflict { // somebody answered it meanwhile
				continue
			}
		}
		if err != nil || covered {
			return i, &g, err
		}
		if open {
			return i, nil, nil
		}
		i, err = d.request(ctx, c, dec, false)
		if errors.Is(err, errJoin) {
			continue
		}
		return i, nil, err
	}
}

// runPatience is how long a caller waits for the run of an identical call, at least.
const runPatience = time.Minute

// granted is why a request ended that a grant covers.
const granted = "granted"

// answered is what became of a request; done is false while nothing has.
func (d *Desk) answered(ctx context.Context, i store.Invocation, c writ.Call) (got writ.Approval, done bool, err error) {
	switch {
	case i.Status == "pending", i.Status == "running" && i.Worker != "":
		return got, false, nil
	case i.Status == "running":
		if i.Sealed == nil { // it was looked at without what it shows
			if i, _, err = d.store.Invocation(ctx, i.ID); err != nil || i.Status != "running" || i.Worker != "" {
				return got, err != nil, err // somebody took it up just now: look again
			}
		}
		got, err = d.agreed(ctx, i, c)
		if errors.Is(err, errTaken) {
			return got, false, nil
		}
		return got, true, err
	case i.Status == "rejected":
		return got, true, writ.Fail(writ.Rejected, rejection(i), nil)
	case i.Status == "expired", i.Outcome == "expired":
		return got, true, writ.Fail(writ.Expired, "nobody answered in time, so it is denied", nil)
	case i.Fence > 0:
		return got, true, d.before(ctx, i)
	}
	if i.Outcome == string(writ.Cancelled) {
		return got, true, writ.Fail(writ.Cancelled, "the request was cancelled", nil)
	}
	return got, true, writ.Fail(writ.Changed, fmt.Sprintf("the request was ended (%s); make the call again", i.Outcome), nil)
}

// agreed is the agreement to what was shown; it must still be what there is.
func (d *Desk) agreed(ctx context.Context, i store.Invocation, c writ.Call) (writ.Approval, error) {
	b, err := d.boundBy(i) // a row that this desk did not make allows nothing
	if err == nil {
		err = d.agreedBy(ctx, i)
	}
	if err != nil {
		return writ.Approval{}, err
	}
	if i.EditOf != "" {
		if c, _, err = d.edit(ctx, c, string(b.Args)); err != nil {
			return writ.Approval{}, d.drop(ctx, i, "changed", err)
		}
	}
	c.ID, c.Key = i.ID, i.Key // the identical call runs as the one that was asked about
	if err := d.unchanged(b); err != nil {
		return writ.Approval{}, d.drop(ctx, i, "changed", err)
	}
	subject, err := writ.ParseDigest(i.Subject)
	return writ.Approval{ID: i.ID, Call: c, Subject: subject, Edited: i.EditOf != "", By: i.By}, err
}

// errTaken is of an approved call that somebody else has taken up meanwhile: what it was
// about is otherwise now because it runs, or ran.
var errTaken = errors.New("somebody else has taken it up")

// drop ends an approved call that cannot run any more, and says why.
func (d *Desk) drop(ctx context.Context, i store.Invocation, why string, err error) error {
	failed := d.Cancel(ctx, i.ID, why)
	if errors.Is(failed, errNotOpen) {
		return errTaken
	}
	return errors.Join(err, failed)
}

// standing is an invocation as it is now, or the one that a person made of it.
func (d *Desk) standing(ctx context.Context, id string) (store.Invocation, error) {
	for {
		i, ok, err := d.store.Standing(ctx, id)
		if err == nil && !ok {
			err = writ.Fail(writ.Internal, "the request is gone", nil)
		}
		if err != nil || i.Replaced == "" {
			return i, waitingError(ctx, err, id)
		}
		id = i.Replaced
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

// request makes a new one, and writes down that it was made. Where alone is set, there
// must be neither an outcome nor a grant that may do instead: else it is errElse.
func (d *Desk) request(ctx context.Context, c writ.Call, dec writ.Decision, alone bool) (store.Invocation, error) {
	approvers := 0
	if dec.Dangerous { // only then does it matter how many there are
		var err error
		if approvers, err = d.store.Approvers(ctx); err != nil {
			return store.Invocation{}, err
		}
	}
	i, err := d.requested(c, dec, approvers)
	if err != nil {
		return i, err
	}
	add := func() error {
		return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) { return d.added(tx, c, &i, alone) })
	}
	if err = add(); errors.Is(err, errFull) { // some may only wait to be ended
		if err = d.Sweep(ctx); err == nil {
			err = add()
		}
	}
	var key *keyTaken
	if errors.As(err, &key) {
		return i, d.await(ctx, key.id, c.Patience)
	}
	if err == nil {
		d.asked.add(i.Asked, struct{}{})
		d.Changed()
	}
	return i, err
}

func (d *Desk) added(tx *store.Tx, c writ.Call, i *store.Invocation, alone bool) (ledger.Entry, error) {
	there, waiting, err := tx.There(i.Asked, c.Agent, c.Tool)
	switch {
	case err != nil:
		return ledger.Entry{}, err
	case there.Open:
		return ledger.Entry{}, errJoin
	case alone && (there.Outcome || there.Grant):
		return ledger.Entry{}, errElse
	}
	if err := d.roomFor(tx, c.Agent, waiting); err != nil {
		return ledger.Entry{}, err
	}
	if err := keyFree(tx, c); err != nil {
		return ledger.Entry{}, notTaken(tx, i.Asked, err)
	}
	ok, err := tx.AddInvocation(i)
	if err == nil && !ok {
		err = notTaken(tx, i.Asked, unregistered(c))
	}
	return ledger.Entry{Kind: "approval.requested", Call: i.ID, Agent: c.Agent, Data: []wire.Field{
		wire.Str("approval", i.ID), wire.Str("digest", i.Digest), wire.Str("subject", i.Subject), wire.Str("tool", c.Tool),
		wire.Str("args_sha256", i.ArgsDigest), wire.Str("expires", i.Expires), wire.Int("quorum", int64(i.Quorum)),
	}}, err
}

var (
	errJoin = errors.New("somebody else asked")
	errFull = errors.New("too many wait")
	errElse = errors.New("an outcome or a grant may do")
)

// notTaken says why there is no place for a request: an identical one was made
// meanwhile, or else why.
func notTaken(tx *store.Tx, asked string, why error) error {
	if open, err := tx.IsOpen(asked); err != nil || open {
		return errors.Join(err, errJoin)
	}
	return why
}

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

// roomFor refuses a question too many, where some wait already.
func (d *Desk) roomFor(tx *store.Tx, agent string, waiting int) error {
	t, now := d.terms(), d.now()
	if waiting >= t.MaxPending {
		return writ.Fail(writ.Conflict, fmt.Sprintf("agent %s already has %d requests waiting for a person; no more are taken until some are answered", agent, waiting), errFull)
	}
	if t.Rate.Max == 0 {
		return nil
	}
	asked, err := tx.Asked(agent, stamp(now.Add(-t.Rate.Window)))
	if err == nil && asked >= t.Rate.Max {
		err = writ.Fail(writ.Conflict, fmt.Sprintf("agent %s asked a person %d times within %s, and %d is all it may; wait, or ask the operator for a higher approvals.rate", agent, asked, t.Rate.Window, t.Rate.Max), nil)
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
