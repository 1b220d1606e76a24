package approval

import (
	"context"
	"errors"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// lease is how long a worker holds what it runs without saying so again.
const lease = time.Minute

// RenewEvery is how often Renew has to be called while something runs.
const RenewEvery = lease / 3

// Record implements writ.Recorder. A start that rests on an approval claims it, one
// that rests on a grant uses it, and one that constraints bound takes its place
// within them, in the transaction that writes it down: what is lost there does not
// run (I3, I9).
func (d *Desk) Record(ctx context.Context, ev writ.Event) error {
	switch ev.Kind {
	case writ.EventStarted:
		return d.started(ctx, ev)
	case writ.EventFinished:
		return d.finished(ctx, ev)
	}
	return d.refused(ctx, ev)
}

func (d *Desk) started(ctx context.Context, ev writ.Event) error {
	asked := ev.Approval.ID != "" && ev.Approval.Grant == ""
	if asked {
		defer d.letGo(ev.Approval.ID)
	}
	entry := ledger.EntryOf(ev)
	if err := entry.Encode(); err != nil {
		return err
	}
	var fence int64
	err := d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		now := d.now()
		if ev.Decision.Reserve.Keep {
			if err := ledger.Room(tx, ev.Call, ev.Decision.Reserve, now); err != nil {
				return entry, err
			}
		}
		var err error
		if asked {
			fence, err = d.claim(tx, ev, now)
		} else {
			fence, err = d.begin(tx, ev, now)
		}
		if err == nil && ev.Decision.Reserve.Keep && fence == 1 { // taken up again, it is counted already
			err = tx.AddUse(ledger.UseOf(ev.Call, now))
		}
		return entry, err
	})
	if err == nil {
		d.mu.Lock()
		d.fences[ev.Call.ID] = fence
		d.mu.Unlock()
		return nil
	}
	return d.taken(ctx, ev, err)
}

// claim takes up an approved call, for this desk alone.
func (d *Desk) claim(tx *store.Tx, ev writ.Event, now time.Time) (int64, error) {
	fence, ok, err := tx.ClaimInvocation(ev.Approval.ID, ev.Approval.Subject.String(), d.worker, stamp(now), stamp(now.Add(lease)))
	if err == nil && !ok {
		err = writ.Fail(writ.Conflict, "the approval was used, ended or expired meanwhile", nil)
	}
	return fence, err
}

// begin writes a call that nobody has to be asked about straight down as running.
func (d *Desk) begin(tx *store.Tx, ev writ.Event, now time.Time) (int64, error) {
	if ev.Call.Detached { // only what was approved is taken up, and it asks
		return 0, writ.Fail(writ.Changed, "what was approved is no longer what would run; make the call again", nil)
	}
	if err := keyFree(tx, ev.Call); err != nil {
		return 0, err
	}
	i := invocationOf(ev.Call, ev.Decision)
	at := stamp(now)
	i.Status, i.Approval = "running", "not_required"
	i.Requested, i.Started, i.Claimed, i.Lease, i.Worker, i.Fence = at, at, at, stamp(now.Add(lease)), d.worker, 1
	if ev.Approval.Grant != "" {
		live, err := tx.GrantLive(ev.Approval.Grant, at)
		if err != nil || !live {
			return 0, errors.Join(err, writ.Fail(writ.Conflict, "the grant was used up, revoked or expired meanwhile; make the call again", nil))
		}
		i.Approval, i.Grant, i.By, i.Decided, i.Expires = "approved", ev.Approval.Grant, ev.Approval.By, at, i.Lease
	}
	ok, err := tx.AddInvocation(&i)
	if err == nil && !ok {
		err = unregistered(ev.Call)
	}
	return 1, err
}

// keyFree refuses a second call with one key, before it does anything.
func keyFree(tx *store.Tx, c writ.Call) error {
	if c.Key == "" {
		return nil
	}
	id, definition, args, err := tx.Keyed(c.Agent, c.Key)
	switch {
	case err != nil:
		return err
	case id == "":
		return nil
	case definition != c.Definition.String() || args != c.ArgsDigest.String():
		return errOtherKey
	}
	return &keyTaken{id}
}

