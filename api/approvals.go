package api

import (
	"fmt"
	"slices"
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
		if v.State == "pending" || v.State == "approved" {
			v.Preview = x.preview(i.ID)
		}
		return v
	}
	return pageOf(rows, x.limit(), view, placeOf("approvals")), err
}

// preview is the beginning of a request's arguments, to tell requests apart in a
// list; nobody approves by that.
func (x *exchange) preview(id string) string {
	args, err := x.engine.Desk().Args(x.r.Context(), id)
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

// request is one request, if it is for whoever asks.
func (x *exchange) request() (approval.Request, error) {
	id := x.r.PathValue("id")
	r, err := x.engine.Desk().Show(x.r.Context(), id)
	if r.ID != "" && !x.operator && !x.engine.Below(r.Agent, x.who.Agent) {
		return approval.Request{}, writ.Fail(writ.NotFound, fmt.Sprintf("there is no request %q; 'writ approval list' shows those that wait", id), nil)
	}
	return r, err
}

func showApproval(x *exchange) (any, error) {
	r, err := x.request()
	if err != nil {
		return nil, err
	}
	return x.wholeApproval(r)
}

// wholeApproval is everything of a request that its reader may see.
func (x *exchange) wholeApproval(r approval.Request) (client.Approval, error) {
	v := approvalView(r)
	if v.Shown == nil {
		return v, nil
	}
	if !x.operator {
		v.Shown.Confine.Hide = nil // where writ keeps what is its own
		v.Shown.Reasons = slices.Clone(v.Shown.Reasons)
		for i := range v.Shown.Reasons {
			v.Shown.Reasons[i].Where = ""
		}
	}
	items, err := display.Arguments(v.Shown.Args)
	for _, it := range items {
		v.Display = append(v.Display, itemView(it, 1))
	}
	return v, err
}

// How much of a long argument a page has.
const (
	pageRows  = 200
	pageWidth = 160
)

func itemView(it display.Item, page int) client.Item {
	v := client.Item{Pointer: it.Pointer, Kind: string(it.Kind), Text: it.Text, Bytes: it.Bytes, Lines: it.Lines, Page: 1, Pages: 1, Warnings: it.Warnings}
	if it.Lines <= pageRows && len(it.Text) <= pageRows*pageWidth/4 {
		return v
	}
	pages := display.Paginate(it.Text, pageRows, pageWidth)
	v.Page, v.Pages = min(max(page, 1), pages.Count()), pages.Count()
	v.Text, v.Title = pages.Page(v.Page), pages.Title(v.Page)
	return v
}

func showArgument(x *exchange) (any, error) {
	r, err := x.request()
	if err != nil {
		return nil, err
	}
	if r.Shown == nil {
		return nil, writ.Fail(writ.Conflict, "arguments are kept only while a request is open", nil)
	}
	items, err := display.Arguments(r.Shown.Args)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		if it.Pointer == x.query["pointer"] {
			return itemView(it, int(x.number("page", 1))), nil
		}
	}
	return nil, writ.Fail(writ.NotFound, "the request has no such argument; GET it to see its pointers", nil)
}

func approvalView(r approval.Request) client.Approval {
	v := client.Approval{
		ID: r.ID, State: r.State, Agent: r.Agent, Tool: r.Tool, Risk: r.Risk, Class: r.Class, Dangerous: r.Dangerous, Requested: r.Requested, Expires: r.Expires,
		Decided: r.Decided, By: r.By, Reason: r.Reason, Digest: r.Digest, Quorum: r.Quorum, NotBy: r.NotBy, Needs: r.Needs, Escalations: r.Escalations,
		EditOf: r.EditOf, ReplacedBy: r.Replaced,
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
	return x.wholeApproval(r)
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
