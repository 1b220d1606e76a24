package decide_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// Delegation (I11) is held against its definition instead of its code: over a
// small world, what a chain of agents may do is the meet of what each of them may
// do alone, set by set and element by element. What one agent may do alone is
// decided without a parent and tested elsewhere.

// world is everything that a call of these tests can name.
type world struct {
	base     decide.Input // without agents
	requests []writ.Call  // without an agent: every tool, in each of its types, with every target
	tools    []string
}

// The universes that reach is measured over. Order is the order of bits.
var (
	worldPaths = []string{
		"/", "/ws", "/ws/app", "/ws/app/x", "/ws/app/reports/r", "/ws/app/out", "/ws/app/out/o", "/ws/app/.env", "/ws/app/.git/hooks/h",
		"/ws/lib", "/ws/lib/x", "/ws-evil/x", "/srv/other", "/srv/other/x", "/opt/tools/cc", "/etc/hosts", "/state", "/state/keys/k",
	}
	unasked       = []string{"/ws", "/ws/app", "/ws/app/out", "/ws/lib", "/srv/other", "/opt/tools/cc", "/state"} // in the universe, and not asked for
	unread        = []string{"/", "/ws/app/reports/r", "/ws/app/out/o", "/ws/app/.git/hooks/h", "/ws-evil/x"}     // asked for only to write
	worldPrograms = []string{"/usr/bin/ls", "/usr/bin/git", "/usr/bin/curl", "/ws/app/x"}
	worldHosts    = []string{"api.example.com:443", "git.example.com:443", "www.example.org:443", "api.example.com:8443"}
	worldEnv      = []string{"CI", "LANG", "TOKEN"}
)

// newWorld makes the tools of the files and exec families and some more, so that
// every dimension of a level has a tool it matters to.
func newWorld(t testing.TB) *world {
	t.Helper()
	in := input(t, nil)
	in.Commands = set([]string{"/usr/bin/ls", "/usr/bin/git"})
	in.Rules["stat"] = decide.Rule{RequiresApproval: set(true)}
	w := &world{base: in}
	w.base.Tools = append(slices.DeleteFunc(w.base.Tools, func(t *tool.Tool) bool {
		return slices.Contains([]string{"list_directory", "search_files", "edit_file", "move_file", "shell_job"}, t.Name) // declared as others are that stay
	}), madeTools(t)...)
	for _, made := range w.base.Tools {
		w.tools = append(w.tools, made.Name)
		for _, kind := range made.Actions() {
			for _, targets := range worldTargets() {
				w.requests = append(w.requests, writ.Call{
					ID: "1", Tool: made.Name, Definition: made.Digest, Action: string(kind), Args: "{}", Resolved: true, Targets: targets,
				})
			}
		}
	}
	return w
}

func worldTargets() [][]writ.Target {
	r, w := writ.SideRead, writ.SideWrite
	out := [][]writ.Target{
		nil,
		{path(writ.SideEither, "/ws/app/x")}, {path(writ.SideEither, "/etc/hosts")},
		{{Pointer: "/path", Problem: "the path holds a NUL character"}},
		{path(w, "/ws/app/x"), path(w, "/ws/lib/x")},
		{path(r, "/ws/app/x"), path(w, "/srv/other/x")},
		{path(w, "/srv/other/x"), hostTarget(worldHosts[0])},
		{hostTarget(worldHosts[0]), hostTarget(worldHosts[1])},
	}
	for _, p := range worldPaths {
		if slices.Contains(unasked, p) {
			continue
		}
		out = append(out, []writ.Target{path(w, p)})
		if !slices.Contains(unread, p) {
			out = append(out, []writ.Target{path(r, p)})
		}
	}
	for _, h := range worldHosts {
		out = append(out, []writ.Target{hostTarget(h)})
	}
	return out
}

