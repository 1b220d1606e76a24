package decide_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/tool"
)

// ofServer is a tool that a server does the work of.
func ofServer(t *testing.T, name string, s *writ.Server) *tool.Tool {
	t.Helper()
	made, err := tool.New(tool.Definition{
		Name: name, Category: action.MCP, Action: action.MCP.Default(), Schema: json.RawMessage(`{"type":"object"}`), Runner: tool.Runner{Kind: tool.MCP}, Server: s,
	}, func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// What a server reaches is part of what its calls reach, of a child's too, and of what a
// person agrees to.
func TestServerReach(t *testing.T) {
	decided := func(s *writ.Server, agent string) writ.Decision {
		in := input(t, func(in *decide.Input, a *access.Agent) {
			in.Tools = []*tool.Tool{ofServer(t, "srv__put", s)}
			a.Level = set(access.Elevated)
		})
		child := in.Agents[0]
		child.Name, child.Parent = "child", "coder"
		in.Agents = append(in.Agents, child)
		c := call(in, "srv__put")
		c.Agent = agent
		d, err := decide.New(in).Decide(t.Context(), c)
		if err != nil || d.Effect != writ.Ask {
			t.Fatalf("%+v, %v", d, err)
		}
		return d
	}
	one, other := &writ.Server{Name: "srv", Box: true, Write: []string{"/data"}}, &writ.Server{Name: "srv", Box: true, Write: []string{"/"}}
	for _, agent := range []string{"coder", "child"} {
		d := decided(one, agent)
		if d.Confine.Server != one {
			t.Errorf("%s: it reaches %+v", agent, d.Confine.Server)
		}
		if d.Subject == decided(other, agent).Subject || d.Base == decided(other, agent).Base {
			t.Errorf("%s: an approval holds for another reach", agent)
		}
		if d.Subject != decided(one, agent).Subject {
			t.Errorf("%s: an approval does not hold for the same", agent)
		}
	}
}

// A denial of a server's tool ends with what an operator does about it, where that would
// help.
func TestServerRemedy(t *testing.T) {
	role := &access.Role{Name: "developer", At: "built in", Allowed: access.List{}}
	for what, c := range map[string]struct {
		tool   string
		change func(*access.Agent)
		want   string
	}{
		"a role":                                {"srv__put", func(a *access.Agent) { a.Role = role }, `role developer does not include tool srv__put; an operator adds allowed: ["@srv"] to agents.coder, then: writ config reload`},
		"a level":                               {"srv__put", func(a *access.Agent) {}, `level standard does not open category mcp to agent coder; an operator adds allowed: ["@srv"] to agents.coder, then: writ config reload`},
		"its own name":                          {"put", func(a *access.Agent) { a.Role = role }, `role developer does not include tool put; an operator adds allowed: ["put"] to agents.coder, then: writ config reload`},
		"a child, which is in no configuration": {"srv__put", func(a *access.Agent) { a.Role, a.Parent = role, "gone" }, `role developer does not include tool srv__put`},
		"a denied list, which is what was meant": {"srv__put", func(a *access.Agent) {
			e, err := access.ParseEntry("@srv")
			if err != nil {
				t.Fatal(err)
			}
			a.Denied = access.List{set(e)}
		}, `tool srv__put is denied to agent coder by "@srv"`},
	} {
		in := input(t, func(in *decide.Input, a *access.Agent) {
			in.Tools = []*tool.Tool{ofServer(t, c.tool, &writ.Server{Name: "srv"})}
			c.change(a)
		})
		d, err := decide.New(in).Decide(t.Context(), call(in, c.tool))
		if err != nil || d.Effect != writ.Deny {
			t.Fatalf("%s: %+v, %v", what, d, err)
		}
		if got := d.Reasons[0].Text; got != c.want {
			t.Errorf("%s: %s\nwant %s", what, got, c.want)
		}
	}
	in := input(t, func(in *decide.Input, a *access.Agent) { a.Role = role })
	d, err := decide.New(in).Decide(t.Context(), call(in, "stat"))
	if err != nil || strings.Contains(d.Reasons[0].Text, "operator") {
		t.Errorf("a tool of no server: %+v, %v", d.Reasons, err)
	}
}
