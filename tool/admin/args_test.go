package admin

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// Each bad value beside a good one: no kind of value is taken for another.
func TestArguments(t *testing.T) {
	const list, explain = "writ_invocations_list", "writ_policy_explain"
	for _, c := range []struct{ op, args, want string }{
		{list, `{"limit":1}`, ""},
		{list, `{"limit":0}`, `argument "limit": it must be from 1 to 1000`},
		{list, `{"limit":1000}`, ""},
		{list, `{"limit":1001}`, `argument "limit": it must be from 1 to 1000`},
		{list, `{"limit":-1}`, `argument "limit": it must be from 1 to 1000`},
		{list, `{"limit":true}`, `argument "limit": want a whole number`},
		{list, `{"limit":"5"}`, `argument "limit": want a whole number`},
		{list, `{"limit":1.5}`, `argument "limit": want a whole number`},
		{list, `{"limit":null}`, `argument "limit": want a whole number`},
		{list, `{"limit":1e+21}`, `argument "limit": want a whole number`},
		{list, `{"offset":0}`, ""},
		{list, `{"offset":-1}`, `argument "offset": it must be from 0 to 1073741824`},
		{list, `{"offset":false}`, `argument "offset": want a whole number`},
		{list, `{"state":"pending"}`, ""},
		{list, `{"state":"pendign"}`, `argument "state": it must be one of pending, running, completed, failed, rejected, expired, cancelled, unknown, denied`},
		{list, `{"state":5}`, `argument "state": want a string`},
		{list, `{"state":true}`, `argument "state": want a string`},
		{list, `{"agent":""}`, `argument "agent": it must have 1 to 256 characters`},
		{list, `{"agent":"` + strings.Repeat("é", 256) + `"}`, ""},
		{list, `{"agent":"` + strings.Repeat("é", 257) + `"}`, `argument "agent": it must have 1 to 256 characters`},
		{list, `{"agent":"a\u0000"}`, `argument "agent": it must be one line of printable characters`},
		{list, `{"since":"2026-03-01T10:00:00Z"}`, ""},
		{list, `{"since":"2026-03-01T10:00:00.5+01:00","until":"2026-03-01T10:00:00Z"}`, ""},
		{list, `{"since":"2026-03-01T10:00:00"}`, `argument "since": want a time with a zone, as 2026-03-01T10:00:00Z`},
		{list, `{"since":"2026-03-01"}`, `argument "since": want a time with a zone, as 2026-03-01T10:00:00Z`},
		{list, `{"since":1772359200}`, `argument "since": want a string`},
		{list, `{"until":"0001-01-01T00:00:00Z"}`, `argument "until": want a time with a zone, as 2026-03-01T10:00:00Z`},
		{list, `{"since":"2026-03-01T10:00:00Z","until":"2026-03-01T10:00:00Z"}`, `since must come before until`},
		{list, `{"since":"2026-03-01T10:00:01Z","until":"2026-03-01T11:00:00+01:00"}`, `since must come before until`},
		{list, `{"bogus":1}`, `there is no argument of a name that was given; the schema has those there are`},
		{list, `[]`, `the arguments are not a JSON object`},
		{list, `null`, `the arguments are not a JSON object`},
		{list, ``, `the arguments are not a JSON object`},
		{explain, `{"tool":"stat","arguments":{"path":"x"}}`, ""},
		{explain, `{"tool":"stat","arguments":[]}`, `argument "arguments": want an object`},
		{explain, `{"tool":"stat","arguments":"{}"}`, `argument "arguments": want an object`},
		{explain, `{"arguments":{}}`, `argument "tool" is missing`},
	} {
		s := &counter{}
		res := s.ask(t, c.op, c.args, coder)
		var got struct{ Message string }
		if err := json.Unmarshal([]byte(res.Content), &got); err != nil {
			t.Fatal(err)
		}
		if got.Message != c.want || res.IsError != (c.want != "") {
			t.Errorf("%s %s: %q, want %q", c.op, c.args, got.Message, c.want)
		}
	}
}

// What was read arrives.
func TestArgumentsArrive(t *testing.T) {
	s := &counter{}
	s.ask(t, "writ_invocations_list", `{"agent":"kid","limit":7,"offset":3,"since":"2026-03-01T10:00:00+02:00","state":"failed","until":"2026-03-02T00:00:00Z"}`, coder)
	s.ask(t, "writ_agents_stop", `{"agent":"kid","confirm":true,"reason":"it loops"}`, coder)
	s.ask(t, "writ_policy_explain", `{"arguments":{"path":"x"},"tool":"stat"}`, coder)
	if len(s.done) != 3 {
		t.Fatalf("%d calls", len(s.done))
	}
	a := s.done[0]
	if a.Text("agent") != "kid" || a.Text("state") != "failed" || a.Limit != 7 || a.Offset != 3 || !a.Since.Equal(time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)) || a.Until.Day() != 2 {
		t.Errorf("%+v", a)
	}
	if s.done[1].Reason != "it loops" || string(s.done[2].Object("arguments")) != `{"path":"x"}` || s.done[2].Limit != 50 || s.done[2].Number("x", 4) != 4 {
		t.Errorf("%+v", s.done)
	}
}

// FuzzArguments: what the schema takes is read, but for what a schema cannot say; what
// it refuses is refused here too; every answer is an envelope.
func FuzzArguments(f *testing.F) {
	for _, s := range []string{
		`{}`, `{"limit":5}`, `{"limit":true}`, `{"since":"2026-03-01T10:00:00Z"}`, `{"agent":"kid","confirm":true,"reason":"x"}`, `{"tool":"stat","arguments":{"a":[1]}}`,
		`{"id":"call_1"}`, `[]`, `null`, `{"limit":1e2}`, `{"reason":"\n","confirm":true}`, `{"name":"\u2028"}`, `{"offset":1073741825}`, "{\"id\":\"\xff\"}",
	} {
		f.Add(s)
	}
	tools, err := Tools(nil)
	if err != nil {
		f.Fatal(err)
	}
	ops := surface()
	f.Fuzz(func(t *testing.T, args string) {
		for i, o := range ops {
			canonical, _, schemaErr := tools[i].Args([]byte(args))
			if schemaErr == nil {
				args = canonical
			}
			o.do = func(_ context.Context, _ writ.Call, a Args) (any, error) {
				if o.list {
					return Page([]int{1}, a), nil
				}
				return "done", nil
			}
			c := coder
			c.Args = args
			res := o.answer(t.Context(), c)
			var e struct {
				Status, Type, Message string
				Code                  *string `json:"domain_code"`
				Data                  json.RawMessage
				Pagination            *pagination
			}
			if err := json.Unmarshal([]byte(res.Content), &e); err != nil || res.IsError != (e.Status == "error") || !res.IsError && (e.Data == nil || o.list != (e.Pagination != nil)) {
				t.Fatalf("%s %s: %s", o.name, args, res.Content)
			}
			if o.person != "" && !res.IsError {
				t.Errorf("%s was done", o.name)
			}
			said := strings.Contains(e.Message, "a time with a zone") || strings.Contains(e.Message, "before until") || strings.Contains(e.Message, "printable")
			if schemaErr == nil && res.IsError && e.Code != nil && *e.Code == "invalid_argument" && !said {
				t.Errorf("%s %s: the schema takes it, and then: %s", o.name, args, e.Message)
			}
			if schemaErr != nil && !res.IsError {
				t.Errorf("%s %s: the schema refuses it (%v), and it was done", o.name, args, schemaErr)
			}
		}
	})
}