func madeTools(t testing.TB) []*tool.Tool {
	t.Helper()
	hosts := func(texts ...string) policy.Network {
		n := policy.Network{Stance: policy.Listed}
		for _, text := range texts {
			p, err := host.ParsePattern(text)
			if err != nil {
				t.Fatal(err)
			}
			n.Hosts = append(n.Hosts, p)
		}
		return n
	}
	definitions := []tool.Definition{
		{Name: "fetch", Category: action.Web, Action: "comms:external", Class: writ.ClassReadOnly,
			ActionBy: &tool.ActionBy{Argument: "method", Types: map[string]action.Type{"GET": "web:read"}},
			Policy:   policy.Policy{Network: policy.Network{Stance: policy.All}}},
		{Name: "push", Category: action.VersionControl, Action: "vcs:push", Class: writ.ClassWrite, Runs: tool.InBox,
			Policy: policy.Policy{Files: policy.Files{Read: policy.Paths("/**")}, Network: hosts("git.example.com"), Exec: policy.All}},
		{Name: "clone", Category: action.VersionControl, Action: "vcs:clone", Class: writ.ClassReadOnly, Policy: policy.Policy{Network: hosts("*.example.com")}},
		{Name: "log", Category: action.VersionControl, Action: "vcs:read", Class: writ.ClassNone, Runs: tool.InBox,
			Policy: policy.Policy{Files: policy.Files{Read: policy.Paths("/ws/**")}, Exec: policy.All}},
		{Name: "report", Category: action.FileSystem, Action: "docs:write", Class: writ.ClassNone,
			Policy: policy.Policy{Files: policy.Files{Write: policy.Paths("/ws/app/reports/*", "/srv/other/**")}}},
		{Name: "build", Category: action.CodeExecution, Action: "code:write", Class: writ.ClassNone, Runs: tool.InBox,
			Policy: policy.Policy{
				Files:   policy.Files{Read: policy.Paths("/ws/**", "/opt/tools/**"), Write: policy.Paths("/ws/app/out/**", "/srv/**")},
				Network: hosts("*.example.com", "www.example.org"), Exec: policy.All,
				Env: policy.Env{Stance: policy.Listed, Vars: []string{"CI", "LANG"}},
			}},
		{Name: "deploy", Category: action.Deployment, Action: "deploy:production", Class: writ.ClassNone,
			ActionBy: &tool.ActionBy{Argument: "to", Types: map[string]action.Type{"staging": "deploy:staging"}}},
		{Name: "remember", Category: action.Memory, Action: "memory:write", Class: writ.ClassNone},
		{Name: "migrate", Category: action.Database, Action: "db:mutate", Class: writ.ClassNone},
		{Name: "metrics", Category: action.Analytics, Action: "code:read", Class: writ.ClassNone},
		{Name: "github__issue", Category: action.MCP, Action: "comms:internal", Class: writ.ClassReadOnly},
		{Name: "inner", Category: action.Memory, Action: "memory:read", Class: writ.ClassNone, Constraints: tool.Constraints{Forbidden: true}},
		{Name: "list_tools", Category: action.Other, Action: "code:read", Class: writ.ClassNone},
	}
	var out []*tool.Tool
	for _, d := range definitions {
		d.Schema = []byte(`{"type":"object"}`)
		made, err := tool.New(d, files1(t).Run)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, made)
	}
	return out
}

// bits is a subset of one of the universes.
type bits uint32

// reach is what a decision lets a call do, as sets. The zero reach is nothing:
// a denied call reaches nothing, whatever its confinement would have been.
type reach struct {
	effect                            writ.Effect
	class                             writ.Class
	isolation                         writ.Isolation
	read, write, programs, hosts, env bits
}

func measure(d writ.Decision) reach {
	if d.Effect == writ.Deny {
		return reach{}
	}
	c := d.Confine
	below := func(roots []string) func(string) bool {
		return func(p string) bool {
			in := func(root string) bool { return policy.Below(p, root) }
			return slices.ContainsFunc(roots, in) && !slices.ContainsFunc(c.Hide, in)
		}
	}
	r := reach{effect: d.Effect, class: d.Class, isolation: c.Isolation}
	r.read, r.write = subset(worldPaths, below(c.Read)), subset(worldPaths, below(c.Write))
	switch c.Exec.Mode {
	case writ.ExecListed:
		r.programs = subset(worldPrograms, below(c.Exec.Files))
	case writ.ExecAny:
		r.programs = subset(worldPrograms, func(string) bool { return true })
	}
	if c.Network.Mode == writ.NetworkHosts {
		r.hosts = subset(worldHosts, func(h string) bool { return slices.Contains(c.Network.Hosts, h) })
	}
	r.env = subset(worldEnv, func(v string) bool { return slices.Contains(c.Env, v) })
	return r
}

