package decide_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/tool"
)

// A call signs in where the operator lends its agent a key, its tool declares that it does,
// and it reaches that server. It opens nothing, and a person agrees to that user and key.
func TestSignIns(t *testing.T) {
	const forge = "forge.example:22"
	lent := func(agents ...string) decide.SignIn {
		return decide.SignIn{Reach: writ.SignIn{Host: forge, User: "git", Key: "store:k"}, Agents: set(agents)}
	}
	declares := func(secrets ...string) func(*decide.Input) {
		return func(in *decide.Input) {
			i := slices.IndexFunc(in.Tools, func(t *tool.Tool) bool { return t.Name == "shell_command" })
			changed := *in.Tools[i]
			changed.Policy.Secrets = secrets
			in.Tools[i] = &changed
		}
	}
	read := hostTarget(forge)
	read.Side = writ.SideRead
	decided := func(agent string, change func(*decide.Input), with decide.SignIn, targets ...writ.Target) writ.Decision {
		t.Helper()
		in := input(t, func(in *decide.Input, a *access.Agent) {
			full(in, a)
			a.Constraints.Network, a.Constraints.Terminal = set(access.OpenNetwork), set(access.FullTerminal)
			in.SignIns = map[string]decide.SignIn{forge: with}
			if change != nil {
				change(in)
			}
		})
		child := in.Agents[0]
		child.Name, child.Parent = "child", "coder"
		in.Agents = append(in.Agents, child)
		c := call(in, "shell_command", targets...)
		c.Agent = agent
		d, err := decide.New(in).Decide(context.Background(), c)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, c := range map[string]struct {
		agent   string
		change  func(*decide.Input)
		with    decide.SignIn
		targets []writ.Target
		want    bool
	}{
		"lent":                       {"coder", nil, lent("other", "coder"), []writ.Target{hostTarget(forge)}, true},
		"named twice":                {"coder", nil, lent("coder"), []writ.Target{hostTarget(forge), hostTarget(forge)}, true},
		"among others":               {"coder", nil, lent("coder"), []writ.Target{hostTarget("a.example:443"), hostTarget(forge)}, true},
		"to the one above":           {"child", nil, lent("coder"), []writ.Target{hostTarget(forge)}, true},
		"to the one below":           {"child", nil, lent("child"), []writ.Target{hostTarget(forge)}, false},
		"to another":                 {"coder", nil, lent("other"), []writ.Target{hostTarget(forge)}, false},
		"to nobody":                  {"coder", nil, lent(), []writ.Target{hostTarget(forge)}, false},
		"not reached":                {"coder", nil, lent("coder"), nil, false},
		"another port":               {"coder", nil, lent("coder"), []writ.Target{hostTarget("forge.example:443")}, false},
		"only read from":             {"coder", nil, lent("coder"), []writ.Target{read}, false},
		"declared for it":            {"coder", declares("ssh:other.example", "ssh:forge.example"), lent("coder"), []writ.Target{hostTarget(forge)}, true},
		"declared for another":       {"coder", declares("ssh:other.example"), lent("coder"), []writ.Target{hostTarget(forge)}, false},
		"declared for another port":  {"coder", declares("ssh:forge.example:2222"), lent("coder"), []writ.Target{hostTarget(forge)}, false},
		"not declared":               {"coder", declares(), lent("coder"), []writ.Target{hostTarget(forge)}, false},
		"a tool that runs in no box": {"coder", outOfBox, lent("coder"), []writ.Target{hostTarget(forge)}, false},
	} {
		d := decided(c.agent, c.change, c.with, c.targets...)
		if d.Effect == writ.Deny {
			t.Errorf("%s: %v", name, d.Reasons)
		}
		said := slices.ContainsFunc(d.Reasons, func(r writ.Reason) bool {
			return r.Source == "ssh" && strings.Contains(r.Text, "as git") && !strings.Contains(r.Text, "store:k")
		})
		if unlent := slices.ContainsFunc(d.Reasons, func(r writ.Reason) bool {
			return r.Source == "ssh" && strings.Contains(r.Text, "is not lent to commands of")
		}); unlent != (strings.HasPrefix(name, "to ") && !c.want) {
			t.Errorf("%s: %v", name, d.Reasons)
		}
		if other := slices.ContainsFunc(d.Reasons, func(r writ.Reason) bool {
			return r.Source == "ssh" && r.Text == "it does not sign in at forge.example:443: the key is lent for forge.example:22, which the call would have to name"
		}); other != (name == "another port") {
			t.Errorf("%s: %v", name, d.Reasons)
		}
		if got := slices.Equal(d.Confine.SSH, []writ.SignIn{lent().Reach}); got != c.want || said != c.want || !c.want && len(d.Confine.SSH) > 0 {
			t.Errorf("%s: %+v %v", name, d.Confine.SSH, d.Reasons)
		}
	}
	asked := decided("coder", nil, lent("coder"), hostTarget(forge))
	if asked.Effect != writ.Ask || asked.Class != writ.ClassWrite {
		t.Errorf("signing in is %s %s", asked.Effect, asked.Class)
	}
	for what, change := range map[string]func(*decide.SignIn){
		"user": func(s *decide.SignIn) { s.Reach.User = "root" }, "key": func(s *decide.SignIn) { s.Reach.Key = "store:other" }, "being lent it": func(s *decide.SignIn) { s.Agents = set([]string{}) },
	} {
		other := lent("coder")
		change(&other)
		if d := decided("coder", nil, other, hostTarget(forge)); d.Subject == asked.Subject {
			t.Errorf("an approval does not bind the %s", what)
		}
	}
	stated := decided("coder", func(in *decide.Input) {
		p, err := host.ParsePattern(forge)
		if err != nil {
			t.Fatal(err)
		}
		in.Hosts = []decide.HostClass{{Host: p, Class: writ.ClassReadOnly, Stated: true}}
	}, lent("coder"), hostTarget(forge))
	if stated.Class != writ.ClassReadOnly || len(stated.Confine.SSH) != 1 {
		t.Errorf("the operator's class does not count: %s", stated.Class)
	}
}

// outOfBox has the tool run in this process.
func outOfBox(in *decide.Input) {
	i := slices.IndexFunc(in.Tools, func(t *tool.Tool) bool { return t.Name == "shell_command" })
	changed := *in.Tools[i]
	changed.Runs = tool.InProcess
	in.Tools[i] = &changed
}
