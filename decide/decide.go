// Package decide composes access, action, policy and class into the one Decider.
// It is pure: calls reach it parsed and resolved, and everything that depends on
// the configuration alone is worked out when the configuration loads, one entry
// for each pair of agent and tool, so that a decision is a lookup and a walk over
// the call's targets.
package decide

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// Input is everything a decision depends on besides the call.
type Input struct {
	Types   *action.Registry
	Agents  []access.Agent
	Presets map[access.Autonomy]access.Set[action.Lists]
	Tools   []*tool.Tool
	Rules   map[string]Rule   // by tool name
	Held    map[string]string // by tool name: why it is suspended
	// Registered is by tool name. One that is not there counts as its definition says.
	Registered map[string]Registered
	Commands   access.Set[[]string]
	Programs   map[string][]string // by tool name: the files of those that a tool has for itself
	Hide       []string            // writ's own state: out of reach at every level
	Backends   Backends
	Limits     writ.Limits
	Hosts      []HostClass // what talking to hosts counts as; the first that names one counts
	Digest     writ.Digest // of the configuration

	Connections map[string]Connection // by name
	SignIns     map[string]SignIn     // by server, in normal form
}

// HostClass is what talking to hosts counts as. What none names counts as write.
type HostClass struct {
	Host   host.Pattern
	Class  writ.Class
	Stated bool // the operator wrote the class; else it is write because nobody said more
	IPv6   bool // it is reached by IPv6 too
}

// Rule is what the operator adds to one tool. It only tightens (I12).
type Rule struct {
	RequiresApproval access.Set[bool]
	Disabled         access.Set[bool]
	Forbidden        access.Set[bool]
	Quotas           []writ.Quota
	OnlyAfter        []string
	Class            *access.Set[writ.Class] // at least this; nil: nothing said
	Dangerous        access.Set[bool]
	Quorum           int // of people who have to agree; 0: nothing said
}

// Backends is which sandbox driver runs what.
type Backends struct {
	Default    string // "auto" or a driver
	ByCategory map[action.Category]string
	Wall       map[string]time.Duration    // by driver, where it has one of its own
	Outside    map[string]*Outside         // by driver, where it has a say in it
	ReadOnly   map[string]access.Set[bool] // by driver: what a call might write it can read alone
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
	hosts  []HostClass
	agents map[string]map[string]*variants
	stands map[string]Standing // by tool

	connections map[string]Connection
	signIns     map[string]SignIn
}

// variants are the pairs of one agent and one tool, by the action types that a
// call can have; only is the one there is, where the tool has but one.
type variants struct {
	definition writ.Digest
	only       *pair
	byAction   map[string]*pair
}

// pair is what the configuration alone says of one agent using one tool.
type pair struct {
	effect    writ.Effect
	forbidden writ.Reason // for models; the program's own code may
	reasons   []writ.Reason
	confine   writ.Confinement
	action    string
	risk      string
	class     writ.Class
	dangerous bool
	quorum    int
	reads     bool // by its action type
	reserve   writ.Reserve
	links     []link // the agent, then its ancestors: each holds a call's targets
}

// link is one agent of a chain, as a call's targets are held against it.
type link struct {
	agent *access.Agent
	tool  *tool.Tool
	own   string // the call's own workspace: writing elsewhere is class write
	// outside is what the driver has to say about hosts; nil: nothing.
	outside *Outside
	// unwritten is why its box changes no files; the zero Reason where it may.
	unwritten writ.Reason
}

// New works out every pair.
func New(in Input) *Decider {
	d := &Decider{digest: in.Digest, hide: in.Hide, hosts: in.Hosts, agents: make(map[string]map[string]*variants, len(in.Agents)), stands: make(map[string]Standing, len(in.Tools)), connections: in.Connections, signIns: in.SignIns}
	counted := in.counted()
	for _, t := range in.Tools {
		d.stands[t.Name] = in.standing(t)
	}
	for i := range in.Agents {
		chain := in.chain(&in.Agents[i])
		byTool := make(map[string]*variants, len(in.Tools))
		for _, t := range in.Tools {
			byTool[t.Name] = in.variants(chain, t, d.stands[t.Name], counted[t.Name])
		}
		d.agents[in.Agents[i].Name] = byTool
	}
	return d
}

// Visible reports whether an agent may use a tool at all; listings show no other.
func (d *Decider) Visible(agent, toolName string) bool {
	v := d.agents[agent][toolName]
	if v == nil {
		return false
	}
	for _, p := range v.byAction {
		if p.effect != writ.Deny && p.forbidden.Source == "" {
			return true
		}
	}
	return false
}

// Reach is all that an agent's call of a tool may reach before its arguments ask for
// more; ok is false where it may not use the tool.
func (d *Decider) Reach(agent, toolName string) (reach writ.Confinement, ok bool) {
	v := d.agents[agent][toolName]
	if v == nil || !d.Visible(agent, toolName) {
		return writ.Confinement{}, false
	}
	for _, p := range v.byAction {
		reach = p.confine // of all types alike
	}
	return reach, true
}

