package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// Tool is a function of the embedding program, governed like every other tool. It
// runs in this process, so it is held by the argument gate and by what it declares,
// not by a sandbox.
type Tool struct {
	Name        string
	Description string
	Category    action.Category // empty: other
	Action      action.Type     // empty: the category's
	Class       writ.Class      // the zero value is ClassWrite, which asks a person each time
	Dangerous   bool            // it takes somebody else than whom the agent acts for to agree
	Policy      policy.Policy
	Constraints tool.Constraints
	Parameters  json.RawMessage // JSON Schema of an object; empty: no arguments
	// Run gets the canonical arguments. A result with IsError is for the model; an
	// error means that the call could not be carried out.
	Run func(ctx context.Context, args json.RawMessage) (writ.Result, error)
}

func (t Tool) make() (*tool.Tool, error) {
	if t.Run == nil {
		return nil, fmt.Errorf("tool %s has nothing to run", t.Name)
	}
	d := tool.Definition{
		Name: t.Name, Title: t.Name, Description: t.Description, Category: t.Category, Action: t.Action, Class: t.Class, Dangerous: t.Dangerous,
		Policy: t.Policy, Constraints: t.Constraints, Schema: t.Parameters, Runs: tool.InProcess, Runner: tool.Runner{Kind: tool.Library},
	}
	if d.Category == "" {
		d.Category = action.Other
	}
	if d.Action == "" {
		d.Action = d.Category.Default()
	}
	if len(d.Schema) == 0 {
		d.Schema = json.RawMessage(`{"type":"object","additionalProperties":false}`)
	}
	return tool.New(d, func(ctx context.Context, w writ.Writ) (writ.Result, error) {
		return t.Run(ctx, json.RawMessage(w.Call().Args))
	})
}

// Register adds a tool. Calls can use it once Register has returned. A name that is
// taken is refused.
func (e *Engine) Register(ctx context.Context, t Tool) error {
	made, err := t.make()
	if err != nil {
		return err
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	before := e.registered
	e.registered = append(slices.Clone(before), made)
	cfg, loaded, err := catalog.Load(e.at().cfg.Path, e.registered)
	if err == nil && cfg.Digest != e.at().cfg.Digest {
		err = errors.New("the configuration changed meanwhile; call Reload first")
	}
	if err == nil {
		err = e.change(ctx, cfg, loaded)
	}
	if err != nil {
		e.registered = before
	}
	return err
}

// Hooks let the embedding program take part. They are called from many goroutines.
type Hooks struct {
	// OnBeforeCall run in order for each call that the gate would let through or
	// ask a person about. The first that does not proceed wins. One that panics denies.
	OnBeforeCall []func(context.Context, writ.Call) Verdict
	// OnDenied is told of each call that was refused, and every reason there was.
	OnDenied func(writ.Call, []writ.Reason)
	// OnCalled is told of each call that ran, and how it ended; never of a denied one.
	OnCalled func(writ.Call, writ.Result, error)
}

// Verdict is what an interceptor says. The zero Verdict denies.
type Verdict struct {
	proceed bool
	reason  string
	args    []byte
}

// Proceed lets the call go on.
func Proceed() Verdict { return Verdict{proceed: true} }

// Refuse denies it, and tells the agent why.
func Refuse(reason string) Verdict { return Verdict{reason: reason} }

// Replace lets it go on with other arguments, which are parsed, resolved and
// decided like any others.
func Replace(args []byte) Verdict { return Verdict{proceed: true, args: args} }

// intercept asks the interceptors, after the gate's own decision and before
// anything is asked of a person, recorded or run. The gate decides again afterwards.
// What is denied here stays denied: were it left to the gate, which may see another
// configuration a moment later, a call could pass that nobody was asked about.
func (e *Engine) intercept(ctx context.Context, c Call, call writ.Call) (writ.Call, writ.Decision, error) {
	for _, before := range e.hooks.OnBeforeCall {
		d, err := (decider{e}).Decide(ctx, call)
		if err != nil {
			return call, d, err
		}
		if d.Effect == writ.Deny {
			return call, d, d.Refusal()
		}
		v := asked(ctx, before, call)
		if !v.proceed {
			text := v.reason
			if text == "" {
				text = "an interceptor refused it"
			}
			reason := writ.Reason{Effect: writ.Deny, Source: "interceptor", Text: text, Where: "the embedding program"}
			return call, writ.Decision{}, &writ.Error{Kind: writ.Denied, Msg: "denied: " + text, Reasons: []writ.Reason{reason}}
		}
		if v.args != nil {
			c.Args = v.args
			if err := e.at().resolve(&call, c); err != nil {
				return call, writ.Decision{}, err
			}
		}
	}
	return call, writ.Decision{}, nil
}

func asked(ctx context.Context, before func(context.Context, writ.Call) Verdict, call writ.Call) (v Verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = Refuse("an interceptor failed")
		}
	}()
	return before(ctx, call)
}

// refusals are the kinds of errors that mean that a call was not let through.
var refusals = []writ.Kind{writ.Denied, writ.Rejected, writ.Expired, writ.Stopped, writ.NotFound, writ.Unauthenticated, writ.Invalid, writ.Changed,
	writ.Conflict, writ.TooLarge, writ.SandboxUnavailable, writ.StoreUnavailable}

// over tells of a call that the gate is done with.
func (h *Hooks) over(log *slog.Logger, c writ.Call, res writ.Result, err error) {
	kind := writ.KindOf(err)
	switch {
	case err != nil && kind == writ.Pending:
	case err != nil && slices.Contains(refusals, kind):
		h.denied(log, c, err)
	case h.OnCalled != nil:
		guard(log, "OnCalled", func() { h.OnCalled(c, res, err) })
	}
}

func (h *Hooks) denied(log *slog.Logger, c writ.Call, err error) {
	if h.OnDenied == nil {
		return
	}
	var w *writ.Error
	var reasons []writ.Reason
	if errors.As(err, &w) {
		reasons = w.Reasons
	}
	if len(reasons) == 0 {
		kind, msg := writ.Public(err)
		reasons = []writ.Reason{{Effect: writ.Deny, Source: string(kind), Text: msg, Where: "the engine"}}
	}
	guard(log, "OnDenied", func() { h.OnDenied(c, reasons) })
}

// guard keeps a panic of a listener from ending a call that is over.
func guard(log *slog.Logger, what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("a hook panicked", "hook", what, "panic", fmt.Sprint(p))
		}
	}()
	f()
}
