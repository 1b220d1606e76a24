package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/store"
)

// terms are how the configuration in force wants people to be asked.
func (e *Engine) terms() approval.Terms {
	a := e.Config().File.Approvals
	t := approval.Terms{
		Expiry: time.Duration(a.Expiry), Timeout: approval.Timeout(a.Timeout), Tiers: map[string]approval.Tier{},
		FourEyes: approval.FourEyes(a.FourEyes), Quorum: a.Quorum, MaxPending: a.MaxPending, Rate: a.Rate.Quota,
	}
	for risk, tier := range a.Tiers {
		t.Tiers[risk.String()] = approval.Tier{After: time.Duration(tier.After), Escalate: tier.Then == "escalate"}
	}
	for _, s := range a.Escalation {
		t.Escalation = append(t.Escalation, approval.Step{Role: string(s.Role), For: time.Duration(s.After)})
	}
	return t
}

// edit takes a call with other arguments through the edge, the interceptors and the
// decision, as if its agent had made it so.
func (e *Engine) edit(ctx context.Context, c writ.Call, args string) (writ.Call, writ.Decision, error) {
	r := e.at()
	if _, ok := r.agents[c.Agent]; !ok {
		return c, writ.Decision{}, e.noAgent(c.Agent)
	}
	as := Call{Agent: c.Agent, Tool: c.Tool, Args: []byte(args), Code: c.Code, Door: c.Door, Token: c.Token}
	if err := r.resolve(&c, as); err != nil {
		return c, writ.Decision{}, err
	}
	c, _, err := e.intercept(ctx, as, c)
	if err != nil {
		return c, writ.Decision{}, err
	}
	d, err := decider{e}.Decide(ctx, c)
	if err == nil && d.Effect == writ.Allow { // a person agrees to it all the same, and to exactly this
		d.Subject, err = decide.Subject(c, d)
	}
	return c, d, err
}

// resume runs, in the background, what people approved and nobody waits for any more.
func (e *Engine) resume() {
	e.upstreams.settle(context.Background()) // what was approved may be a tool of theirs
	running := make(chan struct{}, 8)        // so many at once
	begun := map[string]bool{}
	done := make(chan string)
	for {
		changed := e.desk.Watch()
		left, err := e.desk.Unclaimed(context.Background())
		if err != nil {
			e.log.Error("what was approved could not be looked for", "err", err)
		}
		for _, i := range left {
			if begun[i.ID] {
				continue
			}
			begun[i.ID] = true
			e.resumed.Go(func() {
				defer func() { done <- i.ID }()
				select {
				case running <- struct{}{}:
				case <-e.closing:
					return
				}
				e.runDetached(i)
				<-running
				select { // whatever went wrong, it is not tried again at once
				case <-time.After(time.Second):
				case <-e.closing:
				}
			})
		}
		select {
		case <-changed:
		case id := <-done:
			delete(begun, id)
		case <-time.After(resumeEvery):
		case <-e.closing:
			go func() {
				for range done { // nobody is left behind with an end to tell
				}
			}()
			e.resumed.Wait()
			close(done)
			return
		}
	}
}

// resumeEvery is how often approved calls are looked for without a sign of one.
const resumeEvery = 5 * time.Second

// runDetached makes a call again as its agent did; its outcome is kept for whoever
// comes back for it.
func (e *Engine) runDetached(i store.Invocation) {
	ctx := context.Background()
	shown, err := e.desk.Call(i)
	if err != nil {
		e.log.Error("an approved call cannot be run", "call", i.ID, "err", err)
		return
	}
	task := shown.Task
	if task == shown.Session {
		task = ""
	}
	_, err = e.do(ctx, Call{
		Agent: i.Agent, Token: i.Token, Tool: i.Tool, Args: []byte(shown.Args), Session: shown.Session, Task: task, Door: i.Door,
		Code: shown.Code, Cost: i.Cost, resumes: i.ID,
	}, i.ID)
	if err != nil && writ.KindOf(err) != writ.Pending {
		e.log.Info("an approved call that nobody waited for did not succeed", "call", i.ID, "err", err)
	}
}

