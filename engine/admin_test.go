package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/admin"
)

// houses are two families that have the administration surface and nothing to do with
// each other.
const houses = `version: 1
listen: 127.0.0.1:0
store: {path: $DIR/state}
workspaces: {main: {path: $DIR/ws}}
roles:
  keeper: {allowed: ["writ_health_*", look]}
agents:
  boss: {workspace: main, person: alice, allowed: ["@writ"]}
  kid: {workspace: main, parent: boss, allowed: ["@writ"], overrides: {requires_approval: ["code:delete"]}}
  stranger: {workspace: main, allowed: ["@writ"], overrides: {requires_approval: ["code:delete"]}}
  plain: {workspace: main, level: elevated, autonomy: full}
  dev: {workspace: main, role: developer}
  chief: {workspace: main, role: supervisor, level: elevated}
  all: {workspace: main, allowed: ["*"]}
  one: {workspace: main, allowed: [writ_agents_list]}
  less: {workspace: main, allowed: ["@writ"], denied: ["writ_agents_*"]}
  keeps: {workspace: main, role: keeper}
  asks: {workspace: main, allowed: ["@writ"], overrides: {requires_approval: ["code:write"]}}
`

func newHouses(t *testing.T, more ...Tool) *fixture {
	t.Helper()
	tools := append([]Tool{probe("look", "code:read", nil), probe("drop", "code:delete", nil)}, more...)
	return newFixture(t, houses, Options{Tools: tools})
}

func by(agent string) func(*Call) { return func(c *Call) { c.Agent = agent } }

// says is the envelope that an operation answers with.
func (f *fixture) says(op string, args any, change ...func(*Call)) writ.Result {
	f.t.Helper()
	out, err := f.call(op, args, change...)
	if err != nil {
		f.t.Fatalf("%s: %v", op, err)
	}
	return out.Result
}

type object = map[string]any

func sure(o object) object {
	o["confirm"], o["reason"] = true, "it loops"
	return o
}

// The surface is for those whose list, or role, the operator made name it: no level
// opens it, nor a role that everybody has.
func TestAdministrationHasToBeNamed(t *testing.T) {
	f := newHouses(t)
	tools, err := admin.Tools(nil)
	f.must(err)
	every := len(tools)
	for agent, want := range map[string]int{"boss": every, "kid": every, "all": every, "one": 1, "keeps": 1, "plain": 0, "dev": 0, "chief": 0, "less": every - 16} {
		names := slices.DeleteFunc(visible(f, Caller{Agent: agent}), func(n string) bool { return !strings.HasPrefix(n, "writ_") })
		if len(names) != want {
			t.Errorf("%s sees %d of %d: %v", agent, len(names), every, names)
		}
	}
	_, err = f.call("writ_health_show", object{}, by("plain"))
	wants(t, err, writ.Denied, "denied: tool writ_health_show has to be named in the allowed list of agent plain, or in a role of the configuration")
	_, err = f.call("writ_health_show", object{}, by("dev"))
	wants(t, err, writ.Denied, "denied: tool writ_health_show has to be named in the allowed list of agent dev, or in a role of the configuration")
	if res := f.says("writ_health_show", object{}, by("keeps")); res.IsError {
		t.Error(res.Content)
	}
	// A child has no more of it than its parent.
	_, parent := f.token("one")
	_, err = f.call("writ_agents_list", object{}, as(parent))
	f.must(err)
	kid := f.child(parent, "kid", config.Request{Allowed: list("*")})
	if _, err := f.call("writ_agents_list", object{}, as(kid)); err != nil {
		t.Error(err)
	}
	_, err = f.call("writ_health_show", object{}, as(kid))
	wants(t, err, writ.Denied, "by parent one: level standard does not open category other to agent one")
}

