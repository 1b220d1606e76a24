package admin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
)

// counter is a source of things there are five of, which fails as it is told.
type counter struct {
	fails error
	told  []Event
	done  []Args
}

func (s *counter) Handler(name string) Handler {
	if name == "writ_health_show" {
		return nil // nothing does it yet
	}
	return func(_ context.Context, _ writ.Call, a Args) (any, error) {
		s.done = append(s.done, a)
		switch {
		case s.fails != nil:
			return nil, s.fails
		case strings.HasSuffix(name, "_list"):
			return Page([]int{1, 2, 3, 4, 5}, a), nil
		}
		return map[string]string{"is": name}, nil
	}
}

func (s *counter) Tell(e Event) { s.told = append(s.told, e) }

func (s *counter) ask(t testing.TB, name, args string, c writ.Call) writ.Result {
	t.Helper()
	for _, o := range surface() {
		if o.name == name {
			o.do, o.tell = s.Handler(name), s.Tell
			c.Args = args
			return o.answer(t.Context(), c)
		}
	}
	t.Fatalf("there is no %s", name)
	return writ.Result{}
}

var coder = writ.Call{Agent: "coder", Person: "alice"}

// Every envelope there is, to the letter, and what is told of each.
func TestEnvelopes(t *testing.T) {
	nobody, blank := writ.Call{Person: "alice"}, writ.Call{Agent: " "}
	const stop, reason = "writ_agents_stop", `,"reason":"it loops"`
	guard := func(code, why string) string {
		return `{"domain_code":"guardrail_violated","error_type":"GuardrailViolationError","message":"` + code + ": " + why + `","status":"error"}`
	}
	bad := func(why string) string {
		return `{"domain_code":"invalid_argument","error_type":"ArgumentValidationError","message":"` + why + `","status":"error"}`
	}
	actor, confirm, why := guard("missing_actor", "nobody is known to have called"), guard("missing_confirm", "set confirm to true to say that you mean it"), guard("missing_reason", "say in reason why you do it")
	forbidden := func(command string) string {
		return `{"domain_code":"forbidden","error_type":"ForbiddenError","message":"only a person does this: ` + command + `","status":"error"}`
	}
	const internal = `{"domain_code":null,"error_type":"InternalError","message":"internal error; the operator's log has the cause","status":"error"}`
	for _, c := range []struct {
		what, op, args string
		call           writ.Call
		fails          error
		want, event    string
	}{
		{"one", "writ_agents_show", `{"agent":"kid"}`, coder, nil, `{"data":{"is":"writ_agents_show"},"status":"ok"}`, ""},
		{"a list", "writ_agents_list", `{}`, coder, nil, `{"data":[1,2,3,4,5],"pagination":{"limit":50,"offset":0,"total":5},"status":"ok"}`, ""},
		{"a page", "writ_agents_list", `{"limit":2,"offset":3}`, coder, nil, `{"data":[4,5],"pagination":{"limit":2,"offset":3,"total":5},"status":"ok"}`, ""},
		{"past the end", "writ_agents_list", `{"offset":9}`, coder, nil, `{"data":[],"pagination":{"limit":50,"offset":9,"total":5},"status":"ok"}`, ""},
		{"the largest page", "writ_agents_list", `{"limit":1000}`, coder, nil, `{"data":[1,2,3,4,5],"pagination":{"limit":1000,"offset":0,"total":5},"status":"ok"}`, ""},
		{"an act", "writ_agents_end", `{"agent":"kid"}`, coder, nil, `{"data":{"is":"writ_agents_end"},"status":"ok"}`, ""},
		{"an admin act", stop, `{"agent":"kid","confirm":true` + reason + `}`, coder, nil, `{"data":{"is":"writ_agents_stop"},"status":"ok"}`, ""},

		{"nobody", "writ_agents_list", `{}`, nobody, nil, actor, GuardrailViolated + " missing_actor"},
		{"a blank name", "writ_agents_list", `{}`, blank, nil, actor, GuardrailViolated + " missing_actor"},
		{"nobody, and nothing else", stop, `{}`, nobody, nil, actor, GuardrailViolated + " missing_actor"},
		{"no confirm, no reason", stop, `{"agent":"kid"}`, coder, nil, confirm, GuardrailViolated + " missing_confirm"},
		{"no confirm", stop, `{"agent":"kid"` + reason + `}`, coder, nil, confirm, GuardrailViolated + " missing_confirm"},
		{"confirm is a number", stop, `{"agent":"kid","confirm":1` + reason + `}`, coder, nil, confirm, GuardrailViolated + " missing_confirm"},
		{"confirm is a string", stop, `{"agent":"kid","confirm":"true"` + reason + `}`, coder, nil, confirm, GuardrailViolated + " missing_confirm"},
		{"confirm is false", stop, `{"agent":"kid","confirm":false` + reason + `}`, coder, nil, confirm, GuardrailViolated + " missing_confirm"},
		{"no reason", stop, `{"agent":"kid","confirm":true}`, coder, nil, why, GuardrailViolated + " missing_reason"},
		{"a blank reason", stop, `{"agent":"kid","confirm":true,"reason":" \t "}`, coder, nil, why, GuardrailViolated + " missing_reason"},
		{"a reason that is no text", stop, `{"agent":"kid","confirm":true,"reason":5}`, coder, nil, why, GuardrailViolated + " missing_reason"},
		{"guardrails before arguments", stop, `{"confirm":true}`, coder, nil, why, GuardrailViolated + " missing_reason"},
		{"then arguments", stop, `{"confirm":true` + reason + `}`, coder, nil, bad(`argument \"agent\" is missing`), ArgumentInvalid},
		{"a reason of two lines", stop, `{"agent":"kid","confirm":true,"reason":"a\nb"}`, coder, nil, bad(`argument \"reason\": it must be one line of printable characters`), ArgumentInvalid},
		{"an actor among the arguments", "writ_agents_list", `{"actor":"root"}`, nobody, nil, actor, GuardrailViolated + " missing_actor"},

		{"a person's", "writ_approvals_approve", `{"id":"call_1","confirm":true` + reason + `}`, coder, nil, forbidden("writ approval approve ID"), InvokeFailed},
		{"a person's, unguarded", "writ_approvals_approve", `{"id":"call_1"}`, coder, nil, forbidden("writ approval approve ID"), InvokeFailed},
		{"a person's, with nothing", "writ_config_reload", `{}`, coder, nil, forbidden("writ config reload"), InvokeFailed},
		{"a person's, with nonsense", "writ_approvals_approve", `{"confirm":1,"bogus":2}`, coder, nil, forbidden("writ approval approve ID"), InvokeFailed},
		{"a person's, and nobody", "writ_approvals_approve", `{"id":"call_1"}`, nobody, nil, actor, GuardrailViolated + " missing_actor"},
		{"not here", "writ_agents_delegate", `{"name":"kid"}`, coder, nil,
			`{"domain_code":"not_supported","error_type":"NotSupportedError","message":"a child's token must not pass through a model; make the child with 'writ agent delegate NAME', or POST /v1/delegations","status":"error"}`, CapabilityGap},
		{"not yet", "writ_health_show", `{}`, coder, nil,
			`{"domain_code":"not_supported","error_type":"NotSupportedError","message":"this operation is not there yet in this version","status":"error"}`, NotImplemented},

		{"not found", "writ_agents_list", `{}`, coder, writ.Fail(writ.NotFound, "no such", nil), `{"domain_code":"not_found","error_type":"NotFoundError","message":"no such","status":"error"}`, InvokeFailed},
		{"conflict", "writ_agents_list", `{}`, coder, writ.Fail(writ.Conflict, "too late", nil), `{"domain_code":"conflict","error_type":"ConflictError","message":"too late","status":"error"}`, InvokeFailed},
		{"denied", "writ_agents_list", `{}`, coder, writ.Fail(writ.Denied, "no", nil), `{"domain_code":"forbidden","error_type":"ForbiddenError","message":"no","status":"error"}`, InvokeFailed},
		{"invalid", "writ_agents_list", `{}`, coder, writ.Fail(writ.Invalid, "what?", nil), bad("what?"), ArgumentInvalid},
		{"no sandbox", "writ_agents_list", `{}`, coder, writ.Fail(writ.SandboxUnavailable, "none", nil), `{"domain_code":"not_supported","error_type":"NotSupportedError","message":"none","status":"error"}`, CapabilityGap},
		{"a cause of ours", "writ_agents_list", `{}`, coder, errors.New("open /secret: no"), internal, InvokeFailed},
		{"a message of ours with a cause", "writ_agents_list", `{}`, coder, writ.Fail(writ.NotFound, "no such", errors.New("sql: /secret")), `{"domain_code":"not_found","error_type":"NotFoundError","message":"no such","status":"error"}`, InvokeFailed},
		{"the store", "writ_agents_list", `{}`, coder, writ.Fail(writ.StoreUnavailable, "disk /secret is full", nil), internal, InvokeFailed},
		{"a secret in a message", "writ_agents_list", `{}`, coder, writ.Fail(writ.NotFound, "there is no writ_"+strings.Repeat("ab2", 17)+" here", nil),
			`{"domain_code":"not_found","error_type":"NotFoundError","message":"there is no [removed] here","status":"error"}`, InvokeFailed},
	} {
		s := &counter{fails: c.fails}
		res := s.ask(t, c.op, c.args, c.call)
		if diff := cmp.Diff(c.want, res.Content); diff != "" || res.IsError != (c.event != "") {
			t.Errorf("%s (is_error %t): %s", c.what, res.IsError, diff)
		}
		told := ""
		for _, e := range s.told {
			told += strings.TrimSpace(e.Name + " " + e.Code)
			if e.Operation != c.op || e.Actor != Actor(c.call) {
				t.Errorf("%s: told of %+v", c.what, e)
			}
		}
		if told != c.event {
			t.Errorf("%s: told %q, want %q", c.what, told, c.event)
		}
		if refused := c.event != "" && c.fails == nil; refused && len(s.done) > 0 {
			t.Errorf("%s: it was done", c.what)
		} else if !refused && len(s.done) != 1 {
			t.Errorf("%s: done %d times", c.what, len(s.done))
		}
	}
}

