package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/disclose"
)

const family = `version: 1
listen: 127.0.0.1:0
store: {path: $DIR/state}
workspaces: {main: {path: $DIR/ws}}
agents:
  coder: {workspace: main, level: LEVEL, person: alice}
`

func level(l access.Level) *access.Level { return &l }

func list(names ...string) *[]string { return &names }

// child delegates from a caller and authenticates the child.
func (f *fixture) child(who Caller, label string, r config.Request) Caller {
	f.t.Helper()
	c := Call{}
	as(who)(&c)
	d, err := f.Delegate(f.t.Context(), c, label, time.Hour, r)
	f.must(err)
	got, err := f.Authenticate(d.Token)
	f.must(err)
	if !strings.HasPrefix(got.Agent, who.Agent+"/"+label+"-") {
		f.t.Errorf("child is called %s", got.Agent)
	}
	return got
}

func visible(f *fixture, who Caller) []string {
	var names []string
	for _, t := range f.Tools(who.Agent) {
		if disclose.Discovery(t.Name) { // everybody has it
			continue
		}
		names = append(names, t.Name)
	}
	return names
}

// A child asks for what it likes and gets no more than its parent has now; it acts
// for the same person, in the same session.
func TestDelegate(t *testing.T) {
	f := newFixture(t, strings.Replace(family, "LEVEL", "standard", 1), Options{Tools: []Tool{probe("look", "code:read", nil)}})
	_, parent := f.token("coder")
	_, err := f.call("look", args(1), as(parent))
	f.must(err)
	free := config.Request{Level: level(access.Elevated)}
	kid := f.child(parent, "kid", free)
	if got, want := visible(f, kid), visible(f, parent); !slices.Equal(got, want) {
		t.Errorf("a child that asks for everything sees %v, its parent %v", got, want)
	}
	narrow := f.child(kid, "reader", config.Request{Allowed: list("read_file", "shell_command"), Denied: []string{"shell_command"}})
	if got := visible(f, narrow); !slices.Equal(got, []string{"read_file"}) {
		t.Errorf("grandchild sees %v", got)
	}
	wide := f.child(narrow, "greedy", config.Request{Level: level(access.Elevated), Allowed: list("*")})
	if got := visible(f, wide); !slices.Equal(got, []string{"read_file"}) {
		t.Errorf("great-grandchild sees %v", got)
	}
	_, err = f.call("look", args(1), as(wide))
	wants(t, err, writ.Denied, "by parent "+narrow.Agent)
	// The parent is narrowed: everybody below follows, in mid-session.
	f.write("writ.yaml", strings.Replace(family, "LEVEL", "custom, allowed: [look]", 1))
	_, err = f.Reload(t.Context())
	f.must(err)
	if got := visible(f, kid); !slices.Equal(got, []string{"look"}) {
		t.Errorf("after narrowing the child sees %v", got)
	}
	if got := visible(f, narrow); len(got) != 0 {
		t.Errorf("after narrowing the grandchild sees %v", got)
	}
	_, err = f.call("look", args(1), as(kid))
	f.must(err)
	tree, err := f.Tree(t.Context())
	f.must(err)
	if len(tree) != 1 || tree[0].Children[0].Children[0].Name != narrow.Agent || len(tree[0].Children[0].Children[0].Tools) != 0 {
		t.Errorf("%+v", tree)
	}
}

// What ends a child: its parent, its time, its parent's token, the session, a stop,
// the parent's removal. Its token is then good for nothing, also for a delegation of
// its own.
func TestDelegationEnds(t *testing.T) {
	text := strings.Replace(family, "LEVEL", "standard", 1)
	ends := map[string]func(f *fixture, parent, kid Caller){
		"ended by its parent":    func(f *fixture, p, kid Caller) { f.must(f.EndDelegation(t.Context(), p.Agent, kid.Agent)) },
		"its time is over":       func(f *fixture, _, _ Caller) { f.pass(time.Hour) },
		"swept":                  func(f *fixture, _, _ Caller) { f.pass(time.Hour); f.must(f.sweepOnce(t.Context())) },
		"parent's token revoked": func(f *fixture, p, _ Caller) { f.must(f.RevokeToken(t.Context(), p.Token)) },
		"its own token revoked":  func(f *fixture, _, kid Caller) { f.must(f.RevokeToken(t.Context(), kid.Token)) },
		"the session ended": func(f *fixture, p, _ Caller) {
			f.must(f.EndSession(t.Context(), "", p.Token+"/coder/2026-03-01", "revoked"))
		},
		"the parent is not there": func(f *fixture, _, _ Caller) {
			f.write("writ.yaml", strings.Replace(strings.Replace(text, "coder:", "other:", 1), "standard", "standard", 1))
			_, err := f.Reload(t.Context())
			f.must(err)
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, text, Options{Tools: []Tool{probe("look", "code:read", nil)}})
			_, parent := f.token("coder")
			c := Call{}
			as(parent)(&c)
			d, err := f.Delegate(t.Context(), c, "kid", time.Hour, config.Request{})
			f.must(err)
			kid, err := f.Authenticate(d.Token)
			f.must(err)
			grand := f.child(kid, "grand", config.Request{})
			for _, who := range []Caller{kid, grand} {
				_, err = f.call("look", args(1), as(who))
				f.must(err)
			}
			end(f, parent, kid)
			if _, err := f.Authenticate(d.Token); writ.KindOf(err) != writ.Unauthenticated {
				t.Errorf("the token is still good: %v", err)
			}
			for _, who := range []Caller{kid, grand} {
				if _, err := f.call("look", args(1), as(who)); err == nil {
					t.Errorf("%s still calls", who.Agent)
				}
			}
			as(kid)(&c)
			if _, err := f.Delegate(t.Context(), c, "more", time.Hour, config.Request{}); err == nil {
				t.Error("it still delegates")
			}
			f.reopen(Options{Tools: []Tool{probe("look", "code:read", nil)}})
			if _, err := f.Authenticate(d.Token); writ.KindOf(err) != writ.Unauthenticated {
				t.Errorf("after a restart the token is good: %v", err)
			}
		})
	}
}

