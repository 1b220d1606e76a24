package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/store"
)

var invocationStates = []string{"pending", "running", "completed", "failed", "rejected", "expired", "cancelled", "unknown", "denied"}

func listInvocations(x *exchange) (any, error) {
	rows, err := x.invocations("invocations", x.query["state"])
	now := x.engine.Ledger().Now()
	view := func(i store.Invocation) client.Invocation { return invocationView(approval.AsOf(i, now)) }
	return pageOf(rows, x.limit(), view, placeOf("invocations")), err
}

// invocation finds a call that whoever asks may see, and hands nothing over. What is
// somebody else's is missing.
func (x *exchange) invocation(id string) (engine.Invocation, error) {
	i, err := x.engine.Invocation(x.r.Context(), "", id)
	if err == nil && !x.operator && !x.engine.Below(i.Agent, x.who.Agent) {
		return x.engine.Invocation(x.r.Context(), x.who.Agent, id)
	}
	return i, err
}

// showInvocation hands a kept outcome over to the agent whose call it was, and only
// shows it to anybody else.
func showInvocation(x *exchange) (any, error) {
	i, err := x.engine.AwaitInvocation(x.r.Context(), x.who.Agent, x.r.PathValue("id"), x.wait())
	return wholeInvocation(i), err
}

func cancelInvocation(x *exchange) (any, error) {
	i, err := x.invocation(x.r.PathValue("id"))
	if err == nil { // for the operator, who takes no outcome: one that is there already waits on
		i, err = x.engine.CancelInvocation(x.r.Context(), "", i.ID)
	}
	return wholeInvocation(i), err
}

// answers are what a person can have found out.
var answers = []string{"yes", "no", "partly"}

func resolveInvocation(x *exchange) (any, error) {
	in := body[client.ResolutionRequest](x)
	id := x.r.PathValue("id")
	if !slices.Contains(answers, in.Happened) {
		return nil, writ.Fail(writ.Invalid, fmt.Sprintf("happened: %q is none of %s", in.Happened, strings.Join(answers, ", ")), nil)
	}
	if _, err := x.invocation(id); err != nil {
		return nil, err
	}
	err := x.engine.ResolveInvocation(x.r.Context(), store.Resolution{Invocation: id, Happened: in.Happened, Note: in.Note}, engine.Credentials(in.By))
	if err != nil {
		return nil, err
	}
	i, err := x.engine.Invocation(x.r.Context(), "", id)
	return wholeInvocation(i), err
}

func wholeInvocation(i engine.Invocation) client.Invocation {
	v := invocationView(i.Invocation)
	if r := i.Resolution; r != nil {
		v.Resolution = &client.Resolution{Happened: r.Happened, Note: r.Note, By: r.By, At: r.At}
	}
	switch out := i.Outcome; {
	case out == nil:
	case out.Err != nil:
		kind, msg := writ.Public(out.Err)
		v.Error, v.Args = &client.CallError{Kind: kind, Detail: msg}, json.RawMessage(out.Args)
	default:
		v.Result = &client.CallReply{CallID: i.ID, Content: out.Result.Content, IsError: out.Result.IsError, Metadata: out.Result.Metadata}
	}
	return v
}

func invocationView(i store.Invocation) client.Invocation {
	return client.Invocation{
		ID: i.ID, Status: i.Status, ApprovalStatus: i.Approval, ApprovalReason: i.Reason, Agent: i.Agent, Person: i.Person, Tool: i.Tool, Action: i.Action,
		Risk: i.Risk, Class: i.Class, Session: i.Session, Task: i.Task, Door: i.Door, Key: i.Key, ArgsDigest: i.ArgsDigest, ArgsBytes: i.ArgsBytes,
		Requested: i.Requested, Expires: i.Expires, DecidedBy: i.By, Decided: i.Decided, Grant: i.Grant, Started: i.Started, Completed: i.Completed,
		Outcome: i.Outcome, Attempt: i.Fence, EditOf: i.EditOf, ReplacedBy: i.Replaced, CostEstimate: i.Cost, Micros: i.Micros, CPU: i.CPU, ResultBytes: i.Bytes,
	}
}
