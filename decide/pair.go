package decide

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// variants works out one chain of agents using one tool, for each action type.
func (in *Input) variants(c chain, t *tool.Tool, s Standing, counted bool) *variants {
	v := &variants{definition: t.Digest, byAction: map[string]*pair{}}
	for _, act := range t.Actions() {
		v.byAction[string(act)] = in.linked(c, t, act, s, counted)
	}
	if len(v.byAction) == 1 {
		v.only = v.byAction[string(t.Action)]
	}
	return v
}

// pair collects every reason that does not depend on a call's arguments, for one
// agent without its ancestors.
func (in *Input) pair(a *access.Agent, t *tool.Tool, act action.Type, s Standing) *pair {
	p := &pair{effect: writ.Allow, class: s.Class, action: string(act), links: []link{{agent: a, tool: t, own: ownWorkspace(a)}}}
	p.risk = max(risk(t.Policy.Risk), risk(in.Types.Risk(act))).String()
	p.say(permit(a, t))
	p.say(terminalReason(a, t), gitReason(a, act))
	p.say(approvalReasons(a, act)...)
	p.say(in.autonomyReason(a, act))
	p.confine = in.confinement(a, t)
	p.links[0].outside = in.Backends.Outside[p.confine.Backend]
	p.links[0].unwritten = in.Backends.unwritten(t, p.confine.Backend)
	p.say(p.links[0].unwritten)
	for _, root := range p.confine.Write {
		if !policy.Below(root, p.links[0].own) && !s.waived {
			p.class = writ.ClassWrite // it declares that it writes there
		}
	}
	if t.Brokered && !act.Reads() {
		p.class = writ.ClassWrite // the method says so, whatever is said of the host
	}
	p.reasons = slices.Clip(p.reasons)
	return p
}

// permit is whether an agent may use a tool at all. One that has to be named is opened
// by no level, nor by a role as the product ships it: those are everybody's.
func permit(a *access.Agent, t *tool.Tool) writ.Reason {
	r := a.Permit(t.Name, t.Category)
	if r.Effect == writ.Deny && r.Source == "role" && t.Category == action.ExternalData && t.Server == nil && a.Parent == "" {
		r.Text += "; " + Remedy(a.Name, "", t.Name) // whoever set up a connection means it to be used
	}
	if r.Effect == writ.Deny && (r.Source == "role" || r.Source == "level") && t.Server != nil && a.Parent == "" {
		r.Text += "; " + Remedy(a.Name, t.Server.Name, t.Name)
	}
	if !t.Named || r.Effect != writ.Allow || r.Source != "level" && r.Where != access.BuiltIn {
		return r
	}
	r.Effect = writ.Deny
	r.Text = fmt.Sprintf("tool %s has to be named in the allowed list of agent %s, or in a role of the configuration", t.Name, a.Name)
	return r
}

// Remedy is what an operator does so that an agent may use tools: all those of a server
// by its name, or one that is no server's, or does not have it in its own.
func Remedy(agent, server string, tools ...string) string {
	var entries []string
	for _, t := range tools {
		if server != "" && strings.HasPrefix(t, server+"__") {
			t = "@" + server
		}
		if entry := strconv.Quote(t); !slices.Contains(entries, entry) {
			entries = append(entries, entry)
		}
	}
	return fmt.Sprintf("an operator adds allowed: [%s] to agents.%s, then: writ config reload", strings.Join(entries, ", "), agent)
}

func (p *pair) say(reasons ...writ.Reason) {
	for _, r := range reasons {
		if r.Source == "" {
			continue
		}
		p.effect = min(p.effect, r.Effect)
		p.reasons = append(p.reasons, r)
	}
}

// risk makes Unknown count as High without changing its name elsewhere.
func risk(r action.Risk) action.Risk {
	if r == action.Unknown {
		return action.High
	}
	return r
}

func (in *Input) ruleReasons(t *tool.Tool) []writ.Reason {
	var out []writ.Reason
	rule := in.Rules[t.Name]
	if rule.Disabled.V {
		out = append(out, writ.Reason{Effect: writ.Deny, Source: "tools", Where: rule.Disabled.At, Text: fmt.Sprintf("tool %s is disabled", t.Name)})
	}
	if why, held := in.Held[t.Name]; held {
		out = append(out, writ.Reason{Effect: writ.Deny, Source: "suspended", Where: access.BuiltIn, Text: why})
	}
	if rule.RequiresApproval.V {
		out = append(out, writ.Reason{Effect: writ.Ask, Source: "tools", Where: rule.RequiresApproval.At, Text: fmt.Sprintf("tool %s asks a person each time", t.Name)})
	}
	if t.Constraints.RequiresApproval {
		out = append(out, writ.Reason{Effect: writ.Ask, Source: "constraints", Where: "its definition", Text: fmt.Sprintf("tool %s asks a person each time", t.Name)})
	}
	return out
}

// forbidden is why a model may not use the tool, where it may not.
func (in *Input) forbidden(t *tool.Tool) writ.Reason {
	r := writ.Reason{Effect: writ.Deny, Source: "constraints", Where: "its definition", Text: fmt.Sprintf("tool %s is for code alone, never for a model (forbidden)", t.Name)}
	rule := in.Rules[t.Name]
	if rule.Forbidden.V {
		r.Where = rule.Forbidden.At
	} else if !t.Constraints.Forbidden {
		return writ.Reason{}
	}
	return r
}

// counted names the tools whose calls are remembered: those that are bounded, and
// those that others have to come after.
func (in *Input) counted() map[string]bool {
	out := map[string]bool{}
	for _, t := range in.Tools {
		quotas, after := in.bounds(t)
		if len(quotas)+len(after) > 0 {
			out[t.Name] = true
		}
		for _, name := range after {
			out[name] = true
		}
	}
	return out
}

