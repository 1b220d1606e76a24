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

// A connection is the operator's permission for its host; a method says what is done
// there, and only raises.
func TestConnections(t *testing.T) {
	api := decide.Connection{Host: "api.example:443", Reach: writ.Connection{Name: "api", URL: "https://api.example", Auth: "bearer token env:T", Digest: writ.Digest{7}}}
	via := writ.Target{Pointer: "/connection", Value: "api", Kind: writ.TargetConnection, Host: "api.example:443"}
	method := func(m string) writ.Target { return writ.Target{Pointer: "/method", Value: m, Kind: writ.TargetMethod} }
	for name, c := range map[string]struct {
		change  func(*decide.Input, *access.Agent, *decide.Connection)
		targets []writ.Target
		want    string // effect, class, and one reason of that effect
	}{
		"reads":            {nil, []writ.Target{via}, "allow read_only"},
		"GET":              {nil, []writ.Target{via, method("GET")}, "allow read_only"},
		"HEAD, OPTIONS":    {nil, []writ.Target{via, method("HEAD"), method("OPTIONS")}, "allow read_only"},
		"POST":             {nil, []writ.Target{via, method("POST")}, "ask write it changes something"},
		"POST comes first": {nil, []writ.Target{method("POST"), via}, "ask write it changes something"},
		"a later GET":      {nil, []writ.Target{via, method("POST"), method("GET")}, "ask write it changes something"},
		"unknown":          {nil, []writ.Target{via, method("PROPFIND")}, "ask write it changes something"},
		"small letters":    {nil, []writ.Target{via, method("get")}, "ask write it changes something"},
		"not on the allowlist": {func(_ *decide.Input, a *access.Agent, _ *decide.Connection) {
			a.Constraints.Network, a.Constraints.Allowlist = set(access.AllowlistOnly), set(host.Patterns{})
		}, []writ.Target{via}, "allow read_only"},
		"no network": {func(_ *decide.Input, a *access.Agent, _ *decide.Connection) {
			a.Constraints.Network = set(access.NoNetwork)
		}, []writ.Target{via}, "deny read_only network: none"},
		"sensitive": {func(_ *decide.Input, _ *access.Agent, c *decide.Connection) { c.Sensitive = set(true) },
			[]writ.Target{via}, "ask read_only is sensitive"},
		"for it":      {func(_ *decide.Input, a *access.Agent, c *decide.Connection) { c.Agents = set([]string{a.Name}) }, []writ.Target{via}, "allow read_only"},
		"for another": {func(_ *decide.Input, _ *access.Agent, c *decide.Connection) { c.Agents = set([]string{"other"}) }, []writ.Target{via}, "deny read_only is not for agent"},
		"leads elsewhere": {func(_ *decide.Input, _ *access.Agent, c *decide.Connection) { c.Host = "evil.example:443" },
			[]writ.Target{via}, "deny none is not what it was"},
		"not there":   {func(in *decide.Input, _ *access.Agent, _ *decide.Connection) { in.Connections = nil }, []writ.Target{via}, "deny none is not what it was"},
		"two of them": {nil, []writ.Target{via, via}, "deny read_only is not what it was"},
		"the operator says write": {func(in *decide.Input, _ *access.Agent, _ *decide.Connection) {
			p, err := host.ParsePattern("api.example")
			if err != nil {
				t.Fatal(err)
			}
			in.Hosts = []decide.HostClass{{Host: p, Class: writ.ClassWrite, Stated: true}}
		}, []writ.Target{via}, "ask write it changes something"},
	} {
		in := input(t, func(in *decide.Input, a *access.Agent) {
			full(in, a)
			in.Tools = []*tool.Tool{classed(t, writ.ClassNone, false)}
			n := api
			in.Connections = map[string]decide.Connection{}
			if c.change != nil {
				c.change(in, a, &n)
			}
			if in.Connections != nil {
				in.Connections["api"] = n
			}
		})
		d, err := decide.New(in).Decide(context.Background(), call(in, "x", c.targets...))
		if err != nil {
			t.Fatal(err)
		}
		got := d.Effect.String() + " " + d.Class.String()
		said := slices.ContainsFunc(d.Reasons, func(r writ.Reason) bool {
			return r.Effect == d.Effect && strings.Contains(r.Text, strings.TrimSpace(strings.TrimPrefix(c.want, got)))
		})
		if !strings.HasPrefix(c.want, got) || !said {
			t.Errorf("%s: %s, want %s: %v", name, got, c.want, d.Reasons)
		}
		if n := d.Confine.Network; d.Effect != writ.Deny && (!slices.Equal(n.Hosts, []string{"api.example:443"}) || d.Confine.Connection == nil || d.Confine.Connection.Digest != api.Reach.Digest) {
			t.Errorf("%s: it reaches %+v over %+v", name, n, d.Confine.Connection)
		}
	}
}