// Whatever takes a person is answered so, whatever the arguments; nothing is wired to it.
func TestPeoplesOperations(t *testing.T) {
	n := 0
	for _, o := range surface() {
		if o.person == "" {
			continue
		}
		n++
		all := `{`
		for i, p := range o.params {
			all += strings.Repeat(",", min(i, 1)) + fmt.Sprintf(`%q:%s`, p.name, map[valueKind]string{text: `"x"`, number: "1", truth: "true"}[p.kind])
		}
		for _, args := range []string{"{}", all + "}"} {
			s := &counter{}
			res := s.ask(t, o.name, args, coder)
			if !res.IsError || len(s.done) > 0 || res.Content != `{"domain_code":"forbidden","error_type":"ForbiddenError","message":"only a person does this: `+o.person+`","status":"error"}` {
				t.Errorf("%s %s: %s, done %d", o.name, args, res.Content, len(s.done))
			}
		}
	}
	if n < 10 {
		t.Errorf("%d operations are people's", n)
	}
}

// An answer that would be too long is none, and names what to do; a list that fits is.
func TestTooLong(t *testing.T) {
	o := listing("health", "show", "x", "x")
	items := make([]string, maxAnswer/100)
	o.do = func(_ context.Context, _ writ.Call, a Args) (any, error) { return Page(items, a), nil }
	c := coder
	c.Args = `{"limit":1000}`
	if res := o.answer(t.Context(), c); res.IsError {
		t.Errorf("what fits: %s", res.Content)
	}
	items = []string{strings.Repeat("x", maxAnswer)}
	if res := o.answer(t.Context(), c); res.Content != `{"domain_code":"invalid_argument","error_type":"ArgumentValidationError","message":"the answer would have more than 1048576 bytes; ask for fewer with limit","status":"error"}` {
		t.Error(res.Content)
	}
	items = []string{"\xff"}
	if res := o.answer(t.Context(), c); !strings.Contains(res.Content, `"InternalError"`) {
		t.Error(res.Content)
	}
}

func TestScrub(t *testing.T) {
	token := "writ_" + strings.Repeat("ab2z", 13)
	for in, want := range map[string]string{
		"there is no " + token + "!":                          "there is no [removed]!",
		strings.ToUpper(token):                                "[removed]",
		"Authorization: Bearer abc.def-ghi":                   "Authorization: [removed]",
		"passphrase=hunter2 and more":                         "[removed] and more",
		`{"passphrase": "correct horse battery", "n": 1}`:     `{"[removed], "n": 1}`,
		`passphrase: "correct horse battery" next`:            `[removed] next`,
		"api_key=sk-1":                                        "[removed]",
		"jwt eyJhbGciOiJIUzI1.eyJzdWIiOiIx.c2ln":              "jwt [removed]",
		"-----BEGIN PRIVATE KEY-----\nMII\n":                  "[removed]",
		"writ_agents_revoke_token shows writ_agents_list":     "writ_agents_revoke_token shows writ_agents_list",
		`there is no agent "coder/kid-ab12cd" below you`:      `there is no agent "coder/kid-ab12cd" below you`,
		"only a person does this: writ approval approve call": "only a person does this: writ approval approve call",
	} {
		if got := Scrub(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