// What callers read, to the letter.
func TestAdministrationEnvelopes(t *testing.T) {
	f := newHouses(t)
	policy := f.Config().Digest.String()
	notFound := func(msg string) string {
		return `{"domain_code":"not_found","error_type":"NotFoundError","message":"` + msg + `","status":"error"}`
	}
	forbidden := func(msg string) string {
		return `{"domain_code":"forbidden","error_type":"ForbiddenError","message":"` + msg + `","status":"error"}`
	}
	guardrail := func(msg string) string {
		return `{"domain_code":"guardrail_violated","error_type":"GuardrailViolationError","message":"` + msg + `","status":"error"}`
	}
	for _, c := range []struct {
		op   string
		args object
		want string
	}{
		{"writ_health_show", object{}, `{"data":{"acts_for":"alice","agent":"boss","policy":"` + policy + `","status":"ok","version":"` + writ.Version() + `"},"status":"ok"}`},
		{"writ_agents_stops", object{}, `{"data":[],"pagination":{"limit":50,"offset":0,"total":0},"status":"ok"}`},
		{"writ_approvals_list", object{"limit": 7}, `{"data":[],"pagination":{"limit":7,"offset":0,"total":0},"status":"ok"}`},
		{"writ_approvals_grants", object{}, `{"data":[],"pagination":{"limit":50,"offset":0,"total":0},"status":"ok"}`},
		{"writ_sandbox_list", object{"offset": 5}, `{"data":[],"pagination":{"limit":50,"offset":5,"total":0},"status":"ok"}`},
		{"writ_config_check", object{}, `{"data":{"holds":true,"in_force":true,"policy":"` + policy + `"},"status":"ok"}`},
		{"writ_config_show", object{"prefix": "agents.kid.r"}, `{"data":[{"key":"agents.kid.role","value":""}],"pagination":{"limit":50,"offset":0,"total":1},"status":"ok"}`},
		{"writ_config_show", object{"prefix": "agents.stranger"}, `{"data":[],"pagination":{"limit":50,"offset":0,"total":0},"status":"ok"}`},
		{"writ_policy_explain", object{"tool": "look", "agent": "kid"}, `{"data":{"action":"code:read","agent":"kid","class":"none","confinement":{"backend":"","env":null,"exec":{"mode":"none"},"hide":null,"isolation":"process","limits":{},"named":null,"network":{"mode":"none"},"read":null,"write":null},"effect":"allow",` +
			`"reasons":[{"effect":"allow","source":"level","text":"level standard opens category file_system"},{"effect":"allow","source":"autonomy","text":"autonomy semi runs code by itself"},` +
			`{"effect":"allow","source":"level","text":"by parent boss: level standard opens category file_system"},{"effect":"allow","source":"autonomy","text":"by parent boss: autonomy semi runs code by itself"}],"risk":"high","tool":"look"},"status":"ok"}`},
		{"writ_policy_explain", object{"tool": "look", "agent": "stranger"}, notFound(`there is no agent \"stranger\" below you; writ_agents_list shows those there are`)},
		{"writ_policy_explain", object{"tool": "lookk"}, notFound(`there is no tool \"lookk\"; did you mean look?`)},
		{"writ_agents_show", object{"agent": "stranger"}, notFound(`there is no agent \"stranger\" below you; writ_agents_list shows those there are`)},
		{"writ_invocations_show", object{"id": "call_x"}, notFound(`there is no call \"call_x\" of yours; writ_invocations_list shows them`)},
		{"writ_invocations_cancel", object{"id": "call_x"}, notFound(`there is no call \"call_x\" of yours; writ_invocations_list shows them`)},
		{"writ_approvals_show", object{"id": "call_x"}, notFound(`there is no call \"call_x\" of yours; writ_invocations_list shows them`)},
		{"writ_tools_show", object{"tool": "read_fil"}, notFound(`there is no tool \"read_fil\"; did you mean read_file?`)},
		{"writ_agents_end", object{"agent": "kid"}, notFound(`there is no delegated agent \"kid\"; 'writ agent tree' shows them`)},
		{"writ_agents_end_session", object{"session": "ses_x"}, notFound(`there is no open session \"ses_x\" of yours; writ_agents_sessions shows them`)},
		{"writ_agents_end_task", object{"task": "task_x"}, notFound(`there is no open task \"task_x\" of yours; writ_agents_tasks shows them`)},
		{"writ_agents_start_task", object{"name": "task_x"}, `{"domain_code":"invalid_argument","error_type":"ArgumentValidationError","message":"a task has a name that does not begin with task_; give one","status":"error"}`},
		{"writ_agents_stop", sure(object{"agent": "stranger"}), notFound(`there is no agent \"stranger\" below you; writ_agents_list shows those there are`)},
		{"writ_agents_stop", sure(object{"agent": "*"}), notFound(`there is no agent \"*\" below you; writ_agents_list shows those there are`)},
		{"writ_agents_stop", sure(object{"agent": "boss"}), forbidden(`this is for agents below you, not for yourself; 'writ stop' and 'writ agent revoke' are the operator's`)},
		{"writ_agents_stop", object{"agent": "kid"}, guardrail("missing_confirm: set confirm to true to say that you mean it")},
		{"writ_agents_stop", object{"agent": "kid", "confirm": true}, guardrail("missing_reason: say in reason why you do it")},
		{"writ_agents_revoke_token", sure(object{"agent": "kid"}), notFound("agent kid has no such token that is good")},
		{"writ_approvals_revoke_grant", sure(object{"grant": "grant_x"}), notFound(`there is no standing approval \"grant_x\" of yours; writ_approvals_grants shows them`)},
		{"writ_sandbox_kill", sure(object{"id": "box_x"}), notFound(`there is no sandbox \"box_x\" of yours any more; writ_sandbox_list shows those there are`)},
		{"writ_approvals_approve", sure(object{"id": "call_x"}), forbidden("only a person does this: writ approval approve ID")},
		{"writ_approvals_approve", object{}, forbidden("only a person does this: writ approval approve ID")},
		{"writ_config_reload", object{}, forbidden("only a person does this: writ config reload")},
		{"writ_upstreams_accept", object{"server": "x"}, forbidden("only a person does this: writ upstream accept NAME")},
		{"writ_upstreams_list", object{}, `{"data":[],"pagination":{"limit":50,"offset":0,"total":0},"status":"ok"}`},
		{"writ_agents_lift_stop", sure(object{"agent": "kid"}), forbidden("only a person does this: writ stop --lift AGENT --as NAME")},
		{"writ_tools_accept", sure(object{"tool": "look"}), forbidden("only a person does this: writ tool accept NAME")},
		{"writ_invocations_list", object{"since": "2026-03-02T00:00:00Z", "until": "2026-03-01T00:00:00Z"},
			`{"domain_code":"invalid_argument","error_type":"ArgumentValidationError","message":"since must come before until","status":"error"}`},
	} {
		res := f.says(c.op, c.args, by("boss"))
		if diff := cmp.Diff(c.want, res.Content); diff != "" || res.IsError != strings.Contains(c.want, `"status":"error"`) {
			t.Errorf("%s %v (is_error %t): %s", c.op, c.args, res.IsError, diff)
		}
	}
	if f.stops.is([]string{"kid"}) != "" || f.stops.is([]string{"stranger"}) != "" {
		t.Error("somebody was stopped")
	}
	// Nobody is asked about what is answered forbidden anyway; the control asks.
	if res := f.says("writ_approvals_approve", sure(object{"id": "call_x"}), by("asks")); res.Content != forbidden("only a person does this: writ approval approve ID") {
		t.Error(res.Content)
	}
	_, err := f.call("writ_agents_stop", sure(object{"agent": "kid"}), by("asks"))
	wants(t, err, writ.Pending, "a person has to approve this call")
}