// A stop of a parent stops everybody below, and ends what they run.
func TestStopReachesDescendants(t *testing.T) {
	began := make(chan struct{}, 1)
	o := Options{Tools: []Tool{probe("look", "code:read", nil), probe("long", "code:read", func(ctx context.Context, _ json.RawMessage) (writ.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		return writ.Result{}, context.Cause(ctx)
	})}}
	f := newFixture(t, strings.Replace(family, "LEVEL", "standard", 1), o)
	_, parent := f.token("coder")
	grand := f.child(f.child(parent, "kid", config.Request{}), "grand", config.Request{})
	done := make(chan error)
	go func() {
		_, err := f.call("long", args(1), as(grand))
		done <- err
	}()
	<-began
	f.must(f.Stop(t.Context(), "coder", "enough"))
	wants(t, <-done, writ.Stopped, "agent coder is stopped")
	_, err := f.call("look", args(1), as(grand))
	wants(t, err, writ.Stopped, "agent coder is stopped")
	f.must(f.Lift(t.Context(), "coder", f.alice()))
	_, err = f.call("look", args(1), as(grand))
	f.must(err)
}

// A parent that is revoked in mid-call takes its child's call along.
func TestParentRevokedMidCall(t *testing.T) {
	began := make(chan struct{}, 1)
	o := Options{Tools: []Tool{probe("long", "code:read", func(ctx context.Context, _ json.RawMessage) (writ.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		return writ.Result{}, context.Cause(ctx)
	})}}
	f := newFixture(t, strings.Replace(family, "LEVEL", "standard", 1), o)
	_, parent := f.token("coder")
	kid := f.child(parent, "kid", config.Request{})
	done := make(chan error)
	go func() {
		_, err := f.call("long", args(1), as(kid))
		done <- err
	}()
	<-began
	f.must(f.RevokeToken(t.Context(), parent.Token))
	wants(t, <-done, writ.Denied, "has ended")
}

func TestDelegateRefused(t *testing.T) {
	f := newFixture(t, strings.Replace(family, "LEVEL", "standard", 1), Options{})
	_, parent := f.token("coder")
	c := Call{}
	as(parent)(&c)
	for _, tt := range []struct {
		name  string
		label string
		lasts time.Duration
		r     config.Request
		kind  writ.Kind
		text  string
	}{
		{"no name", "", time.Hour, config.Request{}, writ.Invalid, "name: use letters"},
		{"a path for a name", "../x", time.Hour, config.Request{}, writ.Invalid, "name: use letters"},
		{"a long name", strings.Repeat("x", 33), time.Hour, config.Request{}, writ.Invalid, "at most 32"},
		{"no time", "kid", 0, config.Request{}, writ.Invalid, "lasts: a delegation lasts from 1s to 24h0m0s"},
		{"too long", "kid", 25 * time.Hour, config.Request{}, writ.Invalid, "lasts: a delegation lasts"},
		{"unknown role", "kid", time.Hour, config.Request{Role: "boss"}, writ.Invalid, `role: unknown role "boss"`},
		{"unknown word", "kid", time.Hour, config.Request{Allowed: list("fs_raed!")}, writ.Invalid, `allowed[0]: unknown list entry "fs_raed!"`},
		{"denies discovery", "kid", time.Hour, config.Request{Denied: []string{"list_tools"}}, writ.Invalid, "denies discovery"},
		{"denies nothing", "kid", time.Hour, config.Request{Denied: []string{"reed_file"}}, writ.Invalid, "there is no tool \"reed_file\" to deny"},
		{"elsewhere", "kid", time.Hour, config.Request{Directory: "../.."}, writ.Invalid, "is not a directory inside the workspace"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := f.Delegate(t.Context(), c, tt.label, tt.lasts, tt.r)
			wants(t, err, tt.kind, tt.text)
		})
	}
	wants(t, f.EndDelegation(t.Context(), "coder", "coder"), writ.NotFound, "there is no delegated agent")
	for range maxChildren {
		f.child(parent, "kid", config.Request{})
	}
	_, err := f.Delegate(t.Context(), c, "kid", time.Hour, config.Request{})
	wants(t, err, writ.Conflict, "has 32 children, or there are 256 agents below")
	_, err = f.OpenSession(t.Context(), Call{Agent: f.Tree1().Name}, "x")
	wants(t, err, writ.Denied, "works in its parent's session")
}

// Tree1 is the first child of the only agent.
func (f *fixture) Tree1() Node {
	f.t.Helper()
	tree, err := f.Tree(f.t.Context())
	f.must(err)
	return tree[0].Children[0]
}
