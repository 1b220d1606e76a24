package engine

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/disclose"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/external"
	"github.com/writ-run/writ/wire"
)

// Call is one call as a front door hands it over, or as an embedding program makes it.
type Call struct {
	Agent string // authenticated by the front door; an embedding program vouches for it
	Tool  string
	Args  []byte // a JSON object; empty: {}

	Session string // an open one; empty: the agent's session of the day
	Task    string // an open one, or the name of one to open; empty: the session
	// Patience is how long to wait for a person, where one has to be asked.
	Patience time.Duration
	// Code says that the program itself makes this call, not a model: it may then
	// use tools whose constraint forbidden keeps them from models.
	Code bool

	// Key makes calls of the agent with the same key one call: it runs at most once,
	// and whoever makes it again within a day gets what came of it.
	Key  string
	Cost *float64 // what the caller thinks it costs; written down, trusted for nothing

	Door  string // the front door; empty: library
	Token string // the id of the token it came with; empty: none

	resumes string // the approved invocation that this call takes up, with nobody waiting
}

// Outcome is what came of a call.
type Outcome struct {
	CallID string
	writ.Result
}

// Do takes one call down the one path: identify, resolve, validate, then the gate.
func (e *Engine) Do(ctx context.Context, c Call) (Outcome, error) {
	return e.do(ctx, c, approval.NewID(e.ledger.Time()))
}

func (e *Engine) do(ctx context.Context, c Call, id string) (Outcome, error) {
	call, leave, err := e.prepare(ctx, c, id)
	defer leave()
	var d writ.Decision
	if err == nil {
		call, d, err = e.intercept(ctx, c, call)
	}
	if err != nil {
		err = e.refuse(ctx, call, d, c.resumes, err)
		e.hooks.denied(e.log, call, err)
		return Outcome{CallID: id}, err
	}
	if call.Key != "" && e.permitted(ctx, call) {
		var before *writ.Already
		switch was, err := e.desk.Recall(ctx, call); {
		case errors.As(err, &before):
			return Outcome{before.Call, before.Result}, before.Err
		case err != nil && was != "":
			return Outcome{CallID: was}, err
		case err != nil:
			return Outcome{CallID: id}, e.refuse(ctx, call, d, "", err)
		}
	}
	as, res, err := e.gate.DoAs(ctx, call)
	e.hooks.over(e.log, call, res, err)
	return Outcome{as, res}, err
}

// permitted reports whether a call may be made now: what came of it before is not
// handed out to somebody who could not make it any more.
func (e *Engine) permitted(ctx context.Context, c writ.Call) bool {
	d, err := decider{e}.Decide(ctx, c)
	return err == nil && d.Effect != writ.Deny
}

// refuse records a call that did not get as far as the gate.
func (e *Engine) refuse(ctx context.Context, c writ.Call, d writ.Decision, resumes string, why error) error {
	ev := writ.Event{Kind: writ.EventRefused, Call: c, Decision: d, Err: why, Approval: writ.Approval{ID: resumes}}
	var w *writ.Error
	if errors.As(why, &w) && len(d.Reasons) == 0 {
		ev.Decision.Reasons = w.Reasons
	}
	if err := e.desk.Record(context.WithoutCancel(ctx), ev); err != nil {
		return err
	}
	return why
}

// prepare identifies the caller, finds session and task, parses the arguments once
// and resolves what they name once; nothing behind it looks at the caller's bytes
// again. leave is never nil, and is called when the call is over.
func (e *Engine) prepare(ctx context.Context, c Call, id string) (call writ.Call, leave func(), err error) {
	leave = func() {}
	call = writ.Call{ID: id, Agent: c.Agent, Token: c.Token, Door: c.Door, Code: c.Code, Patience: c.Patience, Cost: c.Cost, Detached: c.resumes != ""}
	if err := checkName("the idempotency key", c.Key); err != nil {
		return call, leave, err
	}
	call.Key = c.Key
	if call.Door == "" {
		call.Door = "library"
	}
	r := e.rulesFor(ctx, c.Tool)
	agent, ok := r.agents[c.Agent]
	if !ok && c.Token == "" {
		return call, leave, e.noAgent(c.Agent)
	}
	if !ok {
		return call, leave, writ.Fail(writ.Unauthenticated, "there is no such agent any more; ask the operator", nil)
	}
	if err := r.alive(c.Agent, e.ledger.Now()); err != nil {
		return call, leave, err
	}
	call.Person, call.Chain = agent.Person, r.chain(c.Agent)
	session, task, left, err := e.enter(ctx, c)
	if err != nil {
		return call, leave, err
	}
	call.Session, call.Task, leave = session, task, left
	return call, leave, r.resolve(&call, c)
}

