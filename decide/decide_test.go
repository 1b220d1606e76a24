package decide_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/exec"
	"github.com/writ-run/writ/tool/files"
)

func set[T any](v T) access.Set[T] { return access.Set[T]{V: v, At: "writ.yaml:7"} }

func registry(t testing.TB) *action.Registry {
	t.Helper()
	types, err := action.NewRegistry(nil)
	if err != nil {
		t.Fatal(err)
	}
	return types
}

func catalog(t testing.TB) []*tool.Tool {
	t.Helper()
	f, err := files.Tools()
	if err != nil {
		t.Fatal(err)
	}
	x, err := exec.Tools(exec.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return append(f, x...)
}

// input is a configuration with one agent, changed as a test says.
func input(t testing.TB, change func(*decide.Input, *access.Agent)) decide.Input {
	types := registry(t)
	presets := map[access.Autonomy]access.Set[action.Lists]{}
	for a, l := range access.Presets(types) {
		presets[a] = access.Set[action.Lists]{V: l, At: access.BuiltIn}
	}
	a := access.Agent{
		Name: "coder", Level: set(access.Standard), Autonomy: set(access.Semi), GateArgs: set(true),
		Workspace:   access.Workspace{Path: "/ws/app", Project: "/ws"},
		Constraints: access.Defaults(access.Standard, types),
	}
	in := decide.Input{
		Types: types, Presets: presets, Tools: catalog(t), Rules: map[string]decide.Rule{}, Digest: writ.Digest{1},
		Hide: []string{"/state"}, Commands: set([]string{"/usr/bin/ls"}), Backends: decide.Backends{Default: "auto"},
	}
	if change != nil {
		change(&in, &a)
	}
	in.Agents = []access.Agent{a}
	return in
}

func call(in decide.Input, toolName string, targets ...writ.Target) writ.Call {
	i := slices.IndexFunc(in.Tools, func(t *tool.Tool) bool { return t.Name == toolName })
	return writ.Call{ID: "1", Agent: "coder", Tool: toolName, Definition: in.Tools[i].Digest, Args: "{}", Resolved: true, Targets: targets}
}

func path(side writ.Side, p string) writ.Target {
	return writ.Target{Pointer: "/path", Value: p, Side: side, Path: p}
}

func hostTarget(h string) writ.Target {
	return writ.Target{Pointer: "/hosts/0", Value: h, Kind: writ.TargetHost, Host: h}
}

// full opens the whole file system to the agent.
func full(_ *decide.Input, a *access.Agent) { a.Constraints.FileSystem = set(access.FullFileSystem) }

func TestDecide(t *testing.T) {
	r, w := writ.SideRead, writ.SideWrite
	tests := []struct {
		name    string
		change  func(*decide.Input, *access.Agent)
		tool    string
		targets []writ.Target
		effect  writ.Effect
		source  string // of a reason with that effect
		class   writ.Class
	}{
		{"read inside", nil, "read_file", []writ.Target{path(r, "/ws/app/x")}, writ.Allow, "level", writ.ClassNone},
		{"read the workspace itself", nil, "list_directory", []writ.Target{path(r, "/ws")}, writ.Allow, "level", writ.ClassNone},
		{"read outside", nil, "read_file", []writ.Target{path(r, "/etc/passwd")}, writ.Deny, "file_system", writ.ClassNone},
		{"a neighbour with the same beginning", nil, "read_file", []writ.Target{path(r, "/ws-evil/x")}, writ.Deny, "file_system", writ.ClassNone},
		{"project is open to project_directory", nil, "write_file", []writ.Target{path(w, "/ws/other/x")}, writ.Allow, "level", writ.ClassNone},
		{"project is closed to workspace_only", func(_ *decide.Input, a *access.Agent) { a.Constraints.FileSystem = set(access.WorkspaceOnly) }, "write_file", []writ.Target{path(w, "/ws/other/x")}, writ.Deny, "file_system", writ.ClassNone},
		{"full reads anywhere", full, "read_file", []writ.Target{path(r, "/etc/hosts")}, writ.Allow, "level", writ.ClassReadOnly},
		{"full writes elsewhere only when asked", full, "write_file", []writ.Target{path(w, "/etc/hosts")}, writ.Ask, "egress_class", writ.ClassWrite},
		{"full writes at home freely", full, "write_file", []writ.Target{path(w, "/ws/x")}, writ.Allow, "level", writ.ClassNone},
		{"full autonomy still asks for class write", func(in *decide.Input, a *access.Agent) { full(in, a); a.Autonomy = set(access.FullAutonomy) }, "write_file", []writ.Target{path(w, "/etc/hosts")}, writ.Ask, "egress_class", writ.ClassWrite},
		{"state is out of reach at full", full, "read_file", []writ.Target{path(r, "/state/keys/ledger.key")}, writ.Deny, "protected", writ.ClassNone},
		{"what holds the state cannot be moved away", full, "move_file", []writ.Target{path(w, "/")}, writ.Deny, "protected", writ.ClassNone},
		{"unresolved", nil, "read_file", []writ.Target{{Pointer: "/path", Problem: "the path holds a NUL character"}}, writ.Deny, "argument_gate", writ.ClassNone},
		{"git hooks", nil, "write_file", []writ.Target{path(w, "/ws/app/.git/hooks/pre-commit")}, writ.Deny, "protected", writ.ClassNone},
		{"secrets are not read", nil, "read_file", []writ.Target{path(r, "/ws/app/.env")}, writ.Deny, "protected", writ.ClassNone},
		{"one bad target among good ones", nil, "move_file", []writ.Target{path(w, "/ws/a"), path(w, "/etc/b")}, writ.Deny, "file_system", writ.ClassNone},

		{"shell without hosts", nil, "shell_command", nil, writ.Allow, "terminal", writ.ClassNone},
		{"shell with a host asks", nil, "shell_command", []writ.Target{hostTarget("example.com:443")}, writ.Ask, "egress_class", writ.ClassWrite},
		{"shell with a host, network none", func(_ *decide.Input, a *access.Agent) { a.Constraints.Network = set(access.NoNetwork) }, "shell_command", []writ.Target{hostTarget("example.com:443")}, writ.Deny, "network", writ.ClassNone},
		{"shell with a host that is not listed", func(_ *decide.Input, a *access.Agent) { a.Constraints.Network = set(access.AllowlistOnly) }, "shell_command", []writ.Target{hostTarget("example.com:443")}, writ.Deny, "network", writ.ClassNone},
		{"shell with a listed host", func(_ *decide.Input, a *access.Agent) {
			p, err := host.ParsePattern("*.example.com")
			if err != nil {
				panic(err)
			}
			a.Constraints.Network, a.Constraints.Allowlist = set(access.AllowlistOnly), set(host.Patterns{p})
		}, "shell_command", []writ.Target{hostTarget("api.example.com:443")}, writ.Ask, "egress_class", writ.ClassWrite},
		{"terminal none", func(_ *decide.Input, a *access.Agent) { a.Constraints.Terminal = set(access.NoTerminal) }, "shell_command", nil, writ.Deny, "terminal", writ.ClassNone},
		{"level without terminal", func(_ *decide.Input, a *access.Agent) { a.Level = set(access.Restricted) }, "shell_command", nil, writ.Deny, "level", writ.ClassNone},

		{"requires approval", func(in *decide.Input, a *access.Agent) {
			p, _ := in.Types.ParsePattern("code:delete")
			a.Constraints.RequiresApproval = set([]action.Pattern{p})
		}, "delete_file", []writ.Target{path(w, "/ws/x")}, writ.Ask, "requires_approval", writ.ClassNone},
		{"supervised asks for what it does not name", func(_ *decide.Input, a *access.Agent) { a.Autonomy = set(access.Supervised) }, "write_file", []writ.Target{path(w, "/ws/x")}, writ.Ask, "autonomy", writ.ClassNone},
		{"supervised reads", func(_ *decide.Input, a *access.Agent) { a.Autonomy = set(access.Supervised) }, "read_file", []writ.Target{path(r, "/ws/x")}, writ.Allow, "autonomy", writ.ClassNone},
		{"locked asks for everything", func(_ *decide.Input, a *access.Agent) { a.Autonomy = set(access.Locked) }, "read_file", []writ.Target{path(r, "/ws/x")}, writ.Ask, "autonomy", writ.ClassNone},
		{"deny beats ask", func(_ *decide.Input, a *access.Agent) { a.Autonomy = set(access.Locked) }, "read_file", []writ.Target{path(r, "/etc/x")}, writ.Deny, "file_system", writ.ClassNone},
		{"tool asks each time", func(in *decide.Input, _ *access.Agent) { in.Rules["stat"] = decide.Rule{RequiresApproval: set(true)} }, "stat", []writ.Target{path(r, "/ws/x")}, writ.Ask, "tools", writ.ClassNone},
		{"tool disabled", func(in *decide.Input, _ *access.Agent) { in.Rules["stat"] = decide.Rule{Disabled: set(true)} }, "stat", []writ.Target{path(r, "/ws/x")}, writ.Deny, "tools", writ.ClassNone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tt.change)
			d, err := decide.New(in).Decide(t.Context(), call(in, tt.tool, tt.targets...))
			if err != nil {
				t.Fatal(err)
			}
			if d.Effect != tt.effect || d.Class != tt.class {
				t.Errorf("got %s, class %s; want %s, class %s; reasons %v", d.Effect, d.Class, tt.effect, tt.class, d.Reasons)
			}
			if !slices.ContainsFunc(d.Reasons, func(r writ.Reason) bool { return r.Source == tt.source && r.Effect == tt.effect }) {
				t.Errorf("no %s reason from %s in %v", tt.effect, tt.source, d.Reasons)
			}
			for _, r := range d.Reasons {
				if r.Where == "" || r.Text == "" {
					t.Errorf("a reason says nothing of where or why: %+v", r)
				}
			}
			if (d.Effect == writ.Ask) == d.Subject.IsZero() {
				t.Errorf("effect %s with subject %s", d.Effect, d.Subject)
			}
		})
	}
}

