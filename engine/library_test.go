package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
)

// report is a tool that declares where it writes.
func report(ran *[]string) Tool {
	return Tool{
		Name: "write_report", Category: action.FileSystem, Action: "docs:write", Class: writ.ClassNone,
		Policy:     policy.Policy{Risk: action.Low, Files: policy.Files{Write: policy.Paths("/**")}},
		Parameters: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["path"],"properties":{"path":{"type":"string","x-writ-path":"write"}}}`),
		Run: func(_ context.Context, args json.RawMessage) (writ.Result, error) {
			*ran = append(*ran, string(args))
			return writ.Result{Content: "written"}, nil
		},
	}
}

// Interceptors run after the gate's own decision, in order; the first that does not
// proceed wins; changed arguments are decided again; a panic denies.
func TestOnBeforeCall(t *testing.T) {
	var ran, asked []string
	say := func(name string, v Verdict) func(context.Context, writ.Call) Verdict {
		return func(_ context.Context, c writ.Call) Verdict {
			asked = append(asked, name+" "+c.Args)
			return v
		}
	}
	tests := []struct {
		name   string
		hooks  []func(context.Context, writ.Call) Verdict
		args   string
		asked  string
		ran    string
		kind   writ.Kind
		denied string
	}{
		{"proceed", []func(context.Context, writ.Call) Verdict{say("a", Proceed()), say("b", Proceed())}, `{"path":"x"}`, `a {"path":"x"} b {"path":"x"}`, `{"path":"x"}`, "", ""},
		{"first wins", []func(context.Context, writ.Call) Verdict{say("a", Refuse("not today")), say("b", Proceed())}, `{"path":"x"}`, `a {"path":"x"}`, "", writ.Denied, "denied: not today"},
		{"the zero verdict denies", []func(context.Context, writ.Call) Verdict{say("a", Verdict{})}, `{"path":"x"}`, `a {"path":"x"}`, "", writ.Denied, "denied: an interceptor refused it"},
		{"a panic denies", []func(context.Context, writ.Call) Verdict{func(context.Context, writ.Call) Verdict { panic("secret") }}, `{"path":"x"}`, "", "", writ.Denied, "denied: an interceptor failed"},
		{"changed arguments run", []func(context.Context, writ.Call) Verdict{say("a", Replace([]byte(`{"path":"y"}`))), say("b", Proceed())}, `{"path":"x"}`, `a {"path":"x"} b {"path":"y"}`, `{"path":"y"}`, "", ""},
		{"changed arguments are decided again", []func(context.Context, writ.Call) Verdict{say("a", Replace([]byte(`{"path":"/etc/passwd"}`))), say("b", Proceed())}, `{"path":"x"}`, `a {"path":"x"}`, "", writ.Denied, `"/etc/passwd" is outside file_system`},
		{"changed arguments are checked", []func(context.Context, writ.Call) Verdict{say("a", Replace([]byte(`{"pfad":"x"}`)))}, `{"path":"x"}`, `a {"path":"x"}`, "", writ.Invalid, "pfad"},
		{"a denied call asks nobody", []func(context.Context, writ.Call) Verdict{say("a", Replace([]byte(`{"path":"x"}`)))}, `{"path":"/etc/passwd"}`, "", "", writ.Denied, "is outside file_system"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			ran, asked = nil, nil
			f := newFixture(t, agentsText, Options{Tools: []Tool{report(&ran)}, Hooks: Hooks{OnBeforeCall: tt.hooks}})
			_, err := f.Do(t.Context(), Call{Agent: "coder", Tool: "write_report", Args: []byte(tt.args)})
			if tt.kind != "" {
				wants(t, err, tt.kind, tt.denied)
			} else {
				f.must(err)
			}
			if strings.Join(asked, " ") != tt.asked || strings.Join(ran, " ") != tt.ran {
				t.Errorf("asked %q, ran %q", asked, ran)
			}
			if k := f.kinds(); k["call.started"] != len(ran) || k["call.refused"] != 1-len(ran) {
				t.Errorf("ledger: %v", k)
			}
		})
	}
}

// OnDenied is told of denials with every reason, OnCalled never of one, and neither
// can break a call.
func TestOnDeniedAndOnCalled(t *testing.T) {
	var ran []string
	var mu sync.Mutex
	var denied, called []string
	f := newFixture(t, agentsText, Options{Tools: []Tool{report(&ran)}, Hooks: Hooks{
		OnDenied: func(c writ.Call, reasons []writ.Reason) {
			mu.Lock()
			defer mu.Unlock()
			for _, r := range reasons {
				if r.Effect == writ.Deny {
					denied = append(denied, c.Tool+": "+r.Source)
				}
			}
			panic("mine")
		},
		OnCalled: func(c writ.Call, res writ.Result, err error) {
			called = append(called, c.Tool+": "+res.Content)
			panic("mine")
		},
	}})
	_, err := f.Do(t.Context(), Call{Agent: "coder", Tool: "write_report", Args: []byte(`{"path":"x"}`)})
	f.must(err)
	for _, args := range []string{`{"path":"/etc/x"}`, `{}`} {
		f.Do(t.Context(), Call{Agent: "coder", Tool: "write_report", Args: []byte(args)})
	}
	f.Do(t.Context(), Call{Agent: "coder", Tool: "nonsense"})
	f.Do(t.Context(), Call{Agent: "stranger", Tool: "write_report"})
	if want := []string{"write_report: written"}; !slices.Equal(called, want) {
		t.Errorf("called %v", called)
	}
	if want := []string{"write_report: file_system", "write_report: invalid_argument", ": not_found", ": not_found"}; !slices.Equal(denied, want) {
		t.Errorf("denied %v", denied)
	}
}

func TestRegister(t *testing.T) {
	var ran []string
	f := newFixture(t, agentsText, Options{})
	_, err := f.call("write_report", map[string]any{"path": "x"})
	wants(t, err, writ.NotFound, "there is no tool")
	f.must(f.Register(t.Context(), report(&ran)))
	_, err = f.call("write_report", map[string]any{"path": "x"})
	f.must(err)
	for name, bad := range map[string]Tool{
		"defined twice":           report(&ran),
		"nothing to run":          {Name: "empty"},
		"use letters, digits":     {Name: "a b", Run: report(&ran).Run},
		"(the other is read_file": {Name: "READ_FILE", Run: report(&ran).Run},
	} {
		if err := f.Register(t.Context(), bad); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A class that is not said is write, and asks.
	f.must(f.Register(t.Context(), Tool{Name: "post", Category: action.FileSystem, Run: report(&ran).Run}))
	_, err = f.call("post", map[string]any{})
	wants(t, err, writ.Pending, "a person has to approve")
	f.must(f.Register(t.Context(), probe("more", "code:read", nil))) // a refused one leaves no trace
}
