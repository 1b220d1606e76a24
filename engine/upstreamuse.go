package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox"
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
	return "no agent may use its tools: " + decide.Remedy(first, s.name, tools[0].Name)
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
		{"env", strings.Join(was.Env, " "), strings.Join(is.Env, " ")}, {"headers", strings.Join(was.Headers, " "), strings.Join(is.Headers, " ")},
	} {
		if c.Was != c.Is {
			out = append(out, c)
		}
	}
	if out == nil { // only in what is not shown
		out = []Change{{"values", "of the command, env, url or headers, which are hidden", "others"}}
	}
	return out
}

// outside are existing paths that a command names and its box does not reach, as far as
// that can be told. Of a script that an interpreter runs it is the directory: the rest of
// the program lies beside it.
func (s *server) outside() []string {
	if len(s.cfg.Command) == 0 || s.own {
		return nil
	}
	roots := slices.Concat(sandbox.Programs(), s.cfg.Read, s.cfg.Write)
	var out []string
	for i, arg := range s.cfg.Command[1:] {
		if _, v, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = v
		}
		real, err := filepath.EvalSymlinks(arg)
		if err != nil || !filepath.IsAbs(arg) || slices.ContainsFunc(roots, func(root string) bool { return policy.Below(real, root) }) {
			continue
		}
		info, err := os.Stat(real)
		if err == nil && i == 0 && info.Mode().IsRegular() && interprets(s.cfg.Command[0]) {
			arg = filepath.Dir(real)
			if above, _, ok := strings.Cut(real, "/node_modules/"); ok { // with what it depends on
				arg = above + "/node_modules"
			}
		}
		if !slices.Contains(out, arg) {
			out = append(out, arg)
		}
	}
	return out
}

// interprets reports whether a program is one that runs a script.
func interprets(program string) bool {
	base := strings.TrimRight(filepath.Base(program), "0123456789.")
	return slices.Contains([]string{"node", "python", "deno", "bun", "ruby", "perl", "sh", "bash", "php"}, base)
}
