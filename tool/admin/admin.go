// Package admin is the administration surface: writ's own operations as tools,
// writ_{domain}_{action}. An operation acts with the authority of the agent that
// calls it and with nothing else: it sees that agent and those below it, and changes
// what that agent may change, or narrows those below it. What takes a person is here
// too, so that the surface is whole, and answers which command the person uses; there
// is no way from here to doing it.
//
// No level opens these tools and no role as the product ships it: an agent has them
// where its allowed list names them, or a role that the operator wrote
// (tool.Definition.Named).
//
// Every result is an envelope, one line of canonical JSON:
//
//	{"data":…,"status":"ok"}, on lists with "pagination":{"limit":…,"offset":…,"total":…}
//	{"domain_code":…,"error_type":…,"message":…,"status":"error"}, and is_error is set
//
// domain_code is null for an InternalError. Arguments that do not fit the schema never
// get here: the gate refuses such a call as it does for any tool (invalid_argument, and
// no envelope), after decoding strings where the schema takes none ("5" for 5). What
// the schema cannot say is answered in the envelope. So is an admin operation that lacks
// confirm or reason, which its schema requires: what is missing is said by its code. What
// only a person does requires no argument, and is answered so at once.
package admin

import (
	"context"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// Handler does an operation for whoever called: identity is the call's, never an
// argument's. What it returns is the data; of a list, a List.
type Handler func(context.Context, writ.Call, Args) (any, error)

// List is one page of a list, and how many there are.
type List struct {
	Items any
	Total int
}

// Page is the part of all that was asked for.
func Page[T any](all []T, a Args) List {
	from := min(a.Offset, len(all))
	part := all[from:min(from+a.Limit, len(all))]
	if part == nil {
		part = []T{}
	}
	return List{Items: part, Total: len(all)}
}

// Source does the operations.
type Source interface {
	// Handler is what does an operation; nil: nothing does it yet.
	Handler(operation string) Handler
	// Tell is told of every call that came to an error.
	Tell(Event)
}

// Event is what may be written down of a call that came to an error: never its
// arguments, never its cause.
type Event struct {
	Name      string // mcp_handler_…
	Operation string
	Actor     string
	Code      string // of a guardrail
}

// The names of events.
const (
	ArgumentInvalid   = "mcp_handler_argument_invalid"
	InvokeFailed      = "mcp_handler_invoke_failed"
	GuardrailViolated = "mcp_handler_guardrail_violated"
	NotImplemented    = "mcp_handler_not_implemented"
	CapabilityGap     = "mcp_handler_capability_gap"
)

// Tools makes the family. A nil source makes tools to be looked at: none can be called.
func Tools(src Source) ([]*tool.Tool, error) {
	var out []*tool.Tool
	for _, o := range surface() {
		d, err := o.definition()
		if err != nil {
			return nil, err
		}
		if src != nil {
			o.do, o.tell = src.Handler(o.name), src.Tell
		}
		t, err := tool.New(d, o.run)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

// run is the tool's function. An error is returned only where the call itself was
// ended: then nobody waits for an envelope.
func (o operation) run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	if !w.Valid() {
		return writ.Result{}, writ.Fail(writ.Internal, "there is no writ for this call", nil)
	}
	res := o.answer(ctx, w.Call())
	if err := ctx.Err(); err != nil && res.IsError {
		return writ.Result{}, context.Cause(ctx)
	}
	return res, nil
}

func (o operation) definition() (tool.Definition, error) {
	schema, err := o.schema()
	d := tool.Definition{
		Name: o.name, Title: o.title, Description: o.describe(), Category: action.Other, Class: writ.ClassNone, Tier: "cheap", Named: true,
		Schema: schema, Output: outputSchema, Runs: tool.InProcess, Runner: tool.Runner{Kind: tool.Builtin}, Hints: tool.Hints{OpenWorld: new(false)},
	}
	switch o.kind {
	case readOp:
		d.Action, d.Policy, d.Hints.ReadOnly = action.Other.Default(), policy.Policy{Risk: action.Low}, new(true)
	case writeOp:
		d.Action, d.Policy, d.Hints.ReadOnly = changes, policy.Policy{Risk: action.Medium}, new(false)
	case adminOp:
		d.Action, d.Policy, d.Hints.ReadOnly = changes, policy.Policy{Risk: action.High}, new(false)
		d.Asks = []string{"confirm", "reason"}
	}
	if o.person != "" || o.gap != "" { // it does nothing, and nobody is asked whether it may
		d.Action, d.Policy = action.Other.Default(), policy.Policy{Risk: action.Low}
	}
	return d, err
}

// changes is the action type of what is not only read. All of it narrows, which never
// takes a person: it runs by itself under the autonomy that agents have by default.
const changes action.Type = "code:write"
