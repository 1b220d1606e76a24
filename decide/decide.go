// Package decide composes access, action, policy and class into the one Decider.
// It is pure: calls reach it parsed and resolved, and everything that depends on
// the configuration alone is worked out when the configuration loads, one entry
// for each pair of agent and tool, so that a decision is a lookup and a walk over
// the call's targets.
package decide

import (
	"context"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// Input is everything a decision depends on besides the call.
type Input struct {
	Types    *action.Registry
	Agents   []access.Agent
	Presets  map[access.Autonomy]access.Set[action.Lists]
	Tools    []*tool.Tool
	Rules    map[string]Rule // by tool name
	Commands access.Set[[]string]
	Hide     []string // writ's own state: out of reach at every level
	Backends Backends
	Limits   writ.Limits
	Digest   writ.Digest // of the configuration
}

// Rule is what the operator adds to one tool. It only tightens (I12).
type Rule struct {
	RequiresApproval access.Set[bool]
	Disabled         access.Set[bool]
}

// Backends is which sandbox driver runs what.
type Backends struct {
	Default    string // "auto" or a driver
	ByCategory map[action.Category]string
}

// For is the driver chosen for a category; empty means any that holds all.
func (b Backends) For(c action.Category) string {
	chosen := b.Default
	if over, ok := b.ByCategory[c]; ok {
		chosen = over
	}
	if chosen == "auto" {
		return ""
	}
	return chosen
}

// Decider decides calls under one configuration. Immutable, safe for concurrent use.
type Decider struct {
	digest writ.Digest
	hide   []string
	agents map[string]map[string]*pair
}

// pair is what the configuration alone says of one agent using one tool.
type pair struct {
	agent      *access.Agent
	tool       *tool.Tool
	definition writ.Digest
	effect     writ.Effect
	reasons    []writ.Reason
	confine    writ.Confinement
	action     string
	risk       string
	class      writ.Class
	own        string // the call's own workspace: writing elsewhere is class write
}

// New works out every pair.
func New(in Input) *Decider {
	d := &Decider{digest: in.Digest, hide: in.Hide, agents: make(map[string]map[string]*pair, len(in.Agents))}
	for i := range in.Agents {
		a := &in.Agents[i]
		byTool := make(map[string]*pair, len(in.Tools))
		for _, t := range in.Tools {
			byTool[t.Name] = in.pair(a, t)
		}
		d.agents[a.Name] = byTool
	}
	return d
}

// Visible reports whether an agent may use a tool at all; listings show no other.
func (d *Decider) Visible(agent, toolName string) bool {
	p := d.agents[agent][toolName]
	return p != nil && p.effect != writ.Deny
}

// Decide implements writ.Decider.
func (d *Decider) Decide(_ context.Context, c writ.Call) (writ.Decision, error) {
	p := d.agents[c.Agent][c.Tool]
	if p == nil {
		return writ.Decision{}, writ.Fail(writ.NotFound, "there is no such agent or tool", nil)
	}
	if p.definition != c.Definition {
		return writ.Decision{}, writ.Fail(writ.Changed, fmt.Sprintf("tool %s changed since the call was made; look it up again", c.Tool), nil)
	}
	out := writ.Decision{
		Effect: p.effect, Reasons: p.reasons, Confine: p.confine,
		Action: p.action, Risk: p.risk, Class: p.class, Policy: d.digest,
	}
	for i := range c.Targets {
		d.target(&out, p, &c.Targets[i])
	}
	if out.Class == writ.ClassWrite {
		add(&out, writ.Ask, "egress_class", access.BuiltIn, "it changes something outside the workspace (class write)")
	}
	if out.Effect == writ.Ask {
		subject, err := Subject(c, out)
		if err != nil {
			return writ.Decision{}, err
		}
		out.Subject = subject
	}
	return out, nil
}

// target holds one path or host of the arguments against everything that bounds it.
func (d *Decider) target(out *writ.Decision, p *pair, t *writ.Target) {
	if t.Problem != "" {
		add(out, writ.Deny, "argument_gate", access.BuiltIn, "argument %s: %s", policy.Shown(t.Pointer), t.Problem)
		return
	}
	if why := p.tool.Policy.Violation(*t); why != "" && p.tool.Policy.Engaged() {
		if p.agent.GateArgs.V {
			add(out, writ.Deny, "argument_gate", p.agent.GateArgs.At, "%s", why)
		} else {
			add(out, writ.Allow, "argument_gate", p.agent.GateArgs.At, "recorded only, enforce_tool_policies is false: %s", why)
		}
	}
	if t.Kind == writ.TargetHost {
		d.hostTarget(out, p, t)
		return
	}
	d.pathTarget(out, p, t)
}

func (d *Decider) pathTarget(out *writ.Decision, p *pair, t *writ.Target) {
	for _, h := range d.hide {
		if policy.Below(t.Path, h) || t.Side != writ.SideRead && policy.Below(h, t.Path) {
			add(out, writ.Deny, "protected", access.BuiltIn, "argument %s: %q is not for agents", policy.Shown(t.Pointer), clip(t.Value))
			return
		}
	}
	if p.tool.Policy.Files.Read.Stance == policy.Unspecified && p.tool.Policy.Files.Write.Stance == policy.Unspecified {
		return // the tool says it touches no files, and its box reaches none
	}
	scope := &p.agent.Constraints.FileSystem
	if !inScope(p.agent, t.Path) {
		add(out, writ.Deny, "file_system", scope.At, "argument %s: %q is outside file_system: %s", policy.Shown(t.Pointer), clip(t.Value), scope.V)
		return
	}
	inside := policy.Below(t.Path, p.own)
	if t.Side == writ.SideRead {
		if name := policy.Secret(t.Path); name != "" {
			add(out, writ.Deny, "protected", access.BuiltIn, "argument %s: %q is protected and cannot be read", policy.Shown(t.Pointer), name)
		}
		if !inside {
			out.Class = min(out.Class, writ.ClassReadOnly)
		}
		return
	}
	if name := policy.WriteProtected(t.Path); name != "" {
		add(out, writ.Deny, "protected", access.BuiltIn, "argument %s: %q is protected and cannot be changed", policy.Shown(t.Pointer), name)
	}
	if !inside {
		out.Class = writ.ClassWrite
		out.Confine.Write = append(out.Confine.Write[:len(out.Confine.Write):len(out.Confine.Write)], t.Path)
	}
}

func (d *Decider) hostTarget(out *writ.Decision, p *pair, t *writ.Target) {
	c := &p.agent.Constraints
	switch c.Network.V {
	case access.NoNetwork:
		add(out, writ.Deny, "network", c.Network.At, "argument %s: host %q cannot be reached with network: none", policy.Shown(t.Pointer), clip(t.Value))
		return
	case access.AllowlistOnly:
		if !allowlisted(c.Allowlist.V, t.Host) {
			add(out, writ.Deny, "network", c.Allowlist.At, "argument %s: host %q is not on the network allowlist", policy.Shown(t.Pointer), clip(t.Value))
			return
		}
	}
	// Talking to a host counts as changing something there unless an egress
	// rule says otherwise.
	out.Class = writ.ClassWrite
	n := &out.Confine.Network
	n.Mode = writ.NetworkHosts
	n.Hosts = append(n.Hosts[:len(n.Hosts):len(n.Hosts)], t.Host)
}

func inScope(a *access.Agent, path string) bool {
	for _, root := range scopeRoots(a) {
		if policy.Below(path, root) {
			return true
		}
	}
	return false
}

// add lowers the effect and appends the reason to a copy: the reasons of a pair
// are shared between calls.
func add(out *writ.Decision, e writ.Effect, source, at, format string, args ...any) {
	out.Effect = min(out.Effect, e)
	out.Reasons = append(out.Reasons[:len(out.Reasons):len(out.Reasons)],
		writ.Reason{Effect: e, Source: source, Where: at, Text: fmt.Sprintf(format, args...)})
}

// clip keeps a reason to a line's length.
func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