// rulesFor is the rules in force, once a server that is just being started, and may have
// the tool, has said whether it does.
func (e *Engine) rulesFor(ctx context.Context, name string) *rules {
	r := e.at()
	if _, ok := r.catalog.Lookup(name); ok || len(r.cfg.File.Upstreams)+len(e.upstreams.own) == 0 {
		return r
	}
	e.upstreams.await(ctx, name)
	return e.at()
}

// resolve fills in the tool and the arguments.
func (r *rules) resolve(call *writ.Call, c Call) error {
	t, ok := r.catalog.Lookup(c.Tool)
	if !ok && c.Tool == external.Name {
		return writ.Fail(writ.NotFound, "there is no tool "+external.Name+" while no connection is configured; an operator writes one under connections, see docs/connections.md", nil)
	}
	if !ok {
		return tool.Missing(c.Tool, r.visibleNames(c.Agent))
	}
	// Only now: a name that is no tool's can be anything, and is not written down.
	call.Tool, call.Definition, call.Action = t.Name, t.Digest, string(t.Action)
	if !r.decider.Visible(c.Agent, t.Name) && !c.Code {
		// The gate will deny it, whatever the arguments; what they should have
		// been is not for this caller to learn.
		call.Args, call.ArgsDigest, call.Resolved = "{}", wire.Digest(string(c.Args)), true
		return nil
	}
	canonical, value, err := t.Args(c.Args)
	if err != nil {
		return inArguments(err)
	}
	call.Args, call.ArgsDigest = canonical, wire.Digest(canonical)
	call.Action = string(t.ActionOf(value))
	call.Dir = r.agents[c.Agent].Workspace.Path
	home, _ := os.UserHomeDir()
	call.Targets, call.Resolved = targets(t.Shape.Candidates(value), call.Dir, home), true
	r.connect(call)
	r.prevent(call)
	return nil
}

// inArguments says that an error of the parser is about the arguments, not about the
// request around them.
func inArguments(err error) error {
	var w *writ.Error
	if errors.As(err, &w) && strings.HasPrefix(w.Msg, "JSON: ") {
		return writ.Fail(w.Kind, "arguments: "+strings.TrimPrefix(w.Msg, "JSON: "), w.Err)
	}
	return err
}