// The gate's two other refusals are errors: an unknown pair, and a tool that
// changed (I8).
func TestUnknownAndChanged(t *testing.T) {
	in := input(t, nil)
	d := decide.New(in)
	c := call(in, "stat", path(writ.SideRead, "/ws/x"))
	c.Definition[0] ^= 1
	if _, err := d.Decide(t.Context(), c); writ.KindOf(err) != writ.Changed {
		t.Errorf("changed definition: %v", err)
	}
	c = call(in, "stat")
	c.Agent = "stranger"
	if _, err := d.Decide(t.Context(), c); writ.KindOf(err) != writ.NotFound {
		t.Errorf("unknown agent: %v", err)
	}
	c = call(in, "stat")
	c.Tool = "STAT"
	if _, err := d.Decide(t.Context(), c); writ.KindOf(err) != writ.NotFound {
		t.Errorf("unknown tool: %v", err)
	}
}

// enforce_tool_policies: false only records what the declaration says; the scope
// of the agent and writ's own state still hold.
func TestDeclareOnly(t *testing.T) {
	narrow, err := tool.New(tool.Definition{
		Name: "report", Category: action.FileSystem, Action: "docs:write", Class: writ.ClassNone,
		Policy: policy.Policy{Files: policy.Files{Write: policy.Paths("/ws/reports/**")}},
		Schema: []byte(`{"type":"object","properties":{"path":{"type":"string","x-writ-path":"write"}}}`),
	}, files1(t).Run)
	if err != nil {
		t.Fatal(err)
	}
	for _, enforce := range []bool{true, false} {
		in := input(t, func(in *decide.Input, a *access.Agent) {
			in.Tools = append(in.Tools, narrow)
			a.GateArgs = set(enforce)
		})
		d := decide.New(in)
		got, err := d.Decide(t.Context(), call(in, "report", path(writ.SideWrite, "/ws/app/x")))
		if err != nil || (got.Effect == writ.Deny) != enforce {
			t.Errorf("enforce %v: %s %v %v", enforce, got.Effect, got.Reasons, err)
		}
		if !slices.ContainsFunc(got.Reasons, func(r writ.Reason) bool { return r.Source == "argument_gate" }) {
			t.Errorf("enforce %v: the violation is not in the reasons: %v", enforce, got.Reasons)
		}
		if got, _ := d.Decide(t.Context(), call(in, "report", path(writ.SideWrite, "/state/x"))); got.Effect != writ.Deny {
			t.Errorf("enforce %v: state can be reached", enforce)
		}
	}
}