// What does not fit the schema is refused by the gate, as for any tool, and a string
// that holds the number is the number.
func TestAdministrationSchema(t *testing.T) {
	f := newHouses(t)
	for args, want := range map[string]string{
		`{"limit":0}`:         `writ_agents_list: argument "limit": it must be at least 1`,
		`{"limit":1001}`:      `writ_agents_list: argument "limit": it must be at most 1000`,
		`{"limit":true}`:      `writ_agents_list: argument "limit": want an integer, not a boolean`,
		`{"limit":"x"}`:       `writ_agents_list: argument "limit": want an integer, not a string`,
		`{"offset":-1}`:       `writ_agents_list: argument "offset": it must be at least 0`,
		`{"actor":"alice"}`:   `writ_agents_list: unknown argument "actor"; it takes limit, offset`,
		`{"limit":5,"a":"b"}`: `writ_agents_list: unknown argument "a"; it takes limit, offset`,
	} {
		_, err := f.Do(t.Context(), Call{Agent: "boss", Tool: "writ_agents_list", Args: []byte(args)})
		wants(t, err, writ.Invalid, want)
	}
	for args, want := range map[string]string{
		`{"confirm":true,"reason":"x"}`:                `argument "agent" is missing; it takes agent, confirm, reason`,
		`{"agent":"kid","confirm":false,"reason":"x"}`: `argument "confirm": it must be true`,
		`{"agent":"kid","confirm":1,"reason":"x"}`:     `argument "confirm": want a boolean, not a number`,
		`{"agent":"kid","confirm":true,"reason":"  "}`: `argument "reason": it does not match \S`,
		`{"agent":"kid","confirm":true,"reason":""}`:   `argument "reason": it has 0 characters; at least 1 are needed`,
		`{"agent":"kid","confirm":true,"reason":true}`: `argument "reason": want a string, not a boolean`,
	} {
		_, err := f.Do(t.Context(), Call{Agent: "boss", Tool: "writ_agents_stop", Args: []byte(args)})
		wants(t, err, writ.Invalid, "writ_agents_stop: "+want)
	}
	out, err := f.Do(t.Context(), Call{Agent: "boss", Tool: "writ_agents_stops", Args: []byte(`{"limit":"5"}`)})
	if err != nil || out.Content != `{"data":[],"pagination":{"limit":5,"offset":0,"total":0},"status":"ok"}` {
		t.Errorf("%s, %v", out.Content, err)
	}
}