func subset(universe []string, in func(string) bool) (b bits) {
	for i, element := range universe {
		if in(element) {
			b |= 1 << i
		}
	}
	return b
}

// meet is what both reach.
func (r reach) meet(o reach) reach {
	if r.effect == writ.Deny || o.effect == writ.Deny {
		return reach{}
	}
	return reach{
		effect: min(r.effect, o.effect), class: min(r.class, o.class), isolation: min(r.isolation, o.isolation),
		read: r.read & o.read, write: r.write & o.write, programs: r.programs & o.programs, hosts: r.hosts & o.hosts, env: r.env & o.env,
	}
}

func (r reach) String() string {
	list := func(b bits, universe []string) (out []string) {
		for i, element := range universe {
			if b&(1<<i) != 0 {
				out = append(out, element)
			}
		}
		return out
	}
	if r.effect == writ.Deny {
		return "deny"
	}
	return fmt.Sprintf("%s, class %s, %s, read %v, write %v, programs %v, hosts %v, env %v", r.effect, r.class, r.isolation,
		list(r.read, worldPaths), list(r.write, worldPaths), list(r.programs, worldPrograms), list(r.hosts, worldHosts), list(r.env, worldEnv))
}

// alone is what one agent may do without anybody above it, request by request.
type alone struct {
	reach reach
	owned bool // a setting of the agent itself denied it, not a rule for everybody
}

func (w *world) alone(a access.Agent) []alone {
	a.Parent = ""
	d := w.decider(a)
	out := make([]alone, len(w.requests))
	for i := range w.requests {
		got, err := w.decide(d, a.Name, i)
		if err != nil {
			panic(err)
		}
		out[i] = alone{measure(got), slices.ContainsFunc(got.Reasons, func(r writ.Reason) bool {
			return r.Effect == writ.Deny && strings.HasPrefix(r.Where, a.Name+".yaml:")
		})}
	}
	return out
}

func (w *world) decider(agents ...access.Agent) *decide.Decider {
	in := w.base
	in.Agents = agents
	return decide.New(in)
}

func (w *world) decide(d *decide.Decider, agent string, request int) (writ.Decision, error) {
	c := w.requests[request]
	c.Agent = agent
	return d.Decide(context.Background(), c)
}

// lineage is the agent and all above it, and whether the chain has a top: one
// that names somebody who is not there, or comes back to itself, has none, and
// nobody stands for what its agents may do.
func lineage(agents []access.Agent, name string) (chain []string, whole bool) {
	for !slices.Contains(chain, name) {
		i := slices.IndexFunc(agents, func(a access.Agent) bool { return a.Name == name })
		if i < 0 {
			return chain, false
		}
		chain = append(chain, name)
		if name = agents[i].Parent; name == "" {
			return chain, true
		}
	}
	return chain, false
}

// tally is what a check has seen, so that a test can tell that it saw something.
type tally struct {
	free, asked, bounded int // bounded: an ancestor made it less than the agent's own
	reached              map[string][]reach
}

