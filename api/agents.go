package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
)

// agentViews lists the agents that the caller may see: itself and those below it.
// Where they are configured and which tokens they have is the operator's.
func (x *exchange) agentViews() ([]client.Agent, error) {
	all, err := x.engine.Agents(x.r.Context())
	if err != nil {
		return nil, err
	}
	var views []client.Agent
	for _, a := range all {
		v := agentView(a)
		if !x.operator {
			if !x.engine.Below(a.Name, x.who.Agent) {
				continue
			}
			v.Where, v.Tokens = "", nil
		}
		views = append(views, v)
	}
	return views, nil
}

func agentView(a engine.Agent) client.Agent {
	v := client.Agent{
		Name: a.Name, Parent: a.Parent, Where: a.Where, Person: a.Person, Role: a.Role, Level: a.Level, Autonomy: a.Autonomy,
		Workspace: a.Workspace, Project: a.Project, Constraints: a.Constraints, Tools: a.Tools, Unavailable: a.Unavailable, Stopped: a.Stopped,
	}
	for _, t := range a.Tokens {
		v.Tokens = append(v.Tokens, client.AgentToken(t))
	}
	return v
}

func listAgents(x *exchange) (any, error) {
	views, err := x.agentViews()
	if err != nil {
		return nil, err
	}
	return pageBy(x, "agents", views, func(a client.Agent) string { return a.Name })
}

func showAgent(x *exchange) (any, error) {
	views, err := x.agentViews()
	if err != nil {
		return nil, err
	}
	name := x.r.PathValue("name")
	i := slices.IndexFunc(views, func(a client.Agent) bool { return a.Name == name })
	if i < 0 {
		return nil, writ.Fail(writ.NotFound, fmt.Sprintf("there is no agent %s; 'writ agent list' shows them", quoted(name)), nil)
	}
	return views[i], nil
}

func showTree(x *exchange) (any, error) {
	nodes, err := x.engine.Tree(x.r.Context())
	return client.Tree{Agents: nodeViews(nodes)}, err
}

func nodeViews(nodes []engine.Node) []client.Node {
	var out []client.Node
	for _, n := range nodes {
		out = append(out, client.Node{Agent: agentView(n.Agent), Delegated: n.Delegated, Children: nodeViews(n.Children)})
	}
	return out
}

func delegate(x *exchange) (any, error) {
	in := body[client.DelegationRequest](x)
	asked, err := reachOf(in.Request)
	if err != nil {
		return nil, err
	}
	lasts := time.Duration(min(max(in.LastsSeconds, 0), 1<<30)) * time.Second // the engine has the bounds
	d, err := x.engine.Delegate(x.r.Context(), x.asCall(in.Session, in.Task), in.Name, lasts, asked)
	return client.Delegated(d), err
}

// reachOf reads the words of a request: the types behind it know theirs.
func reachOf(in client.Reach) (config.Request, error) {
	b, err := json.Marshal(in)
	if err != nil {
		return config.Request{}, err
	}
	var out config.Request
	err = json.Unmarshal(b, &out)
	var unknown *action.UnknownError
	if errors.As(err, &unknown) {
		return config.Request{}, writ.Fail(writ.Invalid, fmt.Sprintf("request: %s: %s is none of %s", unknown.What, quoted(unknown.Got), strings.Join(unknown.Known, ", ")), nil)
	}
	return out, err
}

func endDelegation(x *exchange) (any, error) {
	return client.Status{Status: "ended"}, x.engine.EndDelegation(x.r.Context(), x.who.Agent, x.r.PathValue("name"))
}

func newToken(x *exchange) (any, error) {
	agent := x.r.PathValue("name")
	token, id, err := x.engine.NewToken(x.r.Context(), agent, engine.Credentials(body[client.PersonRequest](x).By))
	return client.NewToken{ID: id, Agent: agent, Token: token}, err
}

func revokeToken(x *exchange) (any, error) {
	return client.Status{Status: "revoked"}, x.engine.RevokeToken(x.r.Context(), x.r.PathValue("id"))
}