// Every operation that is not a person's is done by something.
func TestAdministrationIsWhole(t *testing.T) {
	f := newHouses(t)
	tools, err := admin.Tools(nil)
	f.must(err)
	src := &administration{e: f.Engine}
	for _, d := range tools {
		if src.Handler(d.Name) != nil {
			continue
		}
		if d.Name != "writ_agents_delegate" && !strings.HasPrefix(d.Description, "Only a person does this: writ ") {
			t.Errorf("nothing does %s", d.Name)
		}
	}
	for name := range src.acts() {
		if !slices.ContainsFunc(f.Tools(""), func(d *tool.Tool) bool { return d.Name == name }) {
			t.Errorf("%s is no operation", name)
		}
	}
}

// estate is something of everything of an agent.
type estate struct{ who, call, asked, session, task, token string }

func (f *fixture) settle(agent string) estate {
	f.t.Helper()
	_, who := f.token(agent)
	s, err := f.OpenSession(f.t.Context(), Call{Agent: who.Agent, Token: who.Token}, agent+"-work")
	f.must(err)
	out, err := f.call("look", args(1), as(who), in(s.ID, agent+"-task"))
	f.must(err)
	task, err := f.store.TasksBefore(f.t.Context(), who.Token, "", "", 1)
	f.must(err)
	asked, err := f.call("drop", args(1), as(who), in(s.ID, ""))
	wants(f.t, err, writ.Pending, "")
	return estate{agent, out.CallID, asked.CallID, s.ID, task[0].ID, who.Token}
}

// all is every reading operation, and every changing one aimed at an estate, answered.
func (f *fixture) all(who Caller, e estate) map[string]string {
	f.t.Helper()
	aim := map[string][]object{
		"writ_agents_show": {{"agent": e.who}}, "writ_agents_sessions": {{}, {"agent": e.who}}, "writ_agents_tasks": {{}, {"agent": e.who}},
		"writ_approvals_list": {{}, {"agent": e.who}, {"state": "pending"}}, "writ_approvals_show": {{"id": e.asked}},
		"writ_audit_list":  {{"limit": 1000}, {"agent": e.who}, {"call": e.call}, {"call": e.asked}, {"kind": "session.opened"}},
		"writ_config_show": {{"limit": 1000}}, "writ_invocations_list": {{}, {"agent": e.who}}, "writ_invocations_show": {{"id": e.call}, {"id": e.asked}},
		"writ_policy_explain": {{"agent": e.who, "tool": "look"}}, "writ_tools_show": {{"tool": "look"}},
		"writ_invocations_cancel": {{"id": e.asked}, {"id": e.call}}, "writ_agents_end": {{"agent": e.who}}, "writ_agents_end_session": {{"session": e.session}}, "writ_agents_end_task": {{"task": e.task}},
		"writ_agents_stop": {sure(object{"agent": e.who})}, "writ_agents_revoke_token": {sure(object{"agent": e.who}), sure(object{"agent": e.who, "token": e.token})},
		"writ_approvals_revoke_grant": {sure(object{"grant": e.asked})}, "writ_sandbox_kill": {sure(object{"id": e.call})},
		"writ_agents_list": {{}}, "writ_agents_stops": {{}}, "writ_approvals_grants": {{}}, "writ_audit_verify": {{}}, "writ_config_check": {{}}, "writ_health_show": {{}},
		"writ_sandbox_list": {{}}, "writ_sandbox_show": {{"id": e.call}}, "writ_egress_list": {{}, {"agent": e.who}, {"call": e.call}}, "writ_connections_list": {{}}, "writ_sandbox_doctor": {{}}, "writ_tools_list": {{}}, "writ_agents_start_session": {{}}, "writ_agents_start_task": {{"name": "t"}},
		"writ_upstreams_list": {{}}, "writ_upstreams_show": {{"server": e.who}}, "writ_upstreams_test": {{"server": e.who}},
	}
	src := &administration{e: f.Engine}
	for name := range src.reads() {
		if aim[name] == nil {
			f.t.Errorf("%s is not tried", name)
		}
	}
	for name := range src.acts() {
		if aim[name] == nil {
			f.t.Errorf("%s is not tried", name)
		}
	}
	out := map[string]string{}
	for name, tries := range aim {
		for i, o := range tries {
			out[fmt.Sprint(name, " ", i)] = f.says(name, o, as(who)).Content
		}
	}
	return out
}

