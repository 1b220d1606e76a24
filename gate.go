package writ

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// Decider decides a call without side effects. An error denies.
type Decider interface {
	Decide(context.Context, Call) (Decision, error)
}

// Approver asks people. Approve returns once the call has been agreed to, or an
// error: rejected, expired, or still pending when ctx ends.
type Approver interface {
	Approve(context.Context, Call, Decision) (Approval, error)
}

// Recorder writes an event down durably before it returns. A started event uses up
// its approval and takes its reservation in the same transaction, or fails: with
// Conflict, Changed or Denied where it lost them, with *Already where somebody else ran the
// same call.
type Recorder interface {
	Record(context.Context, Event) error
}

// Runner runs a tool under its writ.
type Runner interface {
	Run(context.Context, Writ) (Result, error)
}

// An Approval is a person's agreement to one exact call: given to it, or by a grant
// that covers it.
type Approval struct {
	ID      string // of the invocation that was agreed to
	Grant   string // of the grant that covers it; empty: a person saw this very call
	Call    Call   // what was agreed to: the call asked about, or with arguments that a person gave it
	Subject Digest // of that call
	Edited  bool   // the arguments are a person's
	By      string
}

// Already is the answer to a call that was made before and ran then: what came of it.
// An Approver and a Recorder return it as an error, because nothing is to run.
type Already struct {
	Call   string // the id it ran under
	Result Result
	Err    error
	Args   string // of one whose outcome is not known: its arguments, for a person to look
}

func (a *Already) Error() string { return "the call was made before, and has its outcome" }

// EventKind names what an event says of a call.
type EventKind string

const (
	EventStarted  EventKind = "call.started"
	EventFinished EventKind = "call.finished"
	EventRefused  EventKind = "call.refused"
)

// An Event is what the gate has written down.
type Event struct {
	Kind     EventKind
	Call     Call
	Decision Decision
	Approval Approval // what it rests on, where a person had to agree

	Result   Result        // finished
	Err      error         // finished with an error, or refused
	Duration time.Duration // finished
}

// A Gate is the one place where calls run. The zero Gate refuses everything.
type Gate struct {
	decide  Decider
	approve Approver
	record  Recorder
	run     Runner
}

// NewGate joins the four parts. A missing part is a gate that refuses everything.
func NewGate(d Decider, a Approver, rec Recorder, run Runner) *Gate {
	return &Gate{decide: d, approve: a, record: rec, run: run}
}

// Do takes one call down the one path: check, decide, ask where a person must be
// asked and decide again, record, run, record. It returns the tool's result, or
// an *Error; after an error other than Unknown nothing has run, or the tool
// itself failed and says so.
func (g *Gate) Do(ctx context.Context, c Call) (Result, error) {
	_, res, err := g.DoAs(ctx, c)
	return res, err
}

// DoAs is Do, and says as which call it was made: by its own id, or by that of the call
// it turned out to be one with, which is asked about, runs or ran already. That is the id
// under which something is written down.
func (g *Gate) DoAs(ctx context.Context, c Call) (id string, res Result, err error) {
	if err := g.check(c); err != nil {
		return c.ID, Result{}, err
	}
	d, err := g.decide.Decide(ctx, c)
	if err != nil {
		return g.refuse(ctx, c, Decision{}, Approval{}, denyOn(err))
	}
	var agreed Approval
	if d.Effect == Ask {
		if agreed, err = g.approve.Approve(ctx, c, d); err != nil {
			return g.refuse(ctx, c, d, agreed, err)
		}
		c = agreed.Call
		// The world may have moved while a person thought: what runs is decided
		// now, and must be exactly what was agreed to (I4).
		if d, err = g.decide.Decide(ctx, c); err != nil {
			return g.refuse(ctx, c, Decision{}, agreed, denyOn(err))
		}
		if d.Effect == Ask && (d.Subject.IsZero() || d.Subject != agreed.Subject) {
			return g.refuse(ctx, c, d, agreed, Fail(Changed, "what was approved is no longer what would run; ask again", nil))
		}
	}
	if d.Effect == Deny {
		return g.refuse(ctx, c, d, agreed, d.Refusal())
	}
	if err := g.check(c); err != nil { // a person's arguments passed the edge too, or nothing runs
		return g.refuse(ctx, c, d, agreed, err)
	}
	if err := g.record.Record(ctx, Event{Kind: EventStarted, Call: c, Decision: d, Approval: agreed}); err != nil {
		return g.notStarted(ctx, c, d, agreed, err)
	}
	res, err = g.order(ctx, c, d, agreed)
	return cmp.Or(agreed.ID, c.ID), res, err
}

