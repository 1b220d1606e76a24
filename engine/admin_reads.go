package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/admin"
	"github.com/writ-run/writ/upstream"
)

// reads are the operations that change nothing.
func (a *administration) reads() map[string]admin.Handler {
	return map[string]admin.Handler{
		"writ_agents_list":      a.listAgents,
		"writ_agents_show":      a.showAgent,
		"writ_agents_sessions":  a.listSessions,
		"writ_agents_tasks":     a.listTasks,
		"writ_agents_stops":     a.listStops,
		"writ_approvals_list":   a.listApprovals,
		"writ_approvals_show":   a.showApproval,
		"writ_approvals_grants": a.listGrants,
		"writ_audit_list":       a.listEntries,
		"writ_audit_verify":     a.verify,
		"writ_config_show":      a.showConfig,
		"writ_config_check":     a.checkConfig,
		"writ_connections_list": a.listConnections,
		"writ_egress_list":      a.listEgress,
		"writ_health_show":      a.health,
		"writ_invocations_list": a.listInvocations,
		"writ_invocations_show": a.showInvocation,
		"writ_policy_explain":   a.explain,
		"writ_sandbox_list":     a.listSandboxes,
		"writ_sandbox_show":     a.showSandbox,
		"writ_sandbox_doctor":   a.doctor,
		"writ_tools_list":       a.listTools,
		"writ_tools_show":       a.showTool,
		"writ_upstreams_list":   a.listUpstreams,
		"writ_upstreams_show":   a.showUpstream,
	}
}

// agentsOf are the caller and the agents below it. Where they are configured and which
// tokens they have is the operator's.
func (a *administration) agentsOf(ctx context.Context, c writ.Call) ([]agentOf, error) {
	all, err := a.e.Agents(ctx)
	var out []agentOf
	for _, v := range all {
		if a.e.Below(v.Name, c.Agent) {
			out = append(out, agentOf{v.Name, v.Parent, v.Person, v.Role, v.Level, v.Autonomy, v.Workspace, v.Project, v.Constraints, v.Tools, v.Unavailable, v.Stopped})
		}
	}
	return out, err
}

func (a *administration) listAgents(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	all, err := a.agentsOf(ctx, c)
	return admin.Page(all, args), err
}

func (a *administration) showAgent(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	all, err := a.agentsOf(ctx, c)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		if v.Name == args.Text("agent") {
			return v, nil
		}
	}
	return nil, noneBelow(args.Text("agent"))
}

func (a *administration) listStops(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	all, err := a.e.store.Stops(ctx)
	var out []stopOf
	for _, s := range all {
		if a.e.Below(s.Agent, c.Agent) {
			out = append(out, stopOf{s.Agent, s.At})
		}
	}
	return admin.Page(out, args), err
}

// verify takes time in proportion to the ledger, so one is made at a time.
func (a *administration) verify(ctx context.Context, _ writ.Call, _ admin.Args) (any, error) {
	if !a.verifying.TryLock() {
		return nil, writ.Fail(writ.Conflict, "the ledger is being verified; ask again in a moment", nil)
	}
	defer a.verifying.Unlock()
	r, err := a.e.ledger.Verify(ctx, a.e.Config().Witness, "")
	if err != nil {
		return nil, err
	}
	return map[string]any{"holds": r.OK(), "entries": r.Entries, "signed_through": r.Signed, "problems": len(r.Problems)}, nil
}

// mine is whether a value in force bears on an agent or on those below it.
func (a *administration) mine(c writ.Call, key string) bool {
	domain, rest, _ := strings.Cut(key, ".")
	switch domain {
	case "version", "actions", "approvals", "autonomy", "sandboxing", "tool_access", "tool_disclosure":
		return true
	case "tools":
		name, _ := member(rest)
		return a.e.at().decider.Visible(c.Agent, name)
	case "agents":
		name, of := member(rest)
		// How an agent proves who it is, and where its profile lies, is the operator's.
		return a.e.Below(name, c.Agent) && !slices.Contains([]string{"certificates", "users", "profile"}, of)
	case "roles":
		name, _ := member(rest)
		for _, of := range a.e.at().agents {
			if of.Role != nil && of.Role.Name == name && a.e.Below(of.Name, c.Agent) {
				return true
			}
		}
	}
	return false
}

// member splits what comes after a dot into a name, which is quoted where it has to
// be, and the next one.
func member(rest string) (name, next string) {
	if quoted, err := strconv.QuotedPrefix(rest); err == nil {
		name, _ = strconv.Unquote(quoted) // it is one
		rest = strings.TrimPrefix(rest[len(quoted):], ".")
	} else {
		name, rest, _ = strings.Cut(rest, ".")
	}
	next, _, _ = strings.Cut(rest, ".")
	return name, next
}

func (a *administration) showConfig(_ context.Context, c writ.Call, args admin.Args) (any, error) {
	type value struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	var out []value
	for _, v := range a.e.Config().Effective() {
		if strings.HasPrefix(v.Key, args.Text("prefix")) && a.mine(c, v.Key) {
			out = append(out, value{v.Key, v.Value})
		}
	}
	return admin.Page(out, args), nil
}