// No operation reaches anything of an agent that is not below: nothing of it is read,
// nothing of it changes. The control: of one that is, the same operations do.
func TestAdministrationStaysBelow(t *testing.T) {
	f := newHouses(t)
	_, boss := f.token("boss")
	theirs := f.settle("stranger")
	// What names the stranger in an answer is an argument that is repeated: it is said
	// that there is no such thing.
	quoted := regexp.MustCompile(`there is no [a-z ]*\\"[^"]*\\"`)
	for _, who := range []Caller{boss, {Agent: "boss"}} { // to the engine, no token is the operator's
		for op, content := range f.all(who, theirs) {
			left := quoted.ReplaceAllString(content, "")
			for _, part := range []string{"stranger", theirs.call, theirs.asked, theirs.session, theirs.task, theirs.token, f.dir + "/state"} {
				if strings.Contains(left, part) {
					t.Errorf("%s shows %s: %s", op, part, content)
				}
			}
		}
	}
	if now, _ := f.Invocation(t.Context(), "", theirs.asked); now.Status != "pending" {
		t.Errorf("the stranger's request is %s", now.Status)
	}
	if !f.SessionOpen(theirs.session) || f.scopes.find(theirs.session, theirs.task) == "" || f.stops.is([]string{"stranger"}) != "" {
		t.Error("the stranger's session, task or calls were ended")
	}
	if _, err := f.call("look", args(1), func(c *Call) { c.Agent, c.Token, c.Session = "stranger", theirs.token, theirs.session }); err != nil {
		t.Errorf("the stranger cannot work: %v", err)
	}
	mine := f.settle("kid")
	got := f.all(boss, mine)
	for op, part := range map[string]string{
		"writ_agents_show 0": `"name":"kid"`, "writ_agents_list 0": `"name":"kid"`, "writ_agents_sessions 1": mine.session, "writ_agents_tasks 0": mine.task, "writ_approvals_list 1": mine.asked,
		"writ_approvals_show 0": mine.asked, "writ_audit_list 0": mine.call, "writ_audit_list 1": mine.session, "writ_audit_list 2": mine.call, "writ_audit_list 4": mine.session,
		"writ_config_show 0": "agents.kid.level", "writ_invocations_list 0": mine.call, "writ_invocations_show 0": mine.call, "writ_policy_explain 0": `"effect":"allow"`,
	} {
		if !strings.Contains(got[op], part) {
			t.Errorf("%s does not show %s: %s", op, part, got[op])
		}
	}
	if now, _ := f.Invocation(t.Context(), "", mine.asked); now.Status != "cancelled" {
		t.Errorf("the kid's request is %s", now.Status)
	}
	if f.stops.is([]string{"kid"}) != "kid" {
		t.Error("the kid was not stopped")
	}
}

