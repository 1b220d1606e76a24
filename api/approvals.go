package api

import (
	"fmt"
	"strconv"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/store"
)

var approvalStates = []string{"pending", "approved", "used", "rejected", "expired", "void"}

func listApprovals(x *exchange) (any, error) {
	state := x.query["state"]
	if state == "" {
		state = "asked"
	}
	rows, err := x.invocations("approvals", state)
	now := x.engine.Ledger().Now()
	view := func(i store.Invocation) client.Approval {
		v := approvalView(approval.Request{Invocation: i, State: approval.StateOf(i, now)})
		if x.operator && (v.State == "pending" || v.State == "approved") {
			v.Preview = x.preview(i)
		}
		return v
	}
	return pageOf(rows, x.limit(), view, placeOf("approvals")), err
}

// mostPreviewed is how large arguments may be of which a list shows the beginning: for
// that they are opened whole.
const mostPreviewed = 256 << 10

// preview is the beginning of a request's arguments, to tell requests apart in a
// list; nobody approves by that.
func (x *exchange) preview(i store.Invocation) string {
	if i.ArgsBytes > mostPreviewed {
		return "… (" + display.Size(i.ArgsBytes) + ")"
	}
	args, err := x.engine.Desk().Args(x.r.Context(), i.ID)
	if err != nil {
		return "(altered: it cannot be approved)"
	}
	return display.Preview(args, 80)
}

// invocations is one more than a page of a list of invocations in a state.
func (x *exchange) invocations(list, state string) ([]store.Invocation, error) {
	at, err := x.at(list, 1)
	if err != nil {
		return nil, err
	}
	var before int64
	if at != nil {
		if before, err = strconv.ParseInt(at[0], 10, 64); err != nil || before < 1 {
			return nil, writ.Fail(writ.Invalid, "the cursor is not one that this list gave; leave it out to begin again", nil)
		}
	}
	of := store.InvocationsOf{Agent: x.who.Agent, State: state, Now: x.engine.Ledger().Now()}
	return x.engine.Store().InvocationsBefore(x.r.Context(), of, before, x.limit()+1)
}

func placeOf(list string) func(store.Invocation) string {
	return func(i store.Invocation) string { return cursor(list, strconv.FormatInt(i.N, 10)) }
}

func showApproval(x *exchange) (any, error) {
	if !x.operator {
		return x.ownApproval(x.r.PathValue("id"))
	}
	return x.rendered(func() (any, error) {
		r, err := x.engine.Desk().Show(x.r.Context(), x.r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		return x.wholeApproval(r)
	})
}

// ownApproval is a request as its agent sees it, or one above it: what became of it. What
// it asked for it knows; opening and showing that costs more than asking for it does, and
// agents ask as often as they like.
func (x *exchange) ownApproval(id string) (client.Approval, error) {
	i, ok, err := x.engine.Store().Standing(x.r.Context(), id)
	if err == nil && (!ok || i.Asked == "" || !x.engine.Below(i.Agent, x.who.Agent)) {
		err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no request %q; 'writ approval list' shows those that wait", id), nil)
	}
	if err != nil {
		return client.Approval{}, err
	}
	votes, err := x.engine.Store().Votes(x.r.Context(), id)
	return approvalView(approval.Request{Invocation: i, State: approval.StateOf(i, x.engine.Ledger().Now()), Votes: votes}), err
}

func approvalView(r approval.Request) client.Approval {
	v := client.Approval{
		ID: r.ID, State: r.State, Agent: r.Agent, Tool: r.Tool, Risk: r.Risk, Class: r.Class, Dangerous: r.Dangerous, Requested: r.Requested, Expires: r.Expires,
		Decided: r.Decided, By: r.By, Reason: r.Reason, Digest: r.Digest, Quorum: r.Quorum, NotBy: r.NotBy, Needs: r.Needs, Escalations: r.Escalations,
		EditOf: r.EditOf, ReplacedBy: r.Replaced, ArgsDigest: r.ArgsDigest, ArgsBytes: r.ArgsBytes,
	}
	for _, vote := range r.Votes {
		v.Votes = append(v.Votes, client.Vote{Person: vote.Person, Decision: vote.Decision, Factor: vote.Factor, At: vote.At})
	}
	for _, i := range r.LedTo {
		v.LedTo = append(v.LedTo, invocationView(i))
	}
	if s := r.Shown; s != nil {
		v.Shown = &client.Shown{
			Agent: s.Agent, Chain: s.Chain, Person: s.Person, Session: s.Session, Task: s.Task, Tool: s.Tool, Args: s.Args, Original: s.Original, Dir: s.Dir,
			Action: s.Action, Risk: s.Risk, Class: s.Class, Dangerous: s.Dangerous, Reasons: s.Reasons, Confine: s.Confine, Policy: s.Policy, Base: s.Base, Code: s.Code,
		}
		for _, n := range s.Resolved {
			v.Shown.Resolved = append(v.Shown.Resolved, client.ResolvedName(n))
		}
		for _, in := range s.Inputs {
			v.Shown.Inputs = append(v.Shown.Inputs, client.Input(in))
		}
	}
	return v
}

func previewApproval(x *exchange) (any, error) {
	r, err := x.engine.Desk().Preview(x.r.Context(), x.r.PathValue("id"), string(body[client.PreviewRequest](x).Args))
	if err != nil {
		return nil, err
	}
	return x.rendered(func() (any, error) { return x.wholeApproval(r) })
}

func decideApproval(x *exchange) (any, error) {
	in := body[client.DecisionRequest](x)
	ans := approval.Answer{ID: x.r.PathValue("id"), Digest: in.Digest, Approve: in.Approve, Reason: in.Reason}
	if !in.Approve && (in.Edit != nil || in.Grant != nil) {
		return nil, writ.Fail(writ.Invalid, "edit and grant go with an approval; leave them out to reject", nil)
	}
	if in.Edit != nil {
		ans.Edit = &approval.Edit{Args: string(in.Edit.Args), Digest: in.Edit.Digest}
	}
	if in.Grant != nil {
		seconds := min(max(in.Grant.Seconds, 0), 1<<32) // more would come round to something short
		ans.Grant = &approval.Allow{Uses: in.Grant.Uses, For: time.Duration(seconds) * time.Second, Match: in.Grant.Match}
	}
	if err := x.engine.Decide(x.r.Context(), ans, engine.Credentials(in.By)); err != nil {
		return nil, err
	}
	r, err := x.engine.Desk().Show(x.r.Context(), ans.ID)
	if err == nil && r.Replaced != "" {
		r, err = x.engine.Desk().Show(x.r.Context(), r.Replaced)
	}
	v := approvalView(r)
	if in.Grant != nil && err == nil {
		v.Grant, err = x.grantOf(r.ID)
	}
	return v, err
}
