package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool"
)

// Agent is an agent as it is shown: where it works, what it may use and reach.
type Agent struct {
	Name        string            `json:"name"`
	Parent      string            `json:"parent,omitempty"`
	Where       string            `json:"where"`
	Person      string            `json:"acts_for,omitempty"`
	Role        string            `json:"role,omitempty"`
	Level       string            `json:"level"`
	Autonomy    string            `json:"autonomy"`
	Workspace   string            `json:"workspace"`
	Project     string            `json:"project"`
	Constraints map[string]string `json:"constraints"`
	Tools       []string          `json:"tools"`
	Unavailable []string          `json:"unavailable,omitempty"` // those of them that no sandbox of this machine can run
	Stopped     bool              `json:"stopped"`
	Tokens      []AgentToken      `json:"tokens"`
}

// AgentToken is a token without what it is.
type AgentToken struct {
	ID      string `json:"id"`
	Created string `json:"created_at"`
	Revoked string `json:"revoked_at,omitempty"`
}

// Agents shows every configured agent.
func (e *Engine) Agents(ctx context.Context) ([]Agent, error) {
	tokens, err := e.store.Tokens(ctx)
	if err != nil {
		return nil, err
	}
	r := e.at()
	out := make([]Agent, 0, len(r.agents))
	for _, name := range sortedNames(r.agents) {
		v := e.showAgent(r, r.agents[name], tokens)
		for _, t := range v.Tools {
			if e.Unavailable(ctx, name, t) != nil {
				v.Unavailable = append(v.Unavailable, t)
			}
		}
		out = append(out, v)
	}
	return out, nil
}

func (e *Engine) showAgent(r *rules, a *access.Agent, tokens []store.Token) Agent {
	c := r.reach(a)
	v := Agent{
		Name: a.Name, Parent: a.Parent, Where: a.At, Person: a.Person, Level: a.Level.V.String(), Autonomy: a.Autonomy.V.String(),
		Workspace: a.Workspace.Path, Project: a.Workspace.Project, Tools: r.visibleNames(a.Name), Stopped: e.stops.is(r.chain(a.Name)) != "",
		Constraints: map[string]string{
			"file_system": c.FileSystem.V.String(), "network": c.Network.V.String(), "git": c.Git.V.String(),
			"code_execution": c.CodeExecution.V.String(), "terminal": c.Terminal.V.String(), "requires_approval": patternTexts(&c),
		},
	}
	if a.Role != nil {
		v.Role = a.Role.Name
	}
	for _, t := range tokens {
		if t.Agent == a.Name {
			v.Tokens = append(v.Tokens, AgentToken{t.ID, t.Created, t.Revoked})
		}
	}
	return v
}

// reach is an agent's six sub-constraints within those of its ancestors.
func (r *rules) reach(a *access.Agent) access.Constraints {
	c := a.Constraints
	for _, name := range r.chain(a.Name)[1:] {
		c = c.Within(r.agents[name].Constraints)
	}
	return c
}

func sortedNames[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

func patternTexts(c *access.Constraints) string {
	var texts []string
	for _, p := range c.RequiresApproval.V {
		texts = append(texts, p.Text)
	}
	return fmt.Sprint(texts)
}

func (e *Engine) noAgent(name string) error {
	return writ.Fail(writ.NotFound, fmt.Sprintf("there is no agent %q%s; agents are in the configuration", clip(name), spell.Hint(name, sortedNames(e.at().agents))), nil)
}

// Tools lists definitions: those that an agent may use, or all when agent is empty.
func (e *Engine) Tools(agent string) []*tool.Tool {
	r := e.at()
	return slices.DeleteFunc(slices.Clone(r.catalog.All()), func(t *tool.Tool) bool {
		return agent != "" && !r.decider.Visible(agent, t.Name)
	})
}

// Tool finds one of those.
func (e *Engine) Tool(agent, name string) (*tool.Tool, error) {
	r := e.at()
	if t, ok := r.catalog.Lookup(name); ok && (agent == "" || r.decider.Visible(agent, name)) {
		return t, nil
	}
	var names []string
	for _, t := range e.Tools(agent) {
		names = append(names, t.Name)
	}
	return nil, tool.Missing(name, names)
}

// DriverReport is what a driver's probe saw.
type DriverReport struct {
	Driver   string           `json:"driver"`
	Findings sandbox.Features `json:"findings"`
	Error    string           `json:"error,omitempty"`
	Chosen   []string         `json:"chosen,omitempty"` // the keys of the configuration that name it
}

// Drivers probes every driver.
func (e *Engine) Drivers(ctx context.Context) []DriverReport {
	out, s := Reports(ctx, e.drivers), e.at().cfg.File.Sandboxing
	for i := range out {
		if string(s.DefaultBackend) == out[i].Driver {
			out[i].Chosen = append(out[i].Chosen, "sandboxing.default_backend")
		}
		for _, c := range slices.Sorted(maps.Keys(s.Overrides)) {
			if string(s.Overrides[c]) == out[i].Driver {
				out[i].Chosen = append(out[i].Chosen, "sandboxing.overrides."+string(c))
			}
		}
	}
	return out
}

// Reports probes drivers.
func Reports(ctx context.Context, drivers sandbox.Set) []DriverReport {
	var out []DriverReport
	for _, d := range drivers {
		r := DriverReport{Driver: d.Name()}
		var err error
		if r.Findings, err = sandbox.Examine(ctx, d); err != nil {
			r.Error = err.Error()
		}
		out = append(out, r)
	}
	return out
}