func files1(t testing.TB) *tool.Tool { return catalog(t)[0] }

func TestConfinement(t *testing.T) {
	tests := []struct {
		name   string
		change func(*decide.Input, *access.Agent)
		tool   string
		target []writ.Target
		want   func(writ.Confinement) bool
	}{
		{"a box writes only at home, also at full", full, "shell_command", nil, func(c writ.Confinement) bool {
			return slices.Equal(c.Read, []string{"/"}) && slices.Equal(c.Write, []string{"/ws"})
		}},
		{"more is added by name", full, "shell_command", []writ.Target{path(writ.SideWrite, "/srv/x")}, func(c writ.Confinement) bool {
			return slices.Equal(c.Write, []string{"/ws", "/srv/x"})
		}},
		{"restricted commands", nil, "shell_command", nil, func(c writ.Confinement) bool {
			return c.Exec.Mode == writ.ExecListed && slices.Equal(c.Exec.Files, []string{"/usr/bin/ls"})
		}},
		{"all commands", func(_ *decide.Input, a *access.Agent) { a.Constraints.Terminal = set(access.FullTerminal) }, "shell_command", nil,
			func(c writ.Confinement) bool { return c.Exec.Mode == writ.ExecAny }},
		{"no network unless asked", nil, "shell_command", nil, func(c writ.Confinement) bool { return c.Network.Mode == writ.NetworkNone }},
		{"hosts by name", nil, "shell_command", []writ.Target{hostTarget("example.com:443")}, func(c writ.Confinement) bool {
			return c.Network.Mode == writ.NetworkHosts && slices.Equal(c.Network.Hosts, []string{"example.com:443"})
		}},
		{"code is containerized", nil, "code_runner", nil, func(c writ.Confinement) bool { return c.Isolation == writ.Containerized }},
		{"code as a process", func(_ *decide.Input, a *access.Agent) { a.Constraints.CodeExecution = set(access.CodeProcess) }, "code_runner", nil,
			func(c writ.Confinement) bool { return c.Isolation == writ.Process }},
		{"state is hidden", nil, "shell_command", nil, func(c writ.Confinement) bool { return slices.Equal(c.Hide, []string{"/state"}) }},
		{"a reading tool writes nothing", nil, "read_file", nil, func(c writ.Confinement) bool { return len(c.Write) == 0 && len(c.Read) == 1 }},
		{"the operator's driver", func(in *decide.Input, _ *access.Agent) {
			in.Backends.ByCategory = map[action.Category]string{action.Terminal: "subprocess"}
		}, "shell_command", nil, func(c writ.Confinement) bool { return c.Backend == "subprocess" }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			in := input(t, tt.change)
			d, err := decide.New(in).Decide(t.Context(), call(in, tt.tool, tt.target...))
			if err != nil || !tt.want(d.Confine) {
				t.Errorf("%+v %v", d.Confine, err)
			}
		})
	}
}