// order runs what was recorded as started, under a writ, and records how it ended.
func (g *Gate) order(ctx context.Context, c Call, d Decision, agreed Approval) (Result, error) {
	w := issue(c, d, agreed)
	began := time.Now()
	res, runErr := g.runRecovered(ctx, w)
	w.spend()
	// The outcome is written down even if the caller has gone.
	err := g.record.Record(context.WithoutCancel(ctx), Event{
		Kind: EventFinished, Call: c, Decision: d, Approval: agreed,
		Result: res, Err: runErr, Duration: time.Since(began),
	})
	if err != nil {
		return Result{}, Fail(Unknown, "the call ran, but its outcome could not be recorded", errors.Join(err, runErr))
	}
	return res, runErr
}

// check refuses what no decision could be made about.
func (g *Gate) check(c Call) error {
	if g == nil || g.decide == nil || g.approve == nil || g.record == nil || g.run == nil {
		return Fail(Internal, "the gate is not assembled; nothing runs", nil)
	}
	if c.ID == "" || c.Agent == "" || c.Tool == "" || c.Definition.IsZero() || !c.Resolved {
		return Fail(Invalid, "the call is incomplete: it has no caller, tool or resolved arguments", nil)
	}
	return nil
}

// refuse records why a call did not run. Waiting is not refusing, nor is having run
// before: both are another call's, and nothing is recorded of this one. A refusal that
// cannot be recorded is still a refusal.
func (g *Gate) refuse(ctx context.Context, c Call, d Decision, approval Approval, why error) (id string, res Result, err error) {
	id = cmp.Or(approval.ID, c.ID)
	var before *Already
	var e *Error
	switch {
	case errors.As(why, &before):
		return cmp.Or(before.Call, id), before.Result, before.Err
	case KindOf(why) == Pending && errors.As(why, &e):
		return cmp.Or(e.Ref, id), Result{}, why
	}
	err = g.record.Record(context.WithoutCancel(ctx), Event{Kind: EventRefused, Call: c, Decision: d, Approval: approval, Err: why})
	if err != nil {
		return id, Result{}, notRecorded(err)
	}
	return id, Result{}, why
}

// notStarted tells a start that somebody else has, and a reservation that was lost,
// which is a refusal like any other, from a record that cannot be written.
func (g *Gate) notStarted(ctx context.Context, c Call, d Decision, approval Approval, why error) (id string, res Result, err error) {
	var before *Already
	if kind := KindOf(why); kind == Denied || kind == Conflict || kind == Changed || kind == Pending || errors.As(why, &before) {
		return g.refuse(ctx, c, d, approval, why)
	}
	return cmp.Or(approval.ID, c.ID), Result{}, notRecorded(why)
}

// runRecovered turns a panic of a tool into an error, so that the outcome is
// recorded and the other calls go on.
func (g *Gate) runRecovered(ctx context.Context, w Writ) (res Result, err error) {
	defer func() {
		if p := recover(); p != nil {
			res, err = Result{}, Fail(Internal, "the tool failed unexpectedly", fmt.Errorf("panic in %s: %v", w.Call().Tool, p))
		}
	}()
	return g.run.Run(ctx, w)
}

func denyOn(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Fail(Denied, "denied: the decision could not be made", err)
}

func notRecorded(err error) error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return Fail(StoreUnavailable, "the ledger cannot be written, so nothing runs", err)
}
