package engine

import (
	"context"
	"crypto/rand"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// Version is the version this program was built as.
func Version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}

// Caller is who makes a call, as the front door authenticated them.
type Caller struct {
	Agent   string
	Session string
	Task    string // empty: the session
	Door    string

	Patience time.Duration // how long to wait for a person; see writ.Call
}

// Outcome is what came of a call.
type Outcome struct {
	CallID string
	Result writ.Result
}

// Do takes one call down the one path: identify, resolve, validate, then the gate.
func (e *Engine) Do(ctx context.Context, who Caller, toolName string, args []byte) (Outcome, error) {
	c, err := e.prepare(who, toolName, args)
	if err != nil {
		return Outcome{CallID: c.ID}, e.refuse(ctx, c, err)
	}
	res, err := e.gate.Do(ctx, c)
	return Outcome{c.ID, res}, err
}

// refuse records a call that did not get as far as the gate.
func (e *Engine) refuse(ctx context.Context, c writ.Call, why error) error {
	err := e.ledger.Record(context.WithoutCancel(ctx), writ.Event{Kind: writ.EventRefused, Call: c, Err: why})
	if err != nil {
		return err
	}
	return why
}

// prepare parses the arguments once and resolves what they name once; nothing
// behind it looks at the caller's bytes again.
func (e *Engine) prepare(who Caller, toolName string, args []byte) (writ.Call, error) {
	c := writ.Call{
		ID: "call_" + strings.ToLower(rand.Text()[:16]), Agent: who.Agent, Session: who.Session, Task: who.Task, Door: who.Door,
		Patience: who.Patience,
	}
	if c.Task == "" {
		c.Task = c.Session
	}
	agent, ok := e.agents[who.Agent]
	if !ok {
		return c, writ.Fail(writ.Unauthenticated, "there is no such agent any more; ask the operator", nil)
	}
	c.Person = agent.Person
	t, ok := e.catalog.Lookup(toolName)
	if !ok {
		return c, tool.Missing(toolName, e.visibleNames(who.Agent))
	}
	c.Tool, c.Definition = t.Name, t.Digest
	if !e.decider.Visible(who.Agent, t.Name) {
		// The gate will deny it, whatever the arguments; what they should have
		// been is not for this caller to learn.
		c.Args, c.ArgsDigest, c.Resolved = "{}", wire.Digest(string(args)), true
		return c, nil
	}
	canonical, value, err := t.Args(args)
	if err != nil {
		return c, err
	}
	c.Args, c.ArgsDigest = canonical, wire.Digest(canonical)
	c.Dir = agent.Workspace.Path
	home, _ := os.UserHomeDir()
	c.Targets, c.Resolved = targets(t.Shape.Candidates(value), c.Dir, home), true
	return c, nil
}

func (e *Engine) visibleNames(agent string) []string {
	var names []string
	for _, t := range e.catalog.All() {
		if e.decider.Visible(agent, t.Name) {
			names = append(names, t.Name)
		}
	}
	return names
}

// Explain decides a call without making it: every reason, and all it would reach.
func (e *Engine) Explain(ctx context.Context, agent, toolName string, args []byte) (writ.Decision, error) {
	who := Caller{Agent: agent, Session: "explain", Door: "explain"}
	c, err := e.prepare(who, toolName, args)
	if err != nil {
		return writ.Decision{}, err
	}
	d, err := e.decider.Decide(ctx, c)
	if err != nil {
		return writ.Decision{}, err
	}
	if e.stops.is(agent) {
		deny(&d, "stop", stoppedError(agent))
	}
	if err := e.holds(ctx, c.Tool, d.Confine); err != nil {
		deny(&d, "sandbox", err)
	}
	return d, nil
}

// deny adds a reason that is no rule of the configuration.
func deny(d *writ.Decision, source string, err error) {
	_, msg := writ.Public(err)
	d.Effect = writ.Deny
	d.Reasons = append(slices.Clone(d.Reasons), writ.Reason{Effect: writ.Deny, Source: source, Text: msg, Where: "this machine"})
}

// holds reports why no sandbox could run a tool so confined, or nil.
func (e *Engine) holds(ctx context.Context, name string, c writ.Confinement) error {
	if t, ok := e.catalog.Lookup(name); !ok || t.Runs != tool.InBox {
		return nil
	}
	return e.drivers.Check(ctx, c)
}

// decider is the gate's Decider: what the configuration says, and what cannot be
// known from it. A stopped agent is denied everything, also a call that waited for
// its approval meanwhile. A call that no sandbox could hold is refused before a
// person is asked about it.
type decider struct{ e *Engine }

func (d decider) Decide(ctx context.Context, c writ.Call) (writ.Decision, error) {
	if d.e.stops.is(c.Agent) {
		return writ.Decision{}, stoppedError(c.Agent)
	}
	out, err := d.e.decider.Decide(ctx, c)
	if err != nil || out.Effect == writ.Deny {
		return out, err
	}
	if err := d.e.holds(ctx, c.Tool, out.Confine); err != nil {
		return writ.Decision{}, err
	}
	return out, nil
}