// checkConfig says nothing of what is wrong: an error quotes the operator's files.
func (a *administration) checkConfig(context.Context, writ.Call, admin.Args) (any, error) {
	a.e.changing.Lock()
	now, added := a.e.Config(), a.e.registered
	a.e.changing.Unlock()
	disk, _, err := catalog.Load(now.Path, added)
	return map[string]any{"holds": err == nil, "in_force": err == nil && disk.Digest == now.Digest, "policy": now.Digest.String()}, nil
}

func (a *administration) health(_ context.Context, c writ.Call, _ admin.Args) (any, error) {
	return map[string]any{"status": "ok", "version": writ.Version(), "policy": a.e.Config().Digest.String(), "agent": c.Agent, "acts_for": c.Person}, nil
}

// explain decides a call as if it were made now. Where in the configuration a reason
// stands, and what is hidden, is the operator's.
func (a *administration) explain(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	name, err := a.one(c, args.Text("agent"))
	if err != nil {
		return nil, err
	}
	call := Call{Agent: name, Tool: args.Text("tool"), Args: args.Object("arguments")}
	if name == c.Agent {
		call.Session, call.Task = c.Session, c.Task
	}
	d, err := a.e.Explain(ctx, call)
	if err != nil {
		return nil, err
	}
	var why []reasonOf
	for _, r := range d.Reasons {
		why = append(why, reasonOf{r.Effect.String(), r.Source, r.Text})
	}
	d.Confine.Hide = nil
	return map[string]any{"agent": name, "tool": call.Tool, "effect": d.Effect.String(), "action": d.Action, "risk": d.Risk, "class": d.Class.String(), "reasons": why, "confinement": d.Confine}, nil
}

func (a *administration) doctor(ctx context.Context, _ writ.Call, _ admin.Args) (any, error) {
	type driver struct {
		Driver   string          `json:"driver"`
		Works    bool            `json:"works"`
		Enforces map[string]bool `json:"enforces"`
	}
	var out []driver
	for _, r := range a.e.Drivers(ctx) {
		d := driver{r.Driver, r.Error == "", map[string]bool{}}
		for _, f := range r.Findings {
			d.Enforces[string(f.Feature)] = f.Enforced
		}
		out = append(out, d)
	}
	return out, nil
}

func (a *administration) listTools(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	var out []toolOf
	for _, t := range a.e.Tools(c.Agent) {
		out = append(out, toolOf{t.Name, t.Title, string(t.Category), string(t.Action), t.Class.String(), t.Tier, t.Digest.String(), a.unavailable(ctx, c, t.Name)})
	}
	return admin.Page(out, args), nil
}

func (a *administration) unavailable(ctx context.Context, c writ.Call, name string) string {
	err := a.e.Unavailable(ctx, c.Agent, name)
	if err == nil {
		return ""
	}
	_, why := writ.Public(err)
	return why
}

func (a *administration) showTool(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	t, err := a.e.Tool(c.Agent, args.Text("tool"))
	if err != nil {
		return nil, err
	}
	shown, err := ForAgents(t)
	if err != nil {
		return nil, err
	}
	return map[string]any{"definition": shown, "digest": t.Digest.String(), "unavailable": a.unavailable(ctx, c, t.Name)}, nil
}

// ForAgents is a tool's definition without which program or address its server is, and
// what that is given: those are the operator's to see.
func ForAgents(t *tool.Tool) (json.RawMessage, error) {
	if t.Runner.Kind != tool.MCP {
		return json.RawMessage(t.Canonical()), nil
	}
	var d map[string]json.RawMessage
	if err := json.Unmarshal([]byte(t.Canonical()), &d); err != nil {
		return nil, err
	}
	var runner struct {
		Kind tool.RunnerKind     `json:"kind"`
		Spec upstream.RunnerSpec `json:"spec"`
	}
	if err := json.Unmarshal(d["runner"], &runner); err != nil {
		return nil, err
	}
	runner.Spec.At = upstream.Place{}
	var err error
	if d["runner"], err = json.Marshal(runner); err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// invocation finds a call that is the caller's, or of an agent below it.
func (a *administration) invocation(ctx context.Context, c writ.Call, id string) (store.Invocation, error) {
	i, ok, err := a.e.store.Standing(ctx, id)
	if err == nil && (!ok || !a.e.Below(i.Agent, c.Agent)) {
		err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no call %q of yours; writ_invocations_list shows them", clip(id)), nil)
	}
	return approval.AsOf(i, a.e.ledger.Now()), err
}

func (a *administration) showInvocation(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	i, err := a.invocation(ctx, c, args.Text("id"))
	if err != nil {
		return nil, err
	}
	v := invocationOf(i)
	if r, ok, err := a.e.store.Resolution(ctx, i.ID); err != nil {
		return nil, err
	} else if ok {
		v.Resolved = r.Happened
	}
	return v, nil
}

func (a *administration) showApproval(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	i, err := a.invocation(ctx, c, args.Text("id"))
	if err == nil && i.Asked == "" {
		err = writ.Fail(writ.NotFound, fmt.Sprintf("nobody was asked about call %q; writ_approvals_list shows requests", clip(i.ID)), nil)
	}
	if err != nil {
		return nil, err
	}
	v := a.approvalOf(i)
	votes, err := a.e.store.Votes(ctx, i.ID)
	for _, vote := range votes {
		v.Votes = append(v.Votes, voteOf{vote.Person, vote.Decision, vote.At})
	}
	return v, err
}