// Lists count what there is, page through it, and keep to their times.
func TestAdministrationPages(t *testing.T) {
	f := newHouses(t)
	for range 5 {
		_, err := f.call("look", args(1), by("kid"))
		f.must(err)
		f.pass(time.Hour)
	}
	_, err := f.call("look", args(1), by("stranger"))
	f.must(err)
	ask := func(o object) (ids []string, total int) {
		t.Helper()
		o["agent"] = "kid"
		var e struct {
			Data       []struct{ ID, Agent string }
			Pagination struct{ Total, Offset, Limit int }
		}
		f.must(json.Unmarshal([]byte(f.says("writ_invocations_list", o, by("boss")).Content), &e))
		for _, d := range e.Data {
			ids = append(ids, d.ID)
		}
		return ids, e.Pagination.Total
	}
	all, total := ask(object{})
	if total != 5 || len(all) != 5 || !slices.IsSortedFunc(all, func(a, b string) int { return strings.Compare(b, a) }) {
		t.Errorf("%v of %d", all, total)
	}
	for _, c := range []struct {
		o     object
		want  []string
		total int
	}{
		{object{"limit": 2}, all[:2], 5}, {object{"limit": 2, "offset": 2}, all[2:4], 5}, {object{"offset": 4}, all[4:], 5}, {object{"offset": 5}, nil, 5},
		{object{"since": "2026-03-01T13:00:00Z"}, all[:2], 2}, {object{"since": "2026-03-01T14:00:00+01:00"}, all[:2], 2}, {object{"until": "2026-03-01T12:00:00Z"}, all[3:], 2},
		{object{"since": "2026-03-01T11:00:00Z", "until": "2026-03-01T13:00:00Z"}, all[2:4], 2}, {object{"state": "failed"}, nil, 0}, {object{"state": "completed", "limit": 1}, all[:1], 5},
	} {
		if got, total := ask(c.o); !slices.Equal(got, c.want) || total != c.total {
			t.Errorf("%v: %v of %d", c.o, got, total)
		}
	}
}

// A call that is cancelled, a session that is ended from within it, two calls that end
// each other: all of them end.
func TestAdministrationEndsThingsAndReturns(t *testing.T) {
	started := make(chan string, 4)
	hang := probe("hang", "code:read", func(ctx context.Context, _ json.RawMessage) (writ.Result, error) {
		started <- ""
		<-ctx.Done()
		return writ.Result{}, ctx.Err()
	})
	f := newHouses(t, hang)
	_, boss := f.token("boss")
	ended := make(chan error, 1)
	keyed := func(c *Call) { c.Agent, c.Key = "kid", "k" }
	go func() { _, err := f.call("hang", args(1), keyed); ended <- err }()
	<-started
	runs, err := f.store.InvocationsBefore(t.Context(), store.InvocationsOf{State: "running", Now: f.ledger.Now()}, 0, 1)
	f.must(err)
	res := f.says("writ_invocations_cancel", object{"id": runs[0].ID}, as(boss))
	if res.IsError || !strings.Contains(res.Content, `"status":"cancelled"`) {
		t.Error(res.Content)
	}
	wants(t, <-ended, writ.Cancelled, "the call was cancelled")
	res = f.says("writ_invocations_cancel", object{"id": runs[0].ID}, as(boss))
	if want := `{"domain_code":"conflict","error_type":"ConflictError","message":"` + runs[0].ID + ` is already cancelled","status":"error"}`; res.Content != want {
		t.Error(res.Content)
	}
	// Its own session, from inside.
	var made struct{ Data struct{ ID string } }
	f.must(json.Unmarshal([]byte(f.says("writ_agents_start_session", object{"name": "short"}, as(boss)).Content), &made))
	_, err = f.call("writ_agents_end_session", object{"session": made.Data.ID}, as(boss), in(made.Data.ID, ""))
	wants(t, err, writ.Denied, "denied: the session or task of the call has ended")
	if err := f.until(func() bool { return !f.SessionOpen(made.Data.ID) }); err != nil {
		t.Error("the session is open")
	}
	// Two sessions that end each other.
	var ids [2]string
	for i := range ids {
		s, err := f.OpenSession(t.Context(), Call{Agent: boss.Agent, Token: boss.Token}, "")
		f.must(err)
		ids[i] = s.ID
	}
	each(2, func(i int) {
		_, _ = f.call("writ_agents_end_session", object{"session": ids[1-i]}, as(boss), in(ids[i], "")) // who is first is nobody's to say
	})
	if f.until(func() bool { return !f.SessionOpen(ids[0]) || !f.SessionOpen(ids[1]) }) != nil {
		t.Error("neither session ended")
	}
}

// until waits for what happens beside a call.
func (f *fixture) until(is func() bool) error {
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if is() {
			return nil
		}
		runtime.Gosched()
	}
	return context.DeadlineExceeded
}