// bounds are the tool's own constraints and the operator's, which only add to them.
func (in *Input) bounds(t *tool.Tool) (quotas []writ.Quota, after []string) {
	rule := in.Rules[t.Name]
	return slices.Concat(t.Constraints.Quotas, rule.Quotas), slices.Concat(t.Constraints.OnlyAfter, rule.OnlyAfter)
}

func terminalReason(a *access.Agent, t *tool.Tool) writ.Reason {
	c := a.Constraints.Terminal
	if t.Category != action.Terminal {
		return writ.Reason{}
	}
	if c.V == access.NoTerminal {
		return writ.Reason{Effect: writ.Deny, Source: "terminal", Where: c.At, Text: fmt.Sprintf("agent %s has terminal: none", a.Name)}
	}
	return writ.Reason{Effect: writ.Allow, Source: "terminal", Where: c.At, Text: "terminal: " + c.V.String()}
}

func gitReason(a *access.Agent, act action.Type) writ.Reason {
	c := a.Constraints.Git
	outward := act == "vcs:push" || c.V == access.GitLocalOnly && act == "vcs:clone"
	if !outward || c.V == access.GitFull {
		return writ.Reason{}
	}
	return writ.Reason{Effect: writ.Deny, Source: "git", Where: c.At, Text: fmt.Sprintf("git: %s does not take %s", c.V, act)}
}

func approvalReasons(a *access.Agent, act action.Type) []writ.Reason {
	var out []writ.Reason
	c := a.Constraints.RequiresApproval
	for _, p := range c.V {
		if p.Match(act) {
			out = append(out, writ.Reason{Effect: writ.Ask, Source: "requires_approval", Where: c.At,
				Text: fmt.Sprintf("action %s asks a person (%s)", act, p.Text)})
		}
	}
	return out
}

func (in *Input) autonomyReason(a *access.Agent, act action.Type) writ.Reason {
	preset := in.Presets[a.Autonomy.V]
	v := preset.V.Of(act)
	r := writ.Reason{Effect: writ.Ask, Source: "autonomy", Where: preset.At}
	switch {
	case v.Named && v.Human:
		r.Text = fmt.Sprintf("autonomy %s asks a person for %s", a.Autonomy.V, v.By.Text)
	case v.Named:
		r.Effect, r.Text = writ.Allow, fmt.Sprintf("autonomy %s runs %s by itself", a.Autonomy.V, v.By.Text)
	default:
		r.Text = fmt.Sprintf("autonomy %s names no rule for %s, so a person is asked", a.Autonomy.V, act)
	}
	if r.Where == access.BuiltIn && a.Autonomy.At != access.BuiltIn {
		r.Where = a.Autonomy.At
	}
	return r
}

// ownWorkspace is what counts as inside: the directory that the agent's file
// scope is about, and for full the project, since writing elsewhere is outside.
func ownWorkspace(a *access.Agent) string {
	if a.Constraints.FileSystem.V == access.WorkspaceOnly {
		return a.Workspace.Path
	}
	return a.Workspace.Project
}

// scopeRoots is what the file scope opens.
func scopeRoots(a *access.Agent) []string {
	if a.Constraints.FileSystem.V == access.FullFileSystem {
		return fullScope
	}
	return []string{ownWorkspace(a)}
}

var fullScope = []string{"/"}

// confinement is all that a call of this pair may reach before its arguments ask
// for more: what the file scope opens and the tool declares. A wide declaration
// writes in the agent's own workspace only, whatever the scope; a place elsewhere
// has to be declared or asked for by name, which raises the class.
func (in *Input) confinement(a *access.Agent, t *tool.Tool) writ.Confinement {
	c := writ.Confinement{Hide: in.Hide, Isolation: writ.Process, Server: in.Backends.served(t.Server)}
	if read := t.Policy.Files.Read; read.Stance > policy.None {
		c.Read = meet(scopeRoots(a), read.Roots())
	}
	if write := t.Policy.Files.Write; write.Stance > policy.None {
		own := ownWorkspace(a)
		for _, root := range meet(scopeRoots(a), write.Roots()) {
			if policy.Below(own, root) {
				root = own
			}
			c.Write = append(c.Write, root)
		}
		for _, root := range write.Roots() {
			if policy.Names([]string{root}, root) {
				c.Named = append(c.Named, root)
			}
		}
	}
	if t.Runs != tool.InBox {
		return c
	}
	c.Backend = in.Backends.For(t.Category)
	if in.Backends.ReadOnly[c.Backend].V { // what is decided is what the driver does
		c.Read, c.Write, c.Named = union(c.Read, c.Write), nil, nil
	}
	limits := in.Limits
	limits.Wall = cmp.Or(in.Backends.Wall[c.Backend], limits.Wall)
	c.Limits = tighter(limits, t.Limits)
	if t.Category == action.CodeExecution && a.Constraints.CodeExecution.V == access.CodeContainerized {
		c.Isolation = writ.Containerized
	}
	if t.Policy.Env.Stance == policy.Listed {
		c.Env = t.Policy.Env.Vars
	}
	switch {
	case t.Policy.Exec != policy.All:
	case len(t.Programs) > 0:
		c.Exec = writ.Exec{Mode: writ.ExecListed, Files: in.Programs[t.Name]}
	case a.Constraints.Terminal.V == access.FullTerminal:
		c.Exec.Mode = writ.ExecAny
	case a.Constraints.Terminal.V == access.RestrictedCommands:
		c.Exec = writ.Exec{Mode: writ.ExecListed, Files: in.Commands.V}
	}
	return c
}

func allowlisted(ps host.Patterns, normal string) bool {
	e, err := host.ParseEndpoint(normal)
	return err == nil && ps.Match(e)
}
