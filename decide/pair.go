package decide

import (
	"fmt"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// pair collects every reason that does not depend on a call's arguments.
func (in *Input) pair(a *access.Agent, t *tool.Tool) *pair {
	p := &pair{
		agent: a, tool: t, definition: t.Digest, effect: writ.Allow, class: t.Class,
		action: string(t.Action), own: ownWorkspace(a),
	}
	p.risk = max(risk(t.Policy.Risk), risk(in.Types.Risk(t.Action))).String()
	p.say(a.Permit(t.Name, t.Category))
	p.say(in.ruleReasons(t)...)
	p.say(terminalReason(a, t), gitReason(a, t))
	p.say(in.approvalReasons(a, t)...)
	p.say(in.autonomyReason(a, t))
	p.confine = in.confinement(a, t)
	p.reasons = slices.Clip(p.reasons)
	return p
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
	if rule.RequiresApproval.V {
		out = append(out, writ.Reason{Effect: writ.Ask, Source: "tools", Where: rule.RequiresApproval.At, Text: fmt.Sprintf("tool %s asks a person each time", t.Name)})
	}
	return out
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

func gitReason(a *access.Agent, t *tool.Tool) writ.Reason {
	c := a.Constraints.Git
	outward := t.Action == "vcs:push" || c.V == access.GitLocalOnly && t.Action == "vcs:clone"
	if !outward || c.V == access.GitFull {
		return writ.Reason{}
	}
	return writ.Reason{Effect: writ.Deny, Source: "git", Where: c.At, Text: fmt.Sprintf("git: %s does not take %s", c.V, t.Action)}
}

func (in *Input) approvalReasons(a *access.Agent, t *tool.Tool) []writ.Reason {
	var out []writ.Reason
	c := a.Constraints.RequiresApproval
	for _, p := range c.V {
		if p.Match(t.Action) {
			out = append(out, writ.Reason{Effect: writ.Ask, Source: "requires_approval", Where: c.At,
				Text: fmt.Sprintf("action %s asks a person (%s)", t.Action, p.Text)})
		}
	}
	return out
}

func (in *Input) autonomyReason(a *access.Agent, t *tool.Tool) writ.Reason {
	preset := in.Presets[a.Autonomy.V]
	v := preset.V.Of(t.Action)
	r := writ.Reason{Effect: writ.Ask, Source: "autonomy", Where: preset.At}
	switch {
	case v.Named && v.Human:
		r.Text = fmt.Sprintf("autonomy %s asks a person for %s", a.Autonomy.V, v.By.Text)
	case v.Named:
		r.Effect, r.Text = writ.Allow, fmt.Sprintf("autonomy %s runs %s by itself", a.Autonomy.V, v.By.Text)
	default:
		r.Text = fmt.Sprintf("autonomy %s names no rule for %s, so a person is asked", a.Autonomy.V, t.Action)
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
// for more. A box writes only in its own workspace, whatever the file scope; more
// has to be asked for by name, which raises the class.
func (in *Input) confinement(a *access.Agent, t *tool.Tool) writ.Confinement {
	c := writ.Confinement{Hide: in.Hide, Isolation: writ.Process}
	if t.Policy.Files.Read.Stance > policy.None {
		c.Read = scopeRoots(a)
	}
	if t.Policy.Files.Write.Stance > policy.None {
		c.Write = []string{ownWorkspace(a)}
	}
	if t.Runs != tool.InBox {
		return c
	}
	c.Limits, c.Backend = in.Limits, in.Backends.For(t.Category)
	if t.Category == action.CodeExecution && a.Constraints.CodeExecution.V == access.CodeContainerized {
		c.Isolation = writ.Containerized
	}
	if t.Policy.Env.Stance == policy.Listed {
		c.Env = t.Policy.Env.Vars
	}
	switch {
	case t.Policy.Exec != policy.All:
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