// Stopping and revoking reach those below, are written down with who and why, and only
// a person undoes them.
func TestAdministrationStops(t *testing.T) {
	f := newHouses(t)
	secret, kid := f.token("kid")
	_, err := f.call("look", args(1), as(kid))
	f.must(err)
	if res := f.says("writ_agents_revoke_token", sure(object{"agent": "kid"}), by("boss")); res.Content != `{"data":{"revoked":["`+kid.Token+`"]},"status":"ok"}` {
		t.Error(res.Content)
	}
	if _, err := f.Authenticate(secret); writ.KindOf(err) != writ.Unauthenticated {
		t.Errorf("the token: %v", err)
	}
	_, err = f.call("look", args(1), by("kid"))
	f.must(err)
	if res := f.says("writ_agents_stop", sure(object{"agent": "kid"}), by("boss")); res.Content != `{"data":{"done":"stopped"},"status":"ok"}` {
		t.Error(res.Content)
	}
	_, err = f.call("look", args(1), by("kid"))
	wants(t, err, writ.Stopped, "agent kid is stopped; a person lifts it with: writ stop --lift kid --as NAME")
	if res := f.says("writ_agents_stops", object{}, by("boss")); !strings.Contains(res.Content, `"agent":"kid"`) {
		t.Error(res.Content)
	}
	if res := f.says("writ_agents_lift_stop", sure(object{"agent": "kid"}), by("boss")); !res.IsError {
		t.Error(res.Content)
	}
	_, err = f.call("look", args(1), by("kid"))
	wants(t, err, writ.Stopped, "")
	f.must(f.Lift(t.Context(), "kid", f.alice()))
	_, err = f.call("look", args(1), by("kid"))
	f.must(err)
	var said []string
	for e, err := range f.store.Entries(t.Context()) {
		f.must(err)
		if e.Kind == "admin.operation" {
			said = append(said, e.Body[strings.Index(e.Body, `"data":`):strings.Index(e.Body, `,"kind"`)])
		}
	}
	want := []string{
		`"data":{"acts_for":"alice","operation":"writ_agents_revoke_token","reason":"it loops","target":"kid"}`,
		`"data":{"acts_for":"alice","operation":"writ_agents_stop","reason":"it loops","target":"kid"}`,
	}
	if diff := cmp.Diff(want, said); diff != "" {
		t.Error(diff)
	}
}

// A standing approval is revoked by its agent and by those above it.
func TestAdministrationRevokesGrants(t *testing.T) {
	f := newHouses(t)
	for agent, revoker := range map[string]string{"kid": "boss", "stranger": "stranger"} {
		_, err := f.call("drop", args(1), by(agent))
		wants(t, err, writ.Pending, "")
		r := f.pending()[0]
		f.must(f.Decide(t.Context(), approval.Answer{ID: r.ID, Digest: r.Digest, Approve: true, Grant: &approval.Allow{Uses: 3, For: time.Hour}}, f.alice()))
		var l struct{ Data []struct{ ID, Agent string } }
		f.must(json.Unmarshal([]byte(f.says("writ_approvals_grants", object{}, by(revoker)).Content), &l))
		if len(l.Data) != 1 || l.Data[0].Agent != agent {
			t.Fatalf("%+v", l)
		}
		revoke := sure(object{"grant": l.Data[0].ID})
		if agent == "stranger" {
			if res := f.says("writ_approvals_revoke_grant", revoke, by("boss")); !strings.Contains(res.Content, `"not_found"`) {
				t.Error(res.Content)
			}
		}
		if res := f.says("writ_approvals_revoke_grant", revoke, by(revoker)); res.Content != `{"data":{"done":"revoked"},"status":"ok"}` {
			t.Error(res.Content)
		}
		if live, err := f.store.LiveGrants(t.Context(), agent, "drop", f.ledger.Now()); err != nil || len(live) != 0 {
			t.Errorf("%v, %v", live, err)
		}
	}
}

// The log has the operation and who called, and nothing of what they wrote.
func TestAdministrationEvents(t *testing.T) {
	f := newHouses(t)
	var log bytes.Buffer
	f.log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	f.says("writ_health_show", object{}, by("boss"))
	f.says("writ_agents_stop", object{"agent": "secret-name"}, by("boss"))
	f.says("writ_agents_show", object{"agent": "secret-name"}, by("boss"))
	f.says("writ_audit_list", object{"since": "secret-time"}, by("boss"))
	f.says("writ_agents_delegate", object{"name": "secret-name"}, by("kid"))
	(&administration{e: f.Engine}).Tell(admin.Event{Name: admin.NotImplemented, Operation: "writ_x_y", Actor: "kid"})
	want := `level=WARN msg=mcp_handler_guardrail_violated operation=writ_agents_stop actor="boss for alice" code=missing_confirm
level=WARN msg=mcp_handler_invoke_failed operation=writ_agents_show actor="boss for alice"
level=WARN msg=mcp_handler_argument_invalid operation=writ_audit_list actor="boss for alice"
level=INFO msg=mcp_handler_capability_gap operation=writ_agents_delegate actor="kid for alice"
level=WARN msg=mcp_handler_not_implemented operation=writ_x_y actor=kid
`
	if diff := cmp.Diff(want, log.String()); diff != "" {
		t.Error(diff)
	}
}