// check decides every request of every agent and holds it against the definition.
// It stops at the first few problems.
func (w *world) check(agents []access.Agent) (seen tally, problems []string) {
	seen.reached = map[string][]reach{}
	d := w.decider(agents...)
	each := map[string][]alone{}
	for _, a := range agents {
		each[a.Name] = w.alone(a)
	}
	for _, a := range agents {
		chain, whole := lineage(agents, a.Name)
		shown := map[string]bool{}
		for i := range w.requests {
			want := each[a.Name][i].reach
			for _, above := range chain[1:] {
				want = want.meet(each[above][i].reach)
			}
			if !whole {
				want = reach{}
			}
			decided, err := w.decide(d, a.Name, i)
			if err != nil {
				return seen, append(problems, fmt.Sprintf("%s %s: %v", a.Name, w.name(i), err))
			}
			got := measure(decided)
			seen.reached[a.Name] = append(seen.reached[a.Name], got)
			for _, p := range compare(decided, got, want, chain[1:], whole, func(name string) alone { return each[name][i] }) {
				problems = append(problems, fmt.Sprintf("%s %s: %s", a.Name, w.name(i), p))
			}
			if len(problems) > 5 {
				return seen, problems
			}
			seen.count(want, each[a.Name][i].reach)
			if len(w.requests[i].Targets) == 0 && want.effect != writ.Deny {
				shown[w.requests[i].Tool] = true
			}
		}
		for _, name := range w.tools {
			if d.Visible(a.Name, name) != shown[name] {
				problems = append(problems, fmt.Sprintf("%s is shown %s: %v", a.Name, name, !shown[name]))
			}
		}
	}
	return seen, problems
}

func (s *tally) count(want, own reach) {
	switch want.effect {
	case writ.Allow:
		s.free++
	case writ.Ask:
		s.asked++
	}
	if want != own {
		s.bounded++
	}
}

// compare says how a decision differs from its definition, how it exceeds an
// ancestor, and which ancestor that denied it is not named.
func compare(d writ.Decision, got, want reach, above []string, whole bool, each func(string) alone) (problems []string) {
	if got != want {
		problems = append(problems, fmt.Sprintf("got %s\n\twant %s\n\treasons %v", got, want, d.Reasons))
	}
	for _, name := range above {
		a := each(name)
		if got.exceeds(a.reach) {
			problems = append(problems, fmt.Sprintf("got %s, more than %s, who alone has %s", got, name, a.reach))
		}
		if a.owned && !blames(d, name) {
			problems = append(problems, fmt.Sprintf("%s denies it and is not named in %v", name, d.Reasons))
		}
	}
	broken := slices.ContainsFunc(d.Reasons, func(r writ.Reason) bool { return r.Source == "delegation" && r.Effect == writ.Deny })
	if broken == whole {
		problems = append(problems, fmt.Sprintf("the chain has a top: %v; reasons %v", whole, d.Reasons))
	}
	if !slices.ContainsFunc(d.Reasons, func(r writ.Reason) bool { return r.Effect == d.Effect }) {
		problems = append(problems, fmt.Sprintf("no reason for %s in %v", d.Effect, d.Reasons))
	}
	return problems
}

// exceeds reports whether r has anything that o has not.
func (r reach) exceeds(o reach) bool {
	return r.effect > o.effect || r.effect != writ.Deny && (r.class > o.class || r.isolation > o.isolation ||
		r.read&^o.read|r.write&^o.write|r.programs&^o.programs|r.hosts&^o.hosts|r.env&^o.env != 0)
}

// blames reports whether a denial names an agent: in its text, or by the line that
// the agent's setting is at.
func blames(d writ.Decision, name string) bool {
	return slices.ContainsFunc(d.Reasons, func(r writ.Reason) bool {
		return r.Effect == writ.Deny && (strings.HasPrefix(r.Where, name+".yaml:") || strings.HasPrefix(r.Text, "by parent "+name+": "))
	})
}

// name is how a problem and the corpus write a request.
func (w *world) name(i int) string {
	c := w.requests[i]
	return c.Tool + "@" + c.Action + " " + targetText(c.Targets)
}

func targetText(targets []writ.Target) string {
	var out []string
	for _, t := range targets {
		switch {
		case t.Problem != "":
			out = append(out, "bad")
		case t.Kind == writ.TargetHost:
			out = append(out, "h:"+t.Host)
		default:
			out = append(out, []string{"rw:", "r:", "w:"}[t.Side]+t.Path)
		}
	}
	if out == nil {
		return "-"
	}
	return strings.Join(out, "+")
}