// Invocation is one call with all that is known of it.
type Invocation struct {
	store.Invocation
	Resolution *store.Resolution
	Outcome    *writ.Already // kept for a day, where somebody may come back for it
}

// Invocation finds a call by its id, for its own agent, or for the operator (who).
func (e *Engine) Invocation(ctx context.Context, who, id string) (Invocation, error) {
	i, ok, err := e.store.Standing(ctx, id)
	if err != nil {
		return Invocation{}, err
	}
	if !ok || who != "" && !e.Below(i.Agent, who) {
		return Invocation{}, writ.Fail(writ.NotFound, fmt.Sprintf("there is no invocation %q; 'writ invocation list' shows them", clip(id)), nil)
	}
	out := Invocation{Invocation: approval.AsOf(i, e.ledger.Now())}
	r, ok, err := e.store.Resolution(ctx, id)
	if err != nil {
		return out, err
	}
	if ok {
		out.Resolution = &r
	}
	if who != "" && e.stops.is(e.at().chain(who)) != "" {
		return out, nil // a stopped agent is handed nothing
	}
	out.Outcome, err = e.desk.Outcome(ctx, id, who == i.Agent)
	return out, err
}

// AwaitInvocation is Invocation once it has ended, or once the time is over.
func (e *Engine) AwaitInvocation(ctx context.Context, who, id string, wait time.Duration) (Invocation, error) {
	until := time.NewTimer(wait)
	defer until.Stop()
	for {
		changed := e.desk.Watch()
		i, err := e.Invocation(ctx, who, id)
		if err != nil || i.Completed != "" && i.Replaced == "" {
			return i, err
		}
		if i.Replaced != "" {
			id = i.Replaced
			continue
		}
		select {
		case <-changed:
		case <-until.C:
			return i, nil
		case <-ctx.Done():
			return i, nil
		}
	}
}

// errCancelled ends a run that somebody does not want any more.
var errCancelled = writ.Fail(writ.Cancelled, "the call was cancelled", nil)

// CancelInvocation ends a call: what waits is not asked about any more, what runs is
// killed, with everything it started. It narrows, so it takes nobody's passphrase.
func (e *Engine) CancelInvocation(ctx context.Context, who, id string) (Invocation, error) {
	ctx = context.WithoutCancel(ctx)
	i, err := e.Invocation(ctx, who, id)
	if err != nil {
		return i, err
	}
	for range 2 { // what waited may begin to run under our hands
		err = e.desk.Cancel(ctx, id, "cancelled")
		if err == nil || writ.KindOf(err) != writ.Conflict {
			break
		}
		if e.stops.cancelCall(id) {
			err = nil
			break
		}
	}
	after, readErr := e.AwaitInvocation(ctx, who, id, 10*time.Second) // its end is written down a moment after it ended
	if readErr != nil {
		return after, errors.Join(err, readErr)
	}
	if err != nil && writ.KindOf(err) == writ.Conflict {
		err = writ.Fail(writ.Conflict, fmt.Sprintf("%s is already %s", id, after.Status), nil)
	}
	return after, err
}

// ResolveInvocation writes down what a person found out about an unknown outcome.
func (e *Engine) ResolveInvocation(ctx context.Context, r store.Resolution, cred Credentials) error {
	by, err := e.person(ctx, cred, "rate")
	if err != nil {
		return err
	}
	r.By = by
	return e.desk.Resolve(ctx, r, "passphrase")
}

// Grantable reports whether a grant is still bound to what there is: the tool as it is
// defined and the configuration in force.
func (e *Engine) Grantable(g store.Grant) bool {
	r := e.at()
	t, ok := r.catalog.Lookup(g.Tool)
	return ok && t.Digest.String() == g.Definition && r.cfg.Digest.String() == g.Policy
}
