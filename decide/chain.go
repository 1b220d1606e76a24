package decide

import (
	"fmt"
	"slices"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// maxDepth bounds a chain of delegation, and a loop in one.
const maxDepth = 16

// chain is an agent and its ancestors, nearest first. Where it is broken, nothing is
// reached, and broken says why: an ancestor is missing, or there are more than there
// can be.
type chain struct {
	agents []*access.Agent
	broken string
}

func (in *Input) chain(a *access.Agent) chain {
	c := chain{agents: []*access.Agent{a}}
	for a.Parent != "" {
		i := slices.IndexFunc(in.Agents, func(b access.Agent) bool { return b.Name == a.Parent })
		switch {
		case i < 0:
			c.broken = fmt.Sprintf("agent %s, which stands above it, is not there any more", a.Parent)
			return c
		case slices.Contains(c.agents, &in.Agents[i]):
			c.broken = fmt.Sprintf("agent %s stands above itself", a.Parent)
			return c
		case len(c.agents) == maxDepth:
			c.broken = fmt.Sprintf("more than %d agents stand above each other", maxDepth)
			return c
		}
		a = &in.Agents[i]
		c.agents = append(c.agents, a)
	}
	return c
}

func byParent(name, text string) string { return fmt.Sprintf("by parent %s: %s", name, text) }

// linked is what a chain of agents may do with a tool: what each of them may, all
// at once. Deny beats ask beats allow over all of them, and the confinement is the
// intersection (I11).
func (in *Input) linked(c chain, t *tool.Tool, act action.Type, s Standing, counted bool) *pair {
	p := in.pair(c.agents[0], t, act, s)
	p.dangerous, p.quorum, p.reads = s.Dangerous, s.Quorum, act.Reads()
	p.say(in.ruleReasons(t)...)
	p.say(s.Reasons...)
	p.forbidden = in.forbidden(t)
	quotas, after := in.bounds(t)
	p.reserve = writ.Reserve{Quotas: quotas, After: after, Keep: counted}
	if c.broken != "" {
		p.say(writ.Reason{Effect: writ.Deny, Source: "delegation", Where: access.BuiltIn, Text: c.broken})
	}
	for _, a := range c.agents[1:] {
		above := in.pair(a, t, act, s)
		for _, r := range above.reasons {
			r.Text = byParent(a.Name, r.Text)
			p.say(r)
		}
		p.class = min(p.class, above.class)
		p.confine = intersect(p.confine, above.confine)
		p.links = append(p.links, above.links...)
	}
	p.reasons = slices.Clip(p.reasons)
	return p
}

// intersect is all that both reach. Where the two differ in something that has no
// order, such as the driver, what neither names alone is not reached: the empty
// driver means any, so the other's choice holds.
func intersect(a, b writ.Confinement) writ.Confinement {
	out := writ.Confinement{
		Read: meet(a.Read, b.Read), Write: meet(a.Write, b.Write), Named: meet(a.Named, b.Named), Hide: union(a.Hide, b.Hide),
		Exec: meetExec(a.Exec, b.Exec), Network: meetNetwork(a.Network, b.Network),
		Isolation: min(a.Isolation, b.Isolation), Backend: a.Backend, Limits: tighter(a.Limits, b.Limits), Server: a.Server, // the tool's, whoever calls
	}
	for _, name := range a.Env {
		if slices.Contains(b.Env, name) {
			out.Env = append(out.Env, name)
		}
	}
	if out.Backend == "" {
		out.Backend = b.Backend
	}
	return out
}

// meet is the paths that lie below a root of both.
func meet(a, b []string) []string {
	var out []string
	keep := func(p string, roots []string) {
		inside := slices.ContainsFunc(roots, func(r string) bool { return policy.Below(p, r) })
		covered := slices.ContainsFunc(out, func(r string) bool { return policy.Below(p, r) })
		if inside && !covered {
			out = append(out, p)
		}
	}
	for _, p := range a {
		keep(p, b)
	}
	for _, p := range b {
		keep(p, a)
	}
	return out
}

func union(a, b []string) []string {
	out := slices.Clone(a)
	for _, p := range b {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

func meetExec(a, b writ.Exec) writ.Exec {
	switch {
	case a.Mode == writ.ExecNone || b.Mode == writ.ExecNone:
		return writ.Exec{}
	case a.Mode == writ.ExecAny:
		return b
	case b.Mode == writ.ExecAny:
		return a
	}
	return writ.Exec{Mode: writ.ExecListed, Files: meet(a.Files, b.Files)}
}

func meetNetwork(a, b writ.Network) writ.Network {
	if a.Mode == writ.NetworkNone || b.Mode == writ.NetworkNone {
		return writ.Network{}
	}
	out := writ.Network{Mode: writ.NetworkHosts, IPv6: a.IPv6 && b.IPv6}
	for _, h := range slices.Concat(a.Hosts, a.Reads) {
		switch { // what both may, as far as both may
		case slices.Contains(a.Hosts, h) && slices.Contains(b.Hosts, h):
			out.Hosts = append(out.Hosts, h)
		case slices.Contains(b.Hosts, h) || slices.Contains(b.Reads, h):
			out.Reads = append(out.Reads, h)
		}
	}
	return out
}

// tighter is the smaller of each bound; zero is no bound.
func tighter(a, b writ.Limits) writ.Limits {
	return writ.Limits{
		Wall: least(a.Wall, b.Wall), Grace: least(a.Grace, b.Grace), Output: least(a.Output, b.Output), Memory: least(a.Memory, b.Memory),
		Pids: least(a.Pids, b.Pids), Files: least(a.Files, b.Files), Size: least(a.Size, b.Size),
		Disk: least(a.Disk, b.Disk), CPU: least(a.CPU, b.CPU),
	}
}

func least[T int64 | time.Duration](a, b T) T {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
