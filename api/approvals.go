package api

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/store"
)

var approvalStates = []string{"pending", "approved", "rejected", "expired", "void", "used"}

func listApprovals(x *exchange) (any, error) {
	at, err := x.before("approvals")
	if err != nil {
		return nil, err
	}
	of := store.ApprovalsOf{Agent: x.who.Agent, State: x.query["state"], Now: x.engine.Ledger().Now()}
	rows, err := x.engine.Store().ApprovalsBefore(x.r.Context(), of, at[0], at[1], x.limit()+1)
	return pageOf(rows, x.limit(), x.listed, func(a store.Approval) string { return cursor("approvals", a.Requested, a.ID) }), err
}

// listed is a request in a list. Its arguments are previewed while it is open, to
// tell requests apart; nobody approves by that.
func (x *exchange) listed(a store.Approval) client.Approval {
	v := client.Approval{
		ID: a.ID, State: a.State, Agent: a.Agent, Tool: a.Tool, Requested: a.Requested, Expires: a.Expires,
		Decided: a.Decided, By: a.By, Reason: a.Reason, Digest: a.Digest,
	}
	if a.State != "pending" && a.State != "approved" {
		return v
	}
	switch whole, err := x.engine.Desk().Show(x.r.Context(), a.ID); {
	case err != nil:
		v.Preview = "(altered: it cannot be approved)"
	case whole.Shown != nil:
		v.Preview = preview(string(whole.Shown.Args))
	}
	return v
}

// preview is the beginning of the arguments; it says how much there is.
func preview(args string) string {
	const most = 60
	if len(args) <= most {
		return args
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(args[:most], ""), len(args))
}

func showApproval(x *exchange) (any, error) {
	r, err := x.engine.Desk().Show(x.r.Context(), x.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if !x.operator && r.Agent != x.who.Agent {
		return nil, writ.Fail(writ.NotFound, fmt.Sprintf("there is no request %q; 'writ approval list' shows those that wait", r.ID), nil)
	}
	v := approvalView(r)
	if !x.operator && v.Shown != nil {
		v.Shown.Confine.Hide = nil // where writ keeps what is its own
		v.Shown.Reasons = slices.Clone(v.Shown.Reasons)
		for i := range v.Shown.Reasons {
			v.Shown.Reasons[i].Where = ""
		}
	}
	return v, nil
}

func approvalView(r approval.Request) client.Approval {
	v := client.Approval{
		ID: r.ID, State: r.State, Agent: r.Agent, Tool: r.Tool, Requested: r.Requested, Expires: r.Expires,
		Decided: r.Decided, By: r.By, Reason: r.Reason, Digest: r.Digest, Preview: r.Preview,
	}
	if s := r.Shown; s != nil {
		v.Shown = &client.Shown{
			Agent: s.Agent, Person: s.Person, Session: s.Session, Task: s.Task, Tool: s.Tool, Args: s.Args, Dir: s.Dir,
			Action: s.Action, Risk: s.Risk, Class: s.Class, Reasons: s.Reasons, Confine: s.Confine, Policy: s.Policy,
		}
		for _, n := range s.Resolved {
			v.Shown.Resolved = append(v.Shown.Resolved, client.ResolvedName(n))
		}
	}
	return v
}

func decideApproval(x *exchange) (any, error) {
	in := body[client.DecisionRequest](x)
	ans := approval.Answer{ID: x.r.PathValue("id"), Digest: in.Digest, Approve: in.Approve, Reason: in.Reason}
	if err := x.engine.Decide(x.r.Context(), ans, engine.Credentials(in.By)); err != nil {
		return nil, err
	}
	r, err := x.engine.Desk().Show(x.r.Context(), ans.ID)
	return approvalView(r), err
}