// agentOf builds an agent from the words of the corpus: its name, its level, then
// what it overrides as key=value. Each setting is at a line of the agent's own
// file, so that reasons can be told apart.
func (w *world) agentOf(words []string) (access.Agent, error) {
	if len(words) < 2 {
		return access.Agent{}, fmt.Errorf("%v: write NAME LEVEL key=value", words)
	}
	a := access.Agent{Name: words[0], At: words[0] + ".yaml:1", Workspace: access.Workspace{Path: "/ws/app", Project: "/ws"}}
	if err := a.Level.V.UnmarshalText([]byte(words[1])); err != nil {
		return a, err
	}
	a.Constraints = access.Defaults(a.Level.V, w.base.Types)
	a.Autonomy.V, a.GateArgs.V = access.FullAutonomy, true
	for _, word := range words[2:] {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return a, fmt.Errorf("%q is not key=value", word)
		}
		if err := w.set(&a, key, value); err != nil {
			return a, fmt.Errorf("%s: %w", word, err)
		}
	}
	c := &a.Constraints
	for i, at := range []*string{
		&a.Level.At, &a.Autonomy.At, &a.GateArgs.At, &c.FileSystem.At, &c.Network.At, &c.Allowlist.At, &c.Git.At,
		&c.CodeExecution.At, &c.Terminal.At, &c.RequiresApproval.At, &c.Deployment.At,
	} {
		*at = fmt.Sprintf("%s.yaml:%d", a.Name, i+2)
	}
	return a, nil
}

func (w *world) set(a *access.Agent, key, value string) (err error) {
	c, text := &a.Constraints, []byte(value)
	switch key {
	case "parent":
		a.Parent = value
	case "ws":
		var ok bool
		if a.Workspace.Path, a.Workspace.Project, ok = strings.Cut(value, ":"); !ok {
			return fmt.Errorf("write ws=WORKSPACE:PROJECT")
		}
	case "autonomy":
		return a.Autonomy.V.UnmarshalText(text)
	case "gate":
		a.GateArgs.V, err = strconv.ParseBool(value)
	case "fs":
		return c.FileSystem.V.UnmarshalText(text)
	case "net":
		return c.Network.V.UnmarshalText(text)
	case "hosts":
		c.Allowlist.V, err = parsed(value, host.ParsePattern)
	case "git":
		return c.Git.V.UnmarshalText(text)
	case "code":
		return c.CodeExecution.V.UnmarshalText(text)
	case "terminal":
		return c.Terminal.V.UnmarshalText(text)
	case "approve":
		c.RequiresApproval.V, err = parsed(value, w.base.Types.ParsePattern)
	case "deployment":
		c.Deployment.V, err = strconv.ParseBool(value)
	case "allowed":
		a.Allowed, err = parsed(value, entryOf(a.Name))
	case "denied":
		a.Denied, err = parsed(value, entryOf(a.Name))
	case "role":
		role, ok := access.Roles()[value]
		if a.Role = &role; !ok {
			return fmt.Errorf("there is no role %q", value)
		}
		a.Role.At = a.Name + ".yaml:20"
	case "servers":
		a.Servers = &access.Servers{Names: strings.Split(value, ","), At: a.Name + ".yaml:21"}
	default:
		return fmt.Errorf("there is no key %q", key)
	}
	return err
}