// Calls share what the configuration says; none may change it for the next.
func TestCallsDoNotLeakIntoEachOther(t *testing.T) {
	in := input(t, full)
	d := decide.New(in)
	plain := call(in, "shell_command")
	before, _ := d.Decide(t.Context(), plain)
	for i := range 20 {
		c := call(in, "shell_command", path(writ.SideWrite, fmt.Sprintf("/srv/%d", i)), hostTarget("example.com:443"))
		if _, err := d.Decide(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	after, _ := d.Decide(t.Context(), plain)
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("a decision changed:\n%v\n%v", before, after)
	}
}

// I4: whatever changes the meaning of a call changes what was agreed to.
func TestSubjectBinds(t *testing.T) {
	c := writ.Call{Agent: "a", Person: "p", Session: "s", Task: "t", Tool: "x", Definition: writ.Digest{1}, Args: `{"a":1}`, Dir: "/d", Targets: []writ.Target{{Pointer: "/a", Path: "/p"}}}
	d := writ.Decision{Class: writ.ClassWrite, Policy: writ.Digest{2}, Confine: writ.Confinement{Read: []string{"/"}}}
	base, err := decide.Subject(c, d)
	if err != nil {
		t.Fatal(err)
	}
	changes := map[string]func(*writ.Call, *writ.Decision){
		"agent": func(c *writ.Call, _ *writ.Decision) { c.Agent = "b" }, "person": func(c *writ.Call, _ *writ.Decision) { c.Person = "q" },
		"session": func(c *writ.Call, _ *writ.Decision) { c.Session = "u" }, "task": func(c *writ.Call, _ *writ.Decision) { c.Task = "u" },
		"tool": func(c *writ.Call, _ *writ.Decision) { c.Tool = "y" }, "definition": func(c *writ.Call, _ *writ.Decision) { c.Definition = writ.Digest{9} },
		"args": func(c *writ.Call, _ *writ.Decision) { c.Args = `{"a":2}` }, "dir": func(c *writ.Call, _ *writ.Decision) { c.Dir = "/e" },
		"resolved path": func(c *writ.Call, _ *writ.Decision) { c.Targets = []writ.Target{{Pointer: "/a", Path: "/q"}} },
		"class":         func(_ *writ.Call, d *writ.Decision) { d.Class = writ.ClassNone },
		"danger":        func(_ *writ.Call, d *writ.Decision) { d.Dangerous = true },
		"quorum":        func(_ *writ.Call, d *writ.Decision) { d.Quorum = 2 },
		"policy":        func(_ *writ.Call, d *writ.Decision) { d.Policy = writ.Digest{3} },
		"write reach":   func(_ *writ.Call, d *writ.Decision) { d.Confine.Write = []string{"/"} },
		"named":         func(_ *writ.Call, d *writ.Decision) { d.Confine.Named = []string{"/.vscode"} },
		"hidden":        func(_ *writ.Call, d *writ.Decision) { d.Confine.Hide = []string{"/h"} },
		"hosts":         func(_ *writ.Call, d *writ.Decision) { d.Confine.Network.Hosts = []string{"h:1"} },
		"programs":      func(_ *writ.Call, d *writ.Decision) { d.Confine.Exec.Mode = writ.ExecAny },
		"isolation":     func(_ *writ.Call, d *writ.Decision) { d.Confine.Isolation = writ.Process },
		"connection":    func(_ *writ.Call, d *writ.Decision) { d.Confine.Connection = &writ.Connection{Auth: "env:T"} },
		"backend":       func(_ *writ.Call, d *writ.Decision) { d.Confine.Backend = "docker" },
	}
	for name, change := range changes {
		c2, d2 := c, d
		change(&c2, &d2)
		if got, err := decide.Subject(c2, d2); err != nil || got == base {
			t.Errorf("%s does not change the digest (%v)", name, err)
		}
	}
	same := c
	same.ID, same.Patience, same.Door = "other", 5, "cli"
	if got, _ := decide.Subject(same, d); got != base {
		t.Error("the same call made again has another digest")
	}
}

func TestVisible(t *testing.T) {
	in := input(t, func(in *decide.Input, a *access.Agent) {
		in.Rules["stat"] = decide.Rule{Disabled: set(true)}
		a.Constraints.Terminal = set(access.NoTerminal)
	})
	d := decide.New(in)
	for name, want := range map[string]bool{"read_file": true, "stat": false, "shell_command": false, "nothing": false} {
		if d.Visible("coder", name) != want {
			t.Errorf("%s visible: %v", name, !want)
		}
	}
	if d.Visible("stranger", "read_file") {
		t.Error("a stranger sees tools")
	}
}

// manyTools is a catalog of the size the target is stated for.
func manyTools(b testing.TB, n int) []*tool.Tool {
	var out []*tool.Tool
	for i := range n {
		t, err := tool.New(tool.Definition{
			Name: fmt.Sprintf("tool_%d", i), Category: action.FileSystem, Action: "code:read", Class: writ.ClassNone,
			Policy: policy.Policy{Files: policy.Files{Read: policy.Paths("/**")}},
			Schema: []byte(`{"type":"object","properties":{"path":{"type":"string","x-writ-path":"read"}}}`),
		}, files1(b).Run)
		if err != nil {
			b.Fatal(err)
		}
		out = append(out, t)
	}
	return out
}

func BenchmarkDecide(b *testing.B) {
	in := input(b, func(in *decide.Input, _ *access.Agent) { in.Tools = manyTools(b, 100) })
	for i := range 19 {
		a := in.Agents[0]
		a.Name = fmt.Sprintf("agent_%d", i)
		in.Agents = append(in.Agents, a)
	}
	d := decide.New(in)
	c := call(in, "tool_57", path(writ.SideRead, "/ws/app/src/main.go"))
	b.ReportAllocs()
	for b.Loop() {
		if got, err := d.Decide(b.Context(), c); err != nil || got.Effect != writ.Allow {
			b.Fatal(got, err)
		}
	}
}

func BenchmarkDecideDeny(b *testing.B) {
	in := input(b, func(in *decide.Input, _ *access.Agent) { in.Tools = manyTools(b, 100) })
	d := decide.New(in)
	c := call(in, "tool_57", path(writ.SideRead, "/etc/"+strings.Repeat("x", 40)))
	b.ReportAllocs()
	for b.Loop() {
		if got, err := d.Decide(b.Context(), c); err != nil || got.Effect != writ.Deny {
			b.Fatal(got, err)
		}
	}
}

// Who is asked about a call is told which hosts make it class write, and what would not.
func TestTalkingIsNamed(t *testing.T) {
	in := input(t, nil)
	d := decide.New(in)
	for _, c := range []struct {
		hosts []string
		want  string
	}{
		{[]string{"example.test:443"}, `it talks to example.test:443, which counts as write (class write); egress.hosts."example.test".class: read_only would say otherwise`},
		{[]string{"a.test:80", "b.test:443", "c.test:443", "d.test:443"}, `it talks to a.test:80, b.test:443, c.test:443 and 1 more, which counts as write (class write); egress.hosts."a.test:80".class: read_only would say otherwise`},
	} {
		var targets []writ.Target
		for _, h := range c.hosts {
			targets = append(targets, hostTarget(h))
		}
		out, err := d.Decide(t.Context(), call(in, "shell_command", targets...))
		if err != nil || !slices.ContainsFunc(out.Reasons, func(r writ.Reason) bool { return r.Source == "egress_class" && r.Text == c.want }) {
			t.Errorf("%v: %v %v", c.hosts, out.Reasons, err)
		}
	}
}
