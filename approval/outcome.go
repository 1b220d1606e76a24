package approval

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// keepFor is how long an outcome is kept for whoever comes back for it.
const keepFor = 24 * time.Hour

// unsaid is the end of a run that could not be written down.
type unsaid struct {
	entry ledger.Entry
	ended store.Ended
	kept  *store.Kept
	use   bool
}

// finished writes down how a run ended, for the worker that holds it and nobody else.
// Where that fails it is kept in mind and said later: the outcome is known here.
func (d *Desk) finished(ctx context.Context, ev writ.Event) error {
	d.mu.Lock()
	fence := d.fences[ev.Call.ID]
	delete(d.fences, ev.Call.ID)
	d.mu.Unlock()
	status, outcome := statusOf(ev)
	micros, bytes := ev.Duration.Microseconds(), int64(len(ev.Result.Content))
	u := unsaid{entry: ledger.EntryOf(ev), use: ev.Decision.Reserve.Keep && status == "completed", ended: store.Ended{
		ID: ev.Call.ID, Worker: d.worker, Fence: fence, Status: status, Outcome: outcome, Micros: &micros, Bytes: &bytes, CPU: cpu(ev.Result),
	}}
	u.entry.Data = append(u.entry.Data, wire.Str("status", status))
	asked := ev.Approval.ID != "" && ev.Approval.Grant == ""
	if asked || ev.Call.Key != "" || ev.Call.Detached {
		u.kept = d.keep(ctx, ev, asked)
	}
	if err := u.entry.Encode(); err != nil {
		return err
	}
	err := d.say(ctx, &u)
	if err != nil && !errors.Is(err, errLate) {
		d.mu.Lock()
		d.unsaid = append(d.unsaid, u)
		d.mu.Unlock()
	}
	if u.kept != nil || status == "cancelled" { // somebody waits for it, or for its end
		d.Changed()
	}
	return err
}

// keep is the outcome as it is kept. It is handed over already, unless nobody waits.
func (d *Desk) keep(ctx context.Context, ev writ.Event, asked bool) *store.Kept {
	k := &store.Kept{Invocation: ev.Call.ID}
	if asked {
		if i, ok, err := d.store.Invocation(ctx, ev.Call.ID); err == nil && ok {
			k.Asked = i.Asked
		}
	}
	if !ev.Call.Detached {
		k.Delivered = stamp(d.now())
	}
	k.Sealed = d.sealedOutcome(ev.Call.ID, ev.Result, ev.Err)
	return k
}

// said is an outcome as it is kept.
type said struct {
	Content  string         `json:"content"`
	IsError  bool           `json:"is_error"`
	Metadata map[string]any `json:"metadata,omitempty"`
	Kind     writ.Kind      `json:"kind,omitempty"`
	Msg      string         `json:"msg,omitempty"`

	Args json.RawMessage `json:"args,omitempty"` // of an unknown outcome: what it was about, for whoever finds out
}

func (d *Desk) sealedOutcome(id string, res writ.Result, failed error) []byte {
	return d.sealedSaid(id, said{Content: res.Content, IsError: res.IsError, Metadata: res.Metadata}, failed)
}

func (d *Desk) sealedSaid(id string, s said, failed error) []byte {
	if failed != nil {
		s.Kind, s.Msg = writ.Public(failed)
	}
	plain, err := wire.Plain(s)
	if err != nil { // metadata that is no JSON is not worth the outcome
		s.Metadata = nil
		plain, _ = wire.Plain(s)
	}
	return d.sealed(plain, "outcome of "+id)
}

// errLate says that a run's end came after somebody else had ended it.
var errLate = writ.Fail(writ.Conflict, "the run was ended by somebody else, and this end does not count", nil)

func (d *Desk) say(ctx context.Context, u *unsaid) error {
	late := false
	err := d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		u.ended.At = stamp(d.now())
		ok, err := tx.FinishInvocation(u.ended)
		if err != nil {
			return u.entry, err
		}
		if late = !ok; late {
			return ledger.Entry{Kind: "call.late", Call: u.ended.ID, Agent: u.entry.Agent, Data: []wire.Field{wire.Int("fence", u.ended.Fence)}}, nil
		}
		if u.use {
			if err := tx.SucceedUse(u.ended.ID); err != nil {
				return u.entry, err
			}
		}
		if u.kept != nil {
			u.kept.At = u.ended.At
			return u.entry, tx.KeepResult(*u.kept)
		}
		return u.entry, nil
	})
	if err == nil && late {
		return errLate
	}
	return err
}

// SayUnsaid writes down what could not be written down before, in order. What fails
// is tried again next time.
func (d *Desk) SayUnsaid(ctx context.Context) error {
	d.saying.Lock()
	defer d.saying.Unlock()
	for {
		d.mu.Lock()
		if len(d.unsaid) == 0 {
			d.mu.Unlock()
			return nil
		}
		u := d.unsaid[0]
		d.mu.Unlock()
		if err := d.say(ctx, &u); err != nil && !errors.Is(err, errLate) {
			return err
		}
		d.mu.Lock()
		d.unsaid = d.unsaid[1:]
		d.mu.Unlock()
		d.Changed()
	}
}

func statusOf(ev writ.Event) (status, outcome string) {
	switch kind := writ.KindOf(ev.Err); {
	case ev.Err == nil && !ev.Result.IsError:
		return "completed", "ok"
	case ev.Err == nil:
		return "failed", "tool_error"
	case kind == writ.Unknown:
		return "unknown", string(kind)
	case kind == writ.Cancelled || kind == writ.Stopped:
		return "cancelled", string(kind)
	default:
		return "failed", string(kind)
	}
}

