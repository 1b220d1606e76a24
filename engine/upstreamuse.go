package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/upstream"
)

// unused is what lets an agent use a server's tools, where there are some and no agent of
// the configuration may use any.
func (r *rules) unused(s *server, tools []UpstreamTool) string {
	var first string
	for _, a := range r.cfg.Agents {
		for _, t := range tools {
			if a.Permit(t.Name, r.defined[t.Name].Category).Effect != writ.Deny {
				return ""
			}
		}
		first = cmp.Or(first, a.Name)
	}
	if len(tools) == 0 || first == "" {
		return ""
	}
	var names []string
	for _, t := range tools {
		names = append(names, t.Name)
	}
	return "no agent may use its tools: " + decide.Remedy(first, s.name, names...)
}

// asks is why calls of a tool ask a person, each reason with the agents that it holds for:
// those that may use it once it is accepted, or all where none may.
func (r *rules) asks(t *tool.Tool) []string {
	var reasons []string
	agents, allowed := map[string][]string{}, false
	for _, a := range r.cfg.Agents {
		permitted := a.Permit(t.Name, t.Category).Effect != writ.Deny
		if permitted && !allowed {
			reasons, agents, allowed = nil, map[string][]string{}, true
		}
		d, err := r.decider.Decide(context.Background(), writ.Call{Agent: a.Name, Tool: t.Name, Definition: t.Digest, Action: string(t.Action)})
		if err != nil || allowed && !permitted {
			continue
		}
		for _, why := range d.Reasons {
			if why.Effect != writ.Ask {
				continue
			}
			if agents[why.Text] = append(agents[why.Text], a.Name); len(agents[why.Text]) == 1 {
				reasons = append(reasons, why.Text)
			}
		}
	}
	for i, text := range reasons {
		reasons[i] = strings.Join(agents[text], ", ") + ": " + text
	}
	return reasons
}

// madeOf is the server's tool that an accepted definition is of; zero where it is of none.
func madeOf(d store.Definition) upstream.RunnerSpec {
	var body struct {
		Runner struct {
			Kind tool.RunnerKind     `json:"kind"`
			Spec upstream.RunnerSpec `json:"spec"`
		} `json:"runner"`
	}
	if json.Unmarshal([]byte(d.Body), &body) != nil || body.Runner.Kind != tool.MCP {
		return upstream.RunnerSpec{}
	}
	return body.Runner.Spec
}

// moved is what differs between a server and what it was when a person accepted a tool of
// it.
func (r *rules) moved(s *server, name string) []Change {
	was, is := madeOf(r.accepted[name]).At, s.at()
	if was.IsZero() || was.Digest == is.Digest {
		return nil
	}
	var out []Change
	for _, c := range []Change{
		{"program", strings.Join(was.Command, " "), strings.Join(is.Command, " ")}, {"starts in", was.Dir, is.Dir}, {"url", was.URL, is.URL},
		{"reads", strings.Join(was.Read, ", "), strings.Join(is.Read, ", ")}, {"writes", strings.Join(was.Write, ", "), strings.Join(is.Write, ", ")}, {"reaches", strings.Join(was.Hosts, ", "), strings.Join(is.Hosts, ", ")},
		{"proof", was.Auth, is.Auth},
	} {
		if c.Was != c.Is {
			out = append(out, c)
		}
	}
	for what, sides := range map[string][2]map[string]string{"env ": {was.Env, is.Env}, "header ": {was.Headers, is.Headers}, "secret_env ": {was.SecretEnv, is.SecretEnv}} {
		out = append(out, differ(what, sides[0], sides[1])...)
	}
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.Key, b.Key) })
	if out == nil && is.URL != "" {
		out = []Change{{"url", "with a user or a query that is hidden", "with another one"}}
	}
	if out == nil {
		out = []Change{{"program", "with an argument or a value that is hidden", "with another one"}}
	}
	return out
}

// differ names the values that are not what they were. Hidden ones stay so.
func differ(what string, was, is map[string]string) []Change {
	var out []Change
	for _, name := range slices.Sorted(maps.Keys(is)) {
		before, there := was[name]
		switch now := is[name]; {
		case before == now:
		case strings.HasPrefix(now, config.Hidden) && strings.HasPrefix(before, config.Hidden):
			out = append(out, Change{what + name, "a value that is hidden", "another one"})
		case there:
			out = append(out, Change{what + name, bare(before), bare(now)})
		default:
			out = append(out, Change{what + name, "", bare(now)})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if _, there := is[name]; !there {
			out = append(out, Change{what + name, bare(was[name]), ""})
		}
	}
	return out
}

// bare is a value as it is shown, without its mark.
func bare(v string) string {
	if strings.HasPrefix(v, config.Hidden) {
		return config.Hidden
	}
	return v
}

// outside is Outside of a server that runs; of an embedding program's nothing is known.
func (s *server) outside() []string {
	if s.own {
		return nil
	}
	return catalog.Outside(s.cfg)
}