func parsed[T any](list string, parse func(string) (T, error)) (out []T, err error) {
	for text := range strings.SplitSeq(list, ",") {
		if text == "" {
			continue
		}
		v, err := parse(text)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func entryOf(agent string) func(string) (access.Set[access.Entry], error) {
	return func(text string) (access.Set[access.Entry], error) {
		e, err := access.ParseEntry(text)
		return access.Set[access.Entry]{V: e, At: agent + ".yaml:22"}, err
	}
}

// tree is agents as they are written, a line each.
type tree []string

func (w *world) build(lines tree) ([]access.Agent, error) {
	var out []access.Agent
	for _, line := range lines {
		a, err := w.agentOf(strings.Fields(line))
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	return out, nil
}

// with replaces the agent of a line's name, or adds it; a bare name removes it.
func (lines tree) with(line string) tree {
	name, rest, _ := strings.Cut(line, " ")
	out := slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.HasPrefix(l, name+" ") })
	if rest == "" {
		return out
	}
	return append(out, line)
}

// TestDelegationCorpus reads testdata/delegation.txt: trees with names, changed
// step by step. After each change the whole tree is held against the definition,
// and the rows say what that comes to.
func TestDelegationCorpus(t *testing.T) {
	raw, err := os.ReadFile("testdata/delegation.txt")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	cases := strings.Split(string(raw), "\n== ")[1:]
	for _, text := range cases {
		name, body, _ := strings.Cut(text, "\n")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w.play(t, strings.Split(body, "\n"))
		})
	}
	if len(cases) < 30 {
		t.Errorf("%d cases", len(cases))
	}
}

func (w *world) play(t *testing.T, lines []string) {
	var now tree
	var d *decide.Decider // of now; nil after a change
	refusals, controls := 0, 0
	for _, line := range lines {
		verb, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch verb {
		case "", "#":
			continue
		case "agent", "remove":
			now, d = now.with(rest), nil
			continue
		}
		if d == nil {
			agents, err := w.build(now)
			if err != nil {
				t.Fatal(err)
			}
			_, problems := w.check(agents)
			for _, p := range problems {
				t.Errorf("%s", p)
			}
			d = w.decider(agents...)
		}
		refused, err := w.row(d, verb, strings.Fields(rest))
		if err != nil {
			t.Errorf("%s: %v", line, err)
		}
		if refused {
			refusals++
		} else {
			controls++
		}
	}
	if refusals == 0 || controls == 0 {
		t.Errorf("%d rows refuse and %d do not: a case needs both", refusals, controls)
	}
}

// row checks one expectation and reports whether it is a refusal:
//
//	allow|ask|deny AGENT TOOL TARGETS [by ANCESTOR]
//	opens|shuts AGENT TOOL TARGETS ELEMENT   (r:path, w:path, x:program, h:host)
//	containerized|process AGENT TOOL TARGETS
func (w *world) row(d *decide.Decider, verb string, f []string) (refused bool, err error) {
	if len(f) < 3 {
		return false, fmt.Errorf("a row is a verb, an agent, a tool, its targets")
	}
	i := slices.IndexFunc(w.requests, func(c writ.Call) bool {
		return (c.Tool == f[1] || c.Tool+"@"+c.Action == f[1]) && targetText(c.Targets) == f[2]
	})
	if i < 0 {
		return false, fmt.Errorf("there is no such request")
	}
	got, err := w.decide(d, f[0], i)
	if err != nil {
		return false, err
	}
	switch r := measure(got); {
	case len(f) == 3 && verb == got.Effect.String():
		return verb != "allow", nil
	case len(f) == 5 && verb == "deny" && got.Effect == writ.Deny && f[3] == "by" && blames(got, f[4]):
		return true, nil
	case len(f) == 3 && got.Effect != writ.Deny && verb == r.isolation.String():
		return verb == "containerized", nil
	case len(f) == 4 && got.Effect != writ.Deny && (verb == "opens" || verb == "shuts"):
		has, err := r.has(f[3])
		if err == nil && has != (verb == "opens") {
			err = fmt.Errorf("it has %s", r)
		}
		return verb == "shuts", err
	}
	return false, fmt.Errorf("got %s, reasons %v", measure(got), got.Reasons)
}

func (r reach) has(element string) (bool, error) {
	kind, name, _ := strings.Cut(element, ":")
	sets := map[string]struct {
		universe []string
		members  bits
	}{"r": {worldPaths, r.read}, "w": {worldPaths, r.write}, "x": {worldPrograms, r.programs}, "h": {worldHosts, r.hosts}}
	i := slices.Index(sets[kind].universe, name)
	if i < 0 {
		return false, fmt.Errorf("%s is in no universe", element)
	}
	return sets[kind].members&(1<<i) != 0, nil
}
