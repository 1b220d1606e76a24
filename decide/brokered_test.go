package decide_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// Where the broker sees the methods, a reading one only reads, unless the operator wrote
// otherwise of the host; any other is a write, whatever was written. Where it does not
// see them, talking to a host counts as write.
func TestBrokered(t *testing.T) {
	pattern := func(text string) host.Pattern {
		p, err := host.ParsePattern(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	in := input(t, func(in *decide.Input, a *access.Agent) {
		a.Constraints.Network = set(access.OpenNetwork)
		in.Hosts = []decide.HostClass{
			{Host: pattern("trusted.example"), Class: writ.ClassReadOnly, Stated: true},
			{Host: pattern("careful.example"), Class: writ.ClassWrite, Stated: true},
			{Host: pattern("inner.example"), Class: writ.ClassWrite},
		}
		for _, d := range []struct {
			name     string
			brokered bool
		}{{"request", true}, {"dials", false}} {
			made, err := tool.New(tool.Definition{
				Name: d.name, Category: action.Web, Action: "comms:external", Class: writ.ClassNone, Brokered: d.brokered,
				ActionBy: &tool.ActionBy{Argument: "method", Types: map[string]action.Type{"GET": "web:read"}},
				Policy:   policy.Policy{Network: policy.Network{Stance: policy.All}}, Schema: json.RawMessage(`{"type":"object"}`), Runner: tool.Runner{Kind: tool.Builtin},
			}, func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil })
			if err != nil {
				t.Fatal(err)
			}
			in.Tools = append(in.Tools, made)
		}
	})
	d := decide.New(in)
	for _, c := range []struct {
		tool, act, host string
		effect          writ.Effect
		class           writ.Class
	}{
		{"request", "web:read", "any.example:443", writ.Allow, writ.ClassReadOnly},
		{"request", "web:read", "trusted.example:443", writ.Allow, writ.ClassReadOnly},
		{"request", "web:read", "inner.example:443", writ.Allow, writ.ClassReadOnly},
		{"request", "web:read", "careful.example:443", writ.Ask, writ.ClassWrite},
		{"request", "web:read", "", writ.Allow, writ.ClassNone},
		{"request", "comms:external", "any.example:443", writ.Ask, writ.ClassWrite},
		{"request", "comms:external", "trusted.example:443", writ.Ask, writ.ClassWrite},
		{"dials", "web:read", "any.example:443", writ.Ask, writ.ClassWrite},
		{"dials", "web:read", "trusted.example:443", writ.Allow, writ.ClassReadOnly},
		{"dials", "web:read", "inner.example:443", writ.Ask, writ.ClassWrite},
	} {
		var targets []writ.Target
		if c.host != "" {
			targets = []writ.Target{{Pointer: "/url", Kind: writ.TargetHost, Host: c.host}}
		}
		asked := call(in, c.tool, targets...)
		asked.Action = c.act
		got, err := d.Decide(t.Context(), asked)
		if err != nil || got.Effect != c.effect || got.Class != c.class {
			t.Errorf("%s %s %s: %v, %v, %v %v", c.tool, c.act, c.host, got.Effect, got.Class, err, got.Reasons)
		}
	}
}

// Nobody but the program itself can say that its requests are seen.
func TestBrokeredIsBuiltIn(t *testing.T) {
	run := func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil }
	for _, d := range []tool.Definition{
		{Runner: tool.Runner{Kind: tool.Library}}, {Runner: tool.Runner{Kind: tool.MCP}}, {Runner: tool.Runner{Kind: tool.Builtin}, Runs: tool.InBox},
	} {
		d.Name, d.Brokered, d.Schema = "x", true, json.RawMessage(`{"type":"object"}`)
		if _, err := tool.New(d, run); err == nil {
			t.Errorf("%+v was taken", d.Runner)
		}
	}
}
