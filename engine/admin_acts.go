package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool/admin"
)

// acts are the operations that change something. They narrow, or are what the agent
// may do at any front door; each finds what it changes among what is the caller's first.
func (a *administration) acts() map[string]admin.Handler {
	return map[string]admin.Handler{
		"writ_agents_start_session":   a.startSession,
		"writ_agents_start_task":      a.startTask,
		"writ_agents_end_session":     a.endSession,
		"writ_agents_end_task":        a.endTask,
		"writ_agents_end":             a.endAgent,
		"writ_agents_stop":            a.stop,
		"writ_agents_revoke_token":    a.revokeToken,
		"writ_approvals_revoke_grant": a.revokeGrant,
		"writ_invocations_cancel":     a.cancel,
		"writ_sandbox_kill":           a.killSandbox,
		"writ_upstreams_test":         a.testUpstream,
	}
}

type done struct {
	Done string `json:"done"`
}

func (a *administration) startSession(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	s, err := a.e.OpenSession(ctx, Call{Agent: c.Agent, Token: c.Token}, args.Text("name"))
	return sessionOf(s), err
}

func (a *administration) startTask(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	t, err := a.e.StartTask(ctx, Call{Agent: c.Agent, Token: c.Token, Session: named(c), Task: args.Text("name")})
	return t, err
}

// named is the session of a call as a caller names it. The session of the day goes by
// no name.
func named(c writ.Call) string {
	if s := c.Session; len(s) > 4 && s[:4] == "ses_" {
		return s
	}
	return ""
}

// own is a session that the caller's token opened. A call without a token is the
// library's, and owns what was opened without one.
func (a *administration) own(ctx context.Context, c writ.Call, id string) (bool, error) {
	s, ok, err := a.e.store.Session(ctx, id)
	return ok && s.Agent == c.Agent && s.Token == c.Token, err
}

func (a *administration) endSession(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	id := args.Text("session")
	mine, err := a.own(ctx, c, id)
	if err == nil && !mine {
		err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no open session %q of yours; writ_agents_sessions shows them", clip(id)), nil)
	}
	if err != nil {
		return nil, err
	}
	return done{"ended"}, a.apart(ctx, func(ctx context.Context) error { return a.e.EndSession(ctx, c.Token, id, "ended") })
}

func (a *administration) endTask(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	id := args.Text("task")
	t, ok, err := a.e.store.Task(ctx, id)
	if err == nil && ok {
		ok, err = a.own(ctx, c, t.Session)
	}
	if err == nil && !ok {
		err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no open task %q of yours; writ_agents_tasks shows them", clip(id)), nil)
	}
	if err != nil {
		return nil, err
	}
	return done{"ended"}, a.apart(ctx, func(ctx context.Context) error { return a.e.EndTask(ctx, c.Token, "", id, "ended") })
}

func (a *administration) endAgent(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	return done{"ended"}, a.apart(ctx, func(ctx context.Context) error { return a.e.EndDelegation(ctx, c.Agent, args.Text("agent")) })
}

func (a *administration) stop(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	name, err := a.under(c, args.Text("agent"))
	if err == nil {
		err = a.justified(ctx, c, name, args.Reason)
	}
	if err != nil {
		return nil, err
	}
	err = a.apart(ctx, func(ctx context.Context) error { return a.e.Stop(ctx, name, args.Reason) })
	if writ.KindOf(err) == writ.NotFound { // it ended a moment ago, and the engine would suggest others
		err = noneBelow(name)
	}
	return done{"stopped"}, err
}

func (a *administration) revokeToken(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	name, err := a.under(c, args.Text("agent"))
	if err != nil {
		return nil, err
	}
	all, err := a.e.store.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	id := args.Text("token")
	good := slices.DeleteFunc(all, func(t store.Token) bool { return t.Agent != name || t.Revoked != "" || id != "" && t.ID != id })
	if len(good) == 0 {
		return nil, writ.Fail(writ.NotFound, fmt.Sprintf("agent %s has no such token that is good", name), nil)
	}
	if err := a.justified(ctx, c, name, args.Reason); err != nil {
		return nil, err
	}
	ids := make([]string, len(good))
	for i, t := range good {
		ids[i] = t.ID
	}
	return map[string]any{"revoked": ids}, a.apart(ctx, func(ctx context.Context) error {
		for _, id := range ids {
			if err := a.e.RevokeToken(ctx, id); err != nil {
				return err
			}
		}
		return nil
	})
}

func (a *administration) revokeGrant(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	id := args.Text("grant")
	all, err := a.e.store.Grants(ctx)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(g store.Grant) bool { return g.ID == id && a.e.Below(g.Agent, c.Agent) }) {
		return nil, writ.Fail(writ.NotFound, fmt.Sprintf("there is no standing approval %q of yours; writ_approvals_grants shows them", clip(id)), nil)
	}
	if err := a.justified(ctx, c, id, args.Reason); err != nil {
		return nil, err
	}
	return done{"revoked"}, a.e.desk.Revoke(ctx, id, c.Agent)
}

// cancel ends a call as the operator does, who takes no outcome: one that is there
// already waits on for whoever made the call.
func (a *administration) cancel(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	id := args.Text("id")
	if id == c.ID {
		return nil, writ.Fail(writ.Conflict, "this is the call you are making; it ends by itself", nil)
	}
	if _, err := a.invocation(ctx, c, id); err != nil {
		return nil, err
	}
	err := a.apart(ctx, func(ctx context.Context) error {
		_, err := a.e.CancelInvocation(ctx, "", id)
		return err
	})
	if err != nil {
		return nil, err
	}
	after, err := a.invocation(ctx, c, id)
	return invocationOf(after), err
}

func (a *administration) killSandbox(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	id := args.Text("id")
	if !slices.ContainsFunc(a.boxes(c), func(b box) bool { return b.ID == id }) {
		return nil, writ.Fail(writ.NotFound, fmt.Sprintf("there is no sandbox %q of yours any more; writ_sandbox_list shows those there are", clip(id)), nil)
	}
	if err := a.justified(ctx, c, id, args.Reason); err != nil {
		return nil, err
	}
	return done{"killed"}, a.apart(ctx, func(ctx context.Context) error { return a.e.KillSandbox(ctx, id) })
}
