package engine

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
)

func quotas(t *testing.T, text string) []writ.Quota {
	t.Helper()
	q, err := tool.ParseQuotas(text)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// max_invocations holds per session, task and window, over restarts and reloads.
func TestMaxInvocations(t *testing.T) {
	var o Options
	for name, q := range map[string]string{"per_session": "2/session", "per_task": "2/task", "per_day": "2/24h", "both": "1/task, 3/session"} {
		o.Tools = append(o.Tools, bounded(probe(name, "code:read", nil), tool.Constraints{Quotas: quotas(t, q)}))
	}
	f := newFixture(t, agentsText, o)
	s1, err := f.OpenSession(t.Context(), Call{Agent: "coder"}, "one")
	f.must(err)
	s2, err := f.OpenSession(t.Context(), Call{Agent: "coder"}, "two")
	f.must(err)
	step := func(name string, where func(*Call), ok bool) {
		t.Helper()
		_, err := f.call(name, args(1), where)
		if ok {
			f.must(err)
		} else {
			wants(t, err, writ.Denied, "which is all it may be")
		}
	}
	for _, name := range []string{"per_session", "per_task", "per_day"} {
		step(name, in(s1.ID, "a"), true)
		f.reopen(o)
		step(name, in(s1.ID, "a"), true)
		step(name, in(s1.ID, "a"), false)
	}
	step("per_session", in(s1.ID, "b"), false)
	step("per_session", in(s2.ID, ""), true)
	step("per_task", in(s1.ID, "b"), true)
	step("per_task", in(s2.ID, "a"), true) // the same name in another session is another task
	step("per_day", in(s2.ID, "z"), false)
	f.pass(23 * time.Hour)
	s3, err := f.OpenSession(t.Context(), Call{Agent: "coder"}, "three")
	f.must(err)
	step("per_day", in(s3.ID, ""), false)
	f.pass(time.Hour + time.Second)
	step("per_day", in(s3.ID, ""), true)
	step("both", in(s3.ID, "a"), true)
	step("both", in(s3.ID, "a"), false)
	step("both", in(s3.ID, "b"), true)
	step("both", in(s3.ID, "c"), true)
	step("both", in(s3.ID, "d"), false)
}

// However many calls come at once, no more start than may: the place is taken in
// the transaction that records the start. A denied call does not count.
func TestQuotaUnderParallelCalls(t *testing.T) {
	var ran atomic.Int32
	o := Options{Tools: []Tool{bounded(probe("few", "code:read", func(context.Context, json.RawMessage) (writ.Result, error) {
		ran.Add(1)
		return writ.Result{}, nil
	}), tool.Constraints{Quotas: quotas(t, "7/session")})}}
	f := newFixture(t, agentsText, o)
	var ok, denied atomic.Int32
	each(200, func(int) {
		switch _, err := f.call("few", args(1)); writ.KindOf(err) {
		case writ.Denied:
			denied.Add(1)
		default:
			if err == nil {
				ok.Add(1)
			}
		}
	})
	if ok.Load() != 7 || ran.Load() != 7 || denied.Load() != 193 {
		t.Errorf("%d ok, %d ran, %d denied; want 7, 7, 193", ok.Load(), ran.Load(), denied.Load())
	}
	k := f.kinds()
	if k["call.started"] != 7 || k["call.finished"] != 7 || k["call.refused"] != 193 {
		t.Errorf("ledger: %v", k)
	}
}

// only_after: what counts is a success in this task.
func TestOnlyAfter(t *testing.T) {
	fail := true
	o := Options{Tools: []Tool{
		probe("check", "test:run", func(context.Context, json.RawMessage) (writ.Result, error) { return writ.Result{IsError: fail}, nil }),
		bounded(probe("ship", "code:write", nil), tool.Constraints{OnlyAfter: []string{"check"}}),
	}}
	f := newFixture(t, agentsText, o)
	ship := func(task string) error {
		_, err := f.call("ship", args(1), in("", task))
		return err
	}
	wants(t, ship("a"), writ.Denied, "tool ship runs only after check has succeeded in this task")
	_, err := f.call("check", args(1), in("", "a"))
	f.must(err)
	wants(t, ship("a"), writ.Denied, "only after check") // it ran, and failed
	fail = false
	_, err = f.call("check", args(1), in("", "b"))
	f.must(err)
	wants(t, ship("a"), writ.Denied, "only after check") // it succeeded, in another task
	f.must(ship("b"))
	f.reopen(o)
	f.must(ship("b"))
	wants(t, ship(""), writ.Denied, "only after check")
	_, err = f.call("check", args(1))
	f.must(err)
	f.must(ship("")) // without a task it is the session
}

// forbidden keeps a tool from models and shows it to code.
func TestForbidden(t *testing.T) {
	f := newFixture(t, agentsText, Options{Tools: []Tool{bounded(probe("inner", "code:read", nil), tool.Constraints{Forbidden: true})}})
	_, err := f.call("inner", args(1))
	wants(t, err, writ.Denied, "tool inner is for code alone")
	out, err := f.call("inner", args(1), func(c *Call) { c.Code = true })
	if err != nil || out.Content != "inner" {
		t.Errorf("%+v %v", out, err)
	}
	for _, x := range f.Tools("coder") {
		if x.Name == "inner" {
			t.Error("a model sees it")
		}
	}
	if _, err := f.Tool("", "inner"); err != nil {
		t.Error("code does not see it")
	}
}

// The operator's constraints add to the tool's own and never replace them (I12).
func TestRulesOnlyTighten(t *testing.T) {
	o := Options{Tools: []Tool{bounded(probe("few", "code:read", nil), tool.Constraints{Quotas: quotas(t, "2/session")})}}
	f := newFixture(t, agentsText+"tools: {few: {max_invocations: 5/session, rate: 100/1h}}\n", o)
	for range 2 {
		_, err := f.call("few", args(1))
		f.must(err)
	}
	_, err := f.call("few", args(1))
	wants(t, err, writ.Denied, "used 2 times in this session")
}

// A quota over time counts a whole family: a parent does not get more by delegating.
func TestQuotaCountsDescendants(t *testing.T) {
	o := Options{Tools: []Tool{bounded(probe("few", "code:read", nil), tool.Constraints{Quotas: quotas(t, "3/1h")})}}
	f := newFixture(t, agentsText+"  helper: {parent: coder}\n", o)
	for _, agent := range []string{"coder", "helper", "helper"} {
		_, err := f.call("few", args(1), func(c *Call) { c.Agent = agent })
		f.must(err)
	}
	for _, agent := range []string{"coder", "helper"} {
		_, err := f.call("few", args(1), func(c *Call) { c.Agent = agent })
		wants(t, err, writ.Denied, "used 3 times within 1h")
	}
}

// Explain says what is used up, and uses nothing.
func TestExplainCounts(t *testing.T) {
	o := Options{Tools: []Tool{bounded(probe("few", "code:read", nil), tool.Constraints{Quotas: quotas(t, "1/1h")})}}
	f := newFixture(t, agentsText, o)
	for range 3 {
		if d, err := f.Explain(t.Context(), Call{Agent: "coder", Tool: "few"}); err != nil || d.Effect != writ.Allow {
			t.Fatalf("%+v %v", d, err)
		}
	}
	_, err := f.call("few", args(1))
	f.must(err)
	if d, err := f.Explain(t.Context(), Call{Agent: "coder", Tool: "few"}); err != nil || d.Effect != writ.Deny {
		t.Errorf("%+v %v", d, err)
	}
}