var errOtherKey = writ.Fail(writ.Conflict, "the idempotency key was used for another call; use a new one", nil)

// keyTaken says that the same call was made with the same key.
type keyTaken struct{ id string }

func (k *keyTaken) Error() string { return "the key is taken by " + k.id }

// taken turns the loss of a claim, or of a key, into what came of the run that has
// it: the calls are one.
func (d *Desk) taken(ctx context.Context, ev writ.Event, err error) error {
	id := ""
	var key *keyTaken
	switch {
	case errors.As(err, &key):
		id = key.id
	case ev.Approval.ID != "" && ev.Approval.Grant == "" && writ.KindOf(err) == writ.Conflict:
		id = ev.Approval.ID
	default:
		return err
	}
	i, ok, readErr := d.store.Invocation(ctx, id)
	if readErr != nil || !ok || i.Fence == 0 && key == nil {
		return err
	}
	return d.await(ctx, id, ev.Call.Patience)
}

// Unclaimed lists what is approved, not over, and awaited by nobody here.
func (d *Desk) Unclaimed(ctx context.Context) ([]store.Invocation, error) {
	all, err := d.store.UnclaimedInvocations(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	now := stamp(d.now())
	var out []store.Invocation
	for _, i := range all {
		if d.held[i.ID] == 0 && i.Expires > now {
			out = append(out, i)
		}
	}
	return out, nil
}

// refused writes down why a call did not run. An approval that it had is over: what
// could not run now is asked about again.
func (d *Desk) refused(ctx context.Context, ev writ.Event) error {
	entry := ledger.EntryOf(ev)
	id := ev.Approval.ID
	if ev.Call.Detached { // it has the id of the approval that it takes up
		id = ev.Call.ID
	}
	if id != "" && ev.Approval.Grant == "" {
		defer d.letGoOnce(ev)
		return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
			_, err := tx.CancelInvocation(id, string(writ.KindOf(ev.Err)), stamp(d.now()))
			return entry, err
		})
	}
	i := invocationOf(ev.Call, ev.Decision)
	i.Status, i.Approval, i.Outcome = "denied", "not_required", string(writ.KindOf(ev.Err))
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		i.Requested = stamp(d.now())
		i.Completed = i.Requested
		_, err := tx.AddInvocation(&i)
		return entry, err
	})
}

// letGoOnce lets go of an approval that was agreed to. A request that was refused
// before that was let go of already.
func (d *Desk) letGoOnce(ev writ.Event) {
	if !ev.Approval.Subject.IsZero() {
		d.letGo(ev.Approval.ID)
	}
}

// Cancel ends an invocation that nobody has taken up, and says why in a word.
func (d *Desk) Cancel(ctx context.Context, id, why string) error {
	i, ok, err := d.store.Invocation(ctx, id)
	if err != nil || !ok {
		return errors.Join(err, notFound(id))
	}
	err = d.ledger.Write(context.WithoutCancel(ctx), func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.CancelInvocation(id, why, stamp(d.now()))
		if err == nil && !ok {
			err = errNotOpen
		}
		return cancelled(i, why), err
	})
	if err == nil {
		d.Changed()
	}
	return err
}

// EndAsked ends all that an agent ("*": everybody) has asked for and nobody has taken
// up, within a session or a task where one is named, and gives the entries that say so.
func EndAsked(tx *store.Tx, agent, session, task, why, now string) ([]ledger.Entry, error) {
	ended, err := tx.CancelInvocations(agent, session, task, why, now)
	var out []ledger.Entry
	for _, i := range ended {
		out = append(out, cancelled(i, why))
	}
	return out, err
}

func cancelled(i store.Invocation, why string) ledger.Entry {
	return ledger.Entry{Kind: "call.cancelled", Call: i.ID, Agent: i.Agent, Data: []wire.Field{wire.Str("tool", i.Tool), wire.Str("why", why)}}
}

var errNotOpen = writ.Fail(writ.Conflict, "it has ended, or runs", nil)