// visibleNames are the tools that an agent may use, but for those that everybody may:
// discovery.
func (r *rules) visibleNames(agent string) []string {
	var names []string
	for _, t := range r.catalog.All() {
		if r.decider.Visible(agent, t.Name) && !disclose.Discovery(t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Explain decides a call without making it: every reason, and all it would reach.
// It opens no session: what is counted in a session or a task is held against the ones
// that c names, and said where it names none.
func (e *Engine) Explain(ctx context.Context, c Call) (writ.Decision, error) {
	r := e.at()
	agent, ok := r.agents[c.Agent]
	if !ok {
		return writ.Decision{}, e.noAgent(c.Agent)
	}
	chain := r.chain(c.Agent)
	call := writ.Call{ID: "explain", Agent: c.Agent, Door: "explain", Person: agent.Person, Chain: chain, Session: c.Session, Task: c.Task}
	if err := r.resolve(&call, c); err != nil {
		return writ.Decision{}, err
	}
	d, err := r.decider.Decide(ctx, call)
	if err != nil {
		return writ.Decision{}, err
	}
	if who := e.stops.is(chain); who != "" {
		deny(&d, "stop", stoppedError(who))
	}
	if err := e.holds(ctx, r, call.Tool, d.Confine); err != nil {
		deny(&d, "sandbox", err)
	}
	known := d.Reserve
	if call.Session == "" { // what is counted in a session or a task cannot be said without one
		known.Quotas, known.After = overTime(known.Quotas), nil
	}
	if err := e.room(ctx, call, known); err != nil {
		deny(&d, "constraints", err)
	}
	if call.Session == "" && (len(known.Quotas) < len(d.Reserve.Quotas) || len(d.Reserve.After) > 0) {
		d.Reasons = append(slices.Clone(d.Reasons), writ.Reason{Effect: d.Effect, Source: "constraints", Where: "not counted",
			Text: bounds(d.Reserve) + "; name a session, and a task, to have them held against it"})
	}
	return d, nil
}

// deny adds a reason that is no rule of the configuration.
func deny(d *writ.Decision, source string, err error) {
	_, msg := writ.Public(err)
	d.Effect = writ.Deny
	d.Reasons = append(slices.Clone(d.Reasons), writ.Reason{Effect: writ.Deny, Source: source, Text: strings.TrimPrefix(msg, "denied: "), Where: "this machine"})
}

func overTime(all []writ.Quota) []writ.Quota {
	return slices.DeleteFunc(slices.Clone(all), func(q writ.Quota) bool { return q.Per != writ.PerWindow })
}

// bounds says what a reservation holds a call to.
func bounds(r writ.Reserve) string {
	var parts []string
	for _, q := range r.Quotas {
		parts = append(parts, tool.QuotaText(q))
	}
	if len(r.After) > 0 {
		parts = append(parts, "only after "+strings.Join(r.After, ", "))
	}
	return "bounded by " + strings.Join(parts, ", ")
}

// holds reports why no sandbox could run a tool so confined, or nil.
func (e *Engine) holds(ctx context.Context, r *rules, name string, c writ.Confinement) error {
	if t, ok := r.catalog.Lookup(name); !ok || t.Runs != tool.InBox {
		return nil
	}
	return e.drivers.Check(ctx, c)
}

// room reports which quota is used up, or what has to come before, or nil. It is
// asked here so that nobody is asked about a call that could not run; it is held
// when the start is recorded.
func (e *Engine) room(ctx context.Context, c writ.Call, r writ.Reserve) error {
	if len(r.Quotas)+len(r.After) == 0 {
		return nil
	}
	return ledger.Room(e.store.Counts(ctx), c, r, e.now())
}

// decider is the gate's Decider: what the configuration in force says, and what
// cannot be known from it. A stopped agent, or one below it, is denied everything,
// also a call that waited for its approval meanwhile. A call that no sandbox could
// hold is refused before a person is asked about it.
type decider struct{ e *Engine }

func (d decider) Decide(ctx context.Context, c writ.Call) (writ.Decision, error) {
	r := d.e.at()
	if err := r.alive(c.Agent, d.e.ledger.Now()); err != nil {
		return writ.Decision{}, err
	}
	if who := d.e.stops.is(r.chain(c.Agent)); who != "" {
		return writ.Decision{}, stoppedError(who)
	}
	out, err := r.decider.Decide(ctx, c)
	if err != nil || out.Effect == writ.Deny {
		return out, err
	}
	if c.Dir == "" { // it was prepared as one that would be denied, without its arguments
		return writ.Decision{}, writ.Fail(writ.Changed, "what the agent may use changed while the call was made; make it again", nil)
	}
	if err := d.e.holds(ctx, r, c.Tool, out.Confine); err != nil {
		return writ.Decision{}, err
	}
	if err := d.e.room(ctx, c, out.Reserve); err != nil {
		return writ.Decision{}, err
	}
	return out, nil
}

// approver is the gate's Approver: the desk, and a batch that goes on meanwhile.
type approver struct{ e *Engine }

func (a approver) Approve(ctx context.Context, c writ.Call, d writ.Decision) (writ.Approval, error) {
	resume := a.e.turns.wait(c.ID)
	defer resume()
	got, err := a.e.desk.Approve(ctx, c, d)
	if err == nil && got.ID != c.ID {
		a.e.turns.also(c.ID, got.ID)
	}
	if writ.KindOf(err) == writ.Changed {
		if who := a.e.stops.is(a.e.at().chain(c.Agent)); who != "" {
			err = stoppedError(who)
		}
	}
	return got, err
}