// A box is listed for and killed by those who stand above its agent, and nobody else.
func TestAdministrationKillsSandboxes(t *testing.T) {
	f := newHouses(t)
	if os.Geteuid() == 0 { // nothing runs as root
		f.must(os.Chown(filepath.Join(f.dir, "ws"), 65534, 65534))
	}
	ended := map[string]chan error{}
	for _, agent := range []string{"kid", "stranger"} {
		if err := f.Unavailable(t.Context(), agent, "shell_command"); err != nil {
			need.Lacking(t, "no sandbox runs a shell here: %v", err)
		}
		over := make(chan error, 1)
		ended[agent] = over
		go func() {
			out, err := f.call("shell_command", object{"command": "sleep 60"}, by(agent))
			if err == nil && !out.IsError {
				err = errors.New("it slept on")
			}
			over <- err
		}()
	}
	boxes := func(agent string) (ids []string) {
		for _, b := range f.Sandboxes() {
			if b.Agent == agent {
				ids = append(ids, b.ID)
			}
		}
		return ids
	}
	f.must(f.until(func() bool { return len(boxes("kid")) == 1 && len(boxes("stranger")) == 1 }))
	mine, theirs := boxes("kid")[0], boxes("stranger")[0]
	if got := f.says("writ_sandbox_list", object{}, by("boss")).Content; !strings.Contains(got, mine) || strings.Contains(got, theirs) || !strings.Contains(got, `"total":1}`) {
		t.Error(got)
	}
	if got := f.says("writ_sandbox_show", object{"id": theirs}, by("boss")).Content; !strings.Contains(got, `"not_found"`) {
		t.Error(got)
	}
	if got := f.says("writ_sandbox_show", object{"id": mine}, by("boss")).Content; !strings.Contains(got, `"tool":"shell_command"`) || strings.Contains(got, `"ended"`) {
		t.Error(got)
	}
	if got := f.says("writ_sandbox_kill", sure(object{"id": theirs}), by("boss")).Content; !strings.Contains(got, `"not_found"`) {
		t.Error(got)
	}
	if got := f.says("writ_sandbox_kill", sure(object{"id": mine}), by("boss")).Content; got != `{"data":{"done":"killed"},"status":"ok"}` {
		t.Error(got)
	}
	if err := <-ended["kid"]; err != nil {
		t.Error(err)
	}
	if got := f.says("writ_sandbox_show", object{"id": mine}, by("boss")).Content; !strings.Contains(got, `"ended":"2`) || !strings.Contains(got, `"limit":"killed by an operator"`) {
		t.Error(got)
	}
	if len(boxes("stranger")) != 1 {
		t.Error("the stranger's box is gone")
	}
	f.must(f.Stop(t.Context(), "stranger", "over"))
	<-ended["stranger"]
}

// A delegated agent is ended by those above it.
func TestAdministrationEndsChildren(t *testing.T) {
	f := newHouses(t)
	_, boss := f.token("boss")
	_, other := f.token("stranger")
	mine, theirs := f.child(boss, "help", config.Request{}), f.child(other, "help", config.Request{})
	if got := f.says("writ_agents_end", object{"agent": theirs.Agent}, as(boss)).Content; !strings.Contains(got, `"not_found"`) {
		t.Error(got)
	}
	if got := f.says("writ_agents_end", object{"agent": mine.Agent}, as(boss)).Content; got != `{"data":{"done":"ended"},"status":"ok"}` {
		t.Error(got)
	}
	if _, err := f.call("look", args(1), as(theirs)); err != nil {
		t.Errorf("the stranger's child: %v", err)
	}
	_, err := f.call("look", args(1), as(mine))
	wants(t, err, writ.Unauthenticated, "there is no such agent any more")
}