// Decide implements writ.Decider.
func (d *Decider) Decide(_ context.Context, c writ.Call) (writ.Decision, error) {
	v := d.agents[c.Agent][c.Tool]
	if v == nil {
		return writ.Decision{}, writ.Fail(writ.NotFound, "there is no such agent or tool", nil)
	}
	if v.definition != c.Definition {
		return writ.Decision{}, writ.Fail(writ.Changed, fmt.Sprintf("tool %s changed since the call was made; look it up again", c.Tool), nil)
	}
	p := v.only
	if p == nil {
		if p = v.byAction[c.Action]; p == nil {
			return writ.Decision{}, writ.Fail(writ.Denied, "denied: the call has no action type that its tool declares", nil)
		}
	}
	out := writ.Decision{
		Effect: p.effect, Reasons: p.reasons, Confine: p.confine,
		Action: p.action, Risk: p.risk, Class: p.class, Policy: d.digest, Reserve: p.reserve,
		Dangerous: p.dangerous, Quorum: p.quorum,
	}
	if p.forbidden.Source != "" && !c.Code {
		out.Effect = writ.Deny
		out.Reasons = append(out.Reasons[:len(out.Reasons):len(out.Reasons)], p.forbidden)
	}
	var talks []string // to hosts, which by itself makes it class write
	other := p.class == writ.ClassWrite
	for i := range c.Targets {
		t, before := &c.Targets[i], out.Class
		out.Class = p.class
		d.target(&out, p.links, t)
		if t.Kind == writ.TargetHost && out.Class == writ.ClassWrite {
			talks = append(talks, t.Host)
		} else if out.Class == writ.ClassWrite {
			other = true
		}
		out.Class = min(out.Class, before)
	}
	if out.Class == writ.ClassWrite {
		add(&out, writ.Ask, "egress_class", access.BuiltIn, "%s", changes(talks, other))
	}
	out.Reads = p.reads && out.Class != writ.ClassWrite
	if out.Effect == writ.Ask {
		var err error
		if out.Subject, err = Subject(c, out); err != nil {
			return writ.Decision{}, err
		}
		if out.Base, err = p.base(); err != nil {
			return writ.Decision{}, err
		}
	}
	return out, nil
}

// target holds one path or host of the arguments against everything that bounds
// it, for every agent of the chain, and opens it where it lies outside what the
// call has anyway. A target that any of them does not reach is denied (I11).
func (d *Decider) target(out *writ.Decision, chain []link, t *writ.Target) {
	if t.Problem != "" {
		add(out, writ.Deny, "argument_gate", access.BuiltIn, "argument %s: %s", policy.Shown(t.Pointer), t.Problem)
		return
	}
	switch {
	case t.Kind == writ.TargetMethod:
		method(out, t.Value)
		return
	case t.Kind == writ.TargetConnection:
		d.connection(out, chain, t)
		return
	case d.hidden(out, t):
		return
	case t.Kind == writ.TargetHost:
		if why := chain[0].outside.Refuses(chain[0].tool.Category, t.Host); why.Source != "" {
			add(out, why.Effect, why.Source, why.Where, "argument %s: %s", policy.Shown(t.Pointer), why.Text)
			return
		}
	case t.Side == writ.SideWrite && chain[0].unwritten.Source != "":
		// Nobody is to be asked about what would fail.
		why := chain[0].unwritten
		add(out, writ.Deny, why.Source, why.Where, "argument %s: %q cannot be written: %s", policy.Shown(t.Pointer), clip(t.Value), why.Text)
		return
	}
	outside := false
	for i := range chain {
		p := &chain[i]
		said := len(out.Reasons)
		if why := p.tool.Policy.Violation(*t); why != "" && p.tool.Policy.Engaged() {
			if p.agent.GateArgs.V {
				add(out, writ.Deny, "argument_gate", p.agent.GateArgs.At, "%s", why)
			} else {
				add(out, writ.Allow, "argument_gate", p.agent.GateArgs.At, "recorded only, enforce_tool_policies is false: %s", why)
			}
		}
		if t.Kind == writ.TargetHost {
			outside = hostTarget(out, p, t) || outside
		} else {
			outside = pathTarget(out, p, t) || outside
		}
		for j := said; i > 0 && j < len(out.Reasons); j++ {
			out.Reasons[j].Text = byParent(p.agent.Name, out.Reasons[j].Text)
		}
	}
	switch {
	case !outside:
	case t.Kind == writ.TargetHost:
		// Talking to a host counts as changing something there unless an egress
		// rule says otherwise.
		seen := t.Side == writ.SideRead || chain[0].tool.Brokered
		out.Class = min(out.Class, d.talking(t.Host, seen))
		if chain[0].tool.Policy.Violation(*t) != "" {
			return // not declared, so not opened: see writes
		}
		n := &out.Confine.Network
		n.Mode = writ.NetworkHosts
		n.IPv6 = n.IPv6 || d.six(t.Host)
		if t.Side == writ.SideRead {
			n.Reads = append(n.Reads[:len(n.Reads):len(n.Reads)], t.Host)
		} else {
			n.Hosts = append(n.Hosts[:len(n.Hosts):len(n.Hosts)], t.Host)
			d.signIn(out, chain, t.Host)
		}
	case t.Side == writ.SideRead || t.Side == writ.SideEither && !writes(chain[0].tool, t):
		out.Class = min(out.Class, writ.ClassReadOnly)
	default:
		out.Class = writ.ClassWrite
		if !writes(chain[0].tool, t) || chain[0].unwritten.Source != "" {
			return
		}
		out.Confine.Write = append(out.Confine.Write[:len(out.Confine.Write):len(out.Confine.Write)], t.Path)
	}
}