// cpu is the processor time that a sandbox measured, where one ran.
func cpu(res writ.Result) *int64 {
	if v, ok := res.Metadata["cpu_micros"].(int64); ok && v >= 0 {
		return &v
	}
	return nil
}

// before is what came of a call that ran already, as the error that says so.
func (d *Desk) before(ctx context.Context, i store.Invocation) error {
	k, ok, err := d.store.Result(ctx, i.ID)
	if err != nil {
		return err
	}
	if !ok {
		return writ.Fail(writ.Conflict, "an identical call ran, and its outcome is not kept any more; make the call again", nil)
	}
	if err := d.handOver(ctx, k); err != nil {
		return err
	}
	return d.already(k)
}

// handOver says that somebody has got an outcome, so that the same call made again is
// a new one.
func (d *Desk) handOver(ctx context.Context, k store.Kept) error {
	if k.Delivered != "" {
		return nil
	}
	return d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		_, err := tx.DeliverResult(k.Invocation, stamp(d.now()))
		return ledger.Entry{}, err
	})
}

func (d *Desk) already(k store.Kept) error {
	plain, err := d.open(k.Sealed, "outcome of "+k.Invocation)
	if err != nil {
		return writ.Fail(writ.Internal, "the kept outcome is not as it was kept; check the store", err)
	}
	var s said
	if err := json.Unmarshal(plain, &s); err != nil {
		return err
	}
	out := &writ.Already{Call: k.Invocation, Result: writ.Result{Content: s.Content, IsError: s.IsError, Metadata: s.Metadata}, Args: string(s.Args)}
	if s.Kind != "" {
		out.Err = &writ.Error{Kind: s.Kind, Msg: s.Msg, Ref: k.Invocation}
	}
	return out
}

// deliver is the outcome that waited for this call to be made again, handed over
// once, as the error that says so; nil: there is none.
func (d *Desk) deliver(ctx context.Context, asked string) error {
	k, ok, err := d.store.Undelivered(ctx, asked)
	if err != nil || !ok {
		return err
	}
	out := d.already(k)
	err = d.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		got, err := tx.DeliverResult(k.Invocation, stamp(d.now()))
		ok = got
		return ledger.Entry{}, err
	})
	if err != nil || !ok {
		return err // somebody else got it, and this call is a new one
	}
	return out
}

// await waits for a run that somebody else has begun, and returns what came of it as
// the error that says so.
func (d *Desk) await(ctx context.Context, id string, patience time.Duration) error {
	until := d.now().Add(max(patience, runPatience))
	for {
		changed := d.Watch()
		i, ok, err := d.store.Standing(ctx, id)
		if err != nil || !ok {
			return errors.Join(err, notFound(id))
		}
		if i.Replaced != "" {
			id = i.Replaced
			continue
		}
		switch i.Status {
		case "pending":
			return pending(id)
		case "running":
		case "rejected":
			return writ.Fail(writ.Rejected, rejection(i), nil)
		case "expired":
			return writ.Fail(writ.Expired, "nobody answered in time, so it is denied", nil)
		default:
			if i.Fence == 0 {
				return writ.Fail(writ.Changed, "the request was ended ("+i.Outcome+"); make the call again, with a new key", nil)
			}
			return d.before(ctx, i)
		}
		timer := time.NewTimer(max(0, until.Sub(d.now())))
		select {
		case <-changed:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return runs(id)
		case <-timer.C:
			return runs(id)
		}
	}
}

func runs(id string) error {
	return &writ.Error{Kind: writ.Pending, Ref: id, Msg: "the call runs (" + id + "); make the same call again to wait for its outcome"}
}

// Recall is what came of the call that an agent made with this key before, as the
// error that says so; nil: it is a new one, or still asked about.
func (d *Desk) Recall(ctx context.Context, c writ.Call) (id string, err error) {
	i, ok, err := d.store.KeyedInvocation(ctx, c.Agent, c.Key)
	switch {
	case err != nil || !ok:
		return "", err
	case i.Definition != c.Definition.String() || i.ArgsDigest != c.ArgsDigest.String():
		return "", errOtherKey
	case i.Status == "pending", i.Status == "running" && i.Worker == "" && i.Approval == "approved":
		return "", nil
	}
	return i.ID, d.await(ctx, i.ID, c.Patience)
}

// Outcome is what came of a call, where it is kept; nil otherwise. Taken by its own
// agent it is handed over: the same call made again is a new one.
func (d *Desk) Outcome(ctx context.Context, id string, take bool) (*writ.Already, error) {
	k, ok, err := d.store.Result(ctx, id)
	if err != nil || !ok {
		return nil, err
	}
	if take {
		if err := d.handOver(ctx, k); err != nil {
			return nil, err
		}
	}
	var out *writ.Already
	if err := d.already(k); !errors.As(err, &out) {
		return nil, err
	}
	if out.Args != "" { // they are there for whoever has to find out, and somebody has
		_, resolved, err := d.store.Resolution(ctx, id)
		if err != nil {
			return nil, err
		}
		if resolved {
			out.Args = ""
		}
	}
	return out, nil
}

// Call is what an approved invocation shows, with the arguments that its agent asked
// for, to make it again.
func (d *Desk) Call(i store.Invocation) (*Shown, error) {
	s, err := d.unsealed(i)
	if err == nil && s.Original != nil {
		s.Args = s.Original
	}
	return s, err
}
