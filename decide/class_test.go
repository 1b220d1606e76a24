package decide_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// classed is a tool of one class; with writes, one that declares that it writes there.
func classed(t testing.TB, class writ.Class, dangerous bool, writes ...string) *tool.Tool {
	t.Helper()
	d := tool.Definition{Name: "x", Category: action.Analytics, Action: "code:read", Class: class, Dangerous: dangerous, Runs: tool.InBox, Schema: json.RawMessage(`{"type":"object"}`)}
	if writes != nil {
		d.Policy.Files.Write = policy.Paths(writes...)
	}
	made, err := tool.New(d, func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func decideOn(t testing.TB, in decide.Input, targets ...writ.Target) writ.Decision {
	t.Helper()
	d, err := decide.New(in).Decide(context.Background(), call(in, "x", targets...))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// What a tool counts as is the highest of what is said of it; a waiver stands for its
// definition and for the registry, never for the operator, nor for what a call asks for.
func TestStanding(t *testing.T) {
	none, readOnly, write := writ.ClassNone, writ.ClassReadOnly, writ.ClassWrite
	atLeast := func(c writ.Class) *access.Set[writ.Class] { s := set(c); return &s }
	waived := func(c writ.Class, dangerous bool) *decide.Registered {
		return &decide.Registered{Class: c, Dangerous: dangerous, Waiver: "w1"}
	}
	was := func(c writ.Class, dangerous bool) *decide.Registered {
		return &decide.Registered{Class: c, Dangerous: dangerous}
	}
	elsewhere := []writ.Target{path(writ.SideWrite, "/srv/out/y")}
	for _, c := range []struct {
		name       string
		tool       *tool.Tool
		registered *decide.Registered
		rule       decide.Rule
		targets    []writ.Target
		want       string   // effect, class, dangerous, quorum
		says       []string // "source: text", of these
	}{
		{"none runs", classed(t, none, false), was(none, false), decide.Rule{}, nil, "allow none false 1", nil},
		{"write asks", classed(t, write, false), was(write, false), decide.Rule{}, nil, "ask write false 1", []string{"egress_class: it changes something outside the workspace (class write)"}},
		{"write that is not in the registry asks", classed(t, write, false), nil, decide.Rule{}, nil, "ask write false 1", nil},
		{"none that was write asks", classed(t, none, false), was(write, false), decide.Rule{}, nil, "ask write false 1",
			[]string{"registry: tool x was of class write and says none now; the higher one holds until a person waives it: writ tool waive x --class none"}},
		{"none that was read_only", classed(t, none, false), was(readOnly, false), decide.Rule{}, nil, "allow read_only false 1", nil},
		{"a registry that is behind does not lower", classed(t, write, false), was(none, false), decide.Rule{}, nil, "ask write false 1", nil},
		{"waived", classed(t, write, false), waived(none, false), decide.Rule{}, nil, "allow none false 1", []string{"waiver: a person let tool x count as class none"}},
		{"waived, raised by the operator", classed(t, write, false), waived(none, false), decide.Rule{Class: atLeast(write)}, nil, "ask write false 1", []string{"tools: tool x counts as class write"}},
		{"raised to read_only by the operator", classed(t, none, false), was(none, false), decide.Rule{Class: atLeast(readOnly)}, nil, "allow read_only false 1", []string{"tools: tool x counts as class read_only"}},
		{"the operator does not lower", classed(t, write, false), was(write, false), decide.Rule{Class: atLeast(none)}, nil, "ask write false 1", nil},
		{"dangerous asks", classed(t, none, true), was(none, true), decide.Rule{}, nil, "ask none true 1", []string{"dangerous: tool x is dangerous"}},
		{"was dangerous", classed(t, none, false), was(none, true), decide.Rule{}, nil, "ask none true 1",
			[]string{"registry: tool x was dangerous and does not say so any more; that holds until a person waives it: writ tool waive x --not-dangerous"}},
		{"dangerous by the operator", classed(t, none, false), was(none, false), decide.Rule{Dangerous: set(true)}, nil, "ask none true 1", []string{"dangerous: tool x is dangerous"}},
		{"danger waived", classed(t, none, true), waived(none, false), decide.Rule{}, nil, "allow none false 1", []string{"waiver: a person let tool x count as class none, and as not dangerous"}},
		{"danger waived, raised by the operator", classed(t, none, true), waived(none, false), decide.Rule{Dangerous: set(true)}, nil, "ask none true 1", nil},
		{"class waived, danger not", classed(t, write, true), waived(none, true), decide.Rule{}, nil, "ask none true 1", nil},
		{"quorum", classed(t, none, false), was(none, false), decide.Rule{Quorum: 3}, nil, "allow none false 3", nil},
		{"writes elsewhere", classed(t, none, false, "/srv/out/**"), was(none, false), decide.Rule{}, nil, "ask write false 1", nil},
		{"writes elsewhere as declared, waived", classed(t, write, false, "/srv/out/**"), waived(none, false), decide.Rule{}, nil, "allow none false 1", nil},
		{"waived, and the call asks for more", classed(t, write, false, "/srv/out/**"), waived(none, false), decide.Rule{}, elsewhere, "ask write false 1", nil},
	} {
		in := input(t, func(in *decide.Input, a *access.Agent) {
			full(in, a)
			in.Tools, in.Rules["x"] = []*tool.Tool{c.tool}, c.rule
			if c.registered != nil {
				in.Registered = map[string]decide.Registered{"x": *c.registered}
			}
		})
		d := decideOn(t, in, c.targets...)
		if got := fmt.Sprint(d.Effect, d.Class, d.Dangerous, d.Quorum); got != c.want {
			t.Errorf("%s: %s, want %s\n%v", c.name, got, c.want, d.Reasons)
		}
		var said []string
		for _, r := range d.Reasons {
			said = append(said, r.Source+": "+r.Text)
		}
		for _, want := range c.says {
			if !strings.Contains(strings.Join(said, "\n")+"\n", want+"\n") {
				t.Errorf("%s: does not say %q\n%q", c.name, want, said)
			}
		}
	}
}

// A call that reads may run again, unless something raised its class.
func TestReads(t *testing.T) {
	for name, c := range map[string]struct {
		class writ.Class
		act   action.Type
		want  bool
	}{
		"reads inside":    {writ.ClassNone, "code:read", true},
		"reads outside":   {writ.ClassReadOnly, "web:read", true},
		"changes inside":  {writ.ClassNone, "code:write", false},
		"reads and write": {writ.ClassWrite, "code:read", false},
	} {
		x := classed(t, c.class, false)
		made, err := tool.New(tool.Definition{Name: "x", Category: x.Category, Action: c.act, Class: c.class, Schema: x.Schema}, x.Run)
		if err != nil {
			t.Fatal(err)
		}
		in := input(t, func(in *decide.Input, _ *access.Agent) { in.Tools = []*tool.Tool{made} })
		if d := decideOn(t, in); d.Reads != c.want {
			t.Errorf("%s: %v", name, d.Reads)
		}
	}
}

// The base is the same for every call of a pair, and another when what all of them may
// reach is; there is none where nobody is asked.
func TestBase(t *testing.T) {
	in := input(t, func(in *decide.Input, a *access.Agent) {
		full(in, a)
		in.Tools = []*tool.Tool{classed(t, writ.ClassWrite, false, "/srv/out/**")}
	})
	one, other := decideOn(t, in), decideOn(t, in, path(writ.SideWrite, "/srv/out/y"))
	if one.Base.IsZero() || one.Base != other.Base || one.Subject == other.Subject {
		t.Errorf("%v, %v", one.Base, other.Base)
	}
	for name, change := range map[string]func(*decide.Input){
		"reach": func(in *decide.Input) { in.Hide = []string{"/other"} },
		"class": func(in *decide.Input) {
			in.Registered = map[string]decide.Registered{"x": {Class: writ.ClassNone, Dangerous: true, Waiver: "w"}}
		},
		"limits": func(in *decide.Input) { in.Limits.Wall = 1 },
	} {
		changed := in
		change(&changed)
		if d := decideOn(t, changed); d.Effect != writ.Ask || d.Base == one.Base {
			t.Errorf("%s does not change the base", name)
		}
	}
	in.Tools = []*tool.Tool{classed(t, writ.ClassNone, false)}
	if d := decideOn(t, in); d.Effect != writ.Allow || !d.Base.IsZero() {
		t.Errorf("%s with base %v", d.Effect, d.Base)
	}
}

// What a parent is asked about, its child is; the danger of a tool is the same for all.
func TestStandingInAChain(t *testing.T) {
	in := input(t, func(in *decide.Input, _ *access.Agent) {
		in.Tools = []*tool.Tool{classed(t, writ.ClassNone, true, "/srv/out/**")}
	})
	child := in.Agents[0]
	child.Name, child.Parent = "child", "coder"
	in.Agents[0].Constraints.FileSystem = set(access.FullFileSystem) // for the parent alone it writes elsewhere
	in.Agents = append(in.Agents, child)
	c := call(in, "x")
	c.Agent = "child"
	d, err := decide.New(in).Decide(context.Background(), c)
	if err != nil || d.Class != writ.ClassWrite || !d.Dangerous || d.Effect != writ.Ask {
		t.Errorf("%v: %s %s dangerous %v", err, d.Effect, d.Class, d.Dangerous)
	}
}