// talking is what it counts as to talk to a host. Where the broker sees what is said, the
// method counts, which the class of the call has already: nothing is assumed of the host
// then, but what the operator wrote of it still holds (I12).
func (d *Decider) talking(normal string, seen bool) writ.Class {
	e, err := host.ParseEndpoint(normal)
	for _, h := range d.hosts {
		if err == nil && h.Host.Match(e) {
			if seen && !h.Stated {
				break
			}
			return h.Class
		}
	}
	if seen {
		return writ.ClassReadOnly
	}
	return writ.ClassWrite
}

// six says whether a host is reached by IPv6: where the operator says so, and where it is
// an address of it.
func (d *Decider) six(normal string) bool {
	e, err := host.ParseEndpoint(normal)
	if err != nil {
		return false
	}
	if a, ok := e.Host.Addr(); ok {
		return a.Is6()
	}
	i := slices.IndexFunc(d.hosts, func(h HostClass) bool { return h.Host.Match(e) })
	return i >= 0 && d.hosts[i].IPv6
}

// writes reports whether the tool declares that it writes a path. What it does not
// declare is not opened, whoever lets its arguments pass: enforce_tool_policies
// leaves the confinement as it is.
func writes(of *tool.Tool, t *writ.Target) bool {
	return of.Policy.Violation(writ.Target{Side: writ.SideWrite, Path: t.Path}) == ""
}

// hidden denies writ's own files.
func (d *Decider) hidden(out *writ.Decision, t *writ.Target) bool {
	if t.Kind != writ.TargetPath {
		return false
	}
	for _, h := range d.hide {
		if policy.Below(t.Path, h) || t.Side != writ.SideRead && policy.Below(h, t.Path) {
			add(out, writ.Deny, "protected", access.BuiltIn, "argument %s: %q is not for agents", policy.Shown(t.Pointer), clip(t.Value))
			return true
		}
	}
	return false
}

// pathTarget reports whether a path that may be reached lies outside the workspace.
func pathTarget(out *writ.Decision, p *link, t *writ.Target) bool {
	if p.tool.Policy.Files.Read.Stance == policy.Unspecified && p.tool.Policy.Files.Write.Stance == policy.Unspecified {
		return false // the tool says it touches no files, and its box reaches none
	}
	scope := &p.agent.Constraints.FileSystem
	if !inScope(p.agent, t.Path) {
		add(out, writ.Deny, "file_system", scope.At, "argument %s: %q is outside file_system: %s", policy.Shown(t.Pointer), clip(t.Value), scope.V)
		return false
	}
	if name := protectedName(p, t); name != "" {
		what := "changed"
		if t.Side == writ.SideRead {
			what = "read"
		}
		add(out, writ.Deny, "protected", access.BuiltIn, "argument %s: %q is protected and cannot be %s", policy.Shown(t.Pointer), name, what)
	}
	return !policy.Below(t.Path, p.own)
}

// protectedName is what protects a path from a tool, where it is and by each name that leads
// there: a protected name may be a symlink.
func protectedName(p *link, t *writ.Target) string {
	for i := -1; i < len(t.Via); i++ {
		path := t.Path
		if i >= 0 {
			path = t.Via[i]
		}
		name := ""
		if t.Side == writ.SideRead {
			name = policy.Secret(path)
		} else if !policy.Names(p.tool.Policy.Files.Write.Roots(), path) {
			name = policy.WriteProtected(path)
		}
		if name != "" {
			return name
		}
	}
	return ""
}

// hostTarget reports whether a host may be reached.
func hostTarget(out *writ.Decision, p *link, t *writ.Target) bool {
	c := &p.agent.Constraints
	switch c.Network.V {
	case access.NoNetwork:
		add(out, writ.Deny, "network", c.Network.At, "argument %s: host %q cannot be reached with network: none", policy.Shown(t.Pointer), clip(t.Host))
		return false
	case access.AllowlistOnly:
		if !allowlisted(c.Allowlist.V, t.Host) {
			add(out, writ.Deny, "network", c.Allowlist.At, "argument %s: host %q is not on the network allowlist", policy.Shown(t.Pointer), clip(t.Host))
			return false
		}
	}
	return true
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
