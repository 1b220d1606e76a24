package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// A name that somebody else's DNS points at this machine is not ours (J).
func TestHost(t *testing.T) {
	w := newWorld(t)
	port := w.url[strings.LastIndexByte(w.url, ':'):]
	for _, host := range []string{"evil.example", "evil.example" + port, "127.0.0.1.evil.example", "localhost.evil.example" + port, "localhost.", "LOCALHOST", "0.0.0.0" + port,
		"10.0.0.1", "[::2]", "127.0.0.1@evil.example", "evil.example:127.0.0.1", "2130706433", "0x7f.1", "writ"} {
		w.refused(ask{agentDoor, "coder", "GET", "/v1/tools", []string{"Host: " + host}, ""}, 421, writ.Denied,
			"this Host is not served here; use an address or a name of the daemon: with TLS one that its certificate names")
	}
	for _, host := range []string{"127.0.0.1" + port, "127.0.0.1", "localhost" + port, "localhost", "[::1]" + port, "[::1]", "127.8.9.1"} {
		w.ok(ask{agentDoor, "coder", "GET", "/v1/tools", []string{"Host: " + host}, ""})
	}
}

// A web page cannot cause a request, whatever method it uses.
func TestOrigin(t *testing.T) {
	w := newWorld(t)
	host := strings.TrimPrefix(w.url, "http://")
	for _, origin := range []string{"http://evil.example", "null", "https://" + host, "http://localhost", "http://127.0.0.1", "file://", "http://" + host + ".evil.example", "%"} {
		for _, a := range []ask{
			{agentDoor, "coder", "GET", "/v1/tools", nil, ""},
			{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"stat","args":{"path":"."}}`},
			{agentDoor, "", "GET", "/v1/health", nil, ""},
		} {
			a.header = []string{"Origin: " + origin}
			w.refused(a, 403, writ.Denied, "requests from web pages are not taken; leave Origin out")
		}
	}
	w.ok(ask{agentDoor, "coder", "GET", "/v1/tools", []string{"Origin: http://" + host}, ""})
	w.ok(ask{agentDoor, "coder", "GET", "/v1/tools", nil, ""})
	if got := w.ok(ask{agentDoor, "coder", "GET", "/v1/tools", nil, ""}); got.header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("a web page is let in")
	}
}

// Another token's session and task are as if they were not there: to look at, to
// work in, to end; also for another token of the same agent.
func TestForeignScopes(t *testing.T) {
	w := newWorld(t)
	mine, err := w.agent("coder").OpenSession(t.Context(), client.SessionRequest{Name: "mine"})
	must(t, err)
	task, err := w.agent("coder").StartTask(t.Context(), client.TaskRequest{Name: "fix", Session: mine.ID})
	must(t, err)
	second, err := w.operator.NewToken(t.Context(), "coder", alice)
	must(t, err)
	for _, who := range []string{"other", "helper", second.Token} {
		for target, guess := range map[string]string{"/v1/sessions/" + mine.ID: "/v1/sessions/ses_nonsense", "/v1/tasks/" + task.ID: "/v1/tasks/task_nonsense"} {
			for _, a := range []ask{{agentDoor, who, "GET", "", nil, ""}, {agentDoor, who, "POST", "/end", nil, ""}} {
				got, unknown := a, a
				got.target, unknown.target = target+a.target, guess+a.target
				x, y := w.ask(got), w.ask(unknown)
				if x.status != 404 || y.status != 404 || strings.ReplaceAll(x.problem.Detail, mine.ID, "ID") != strings.ReplaceAll(y.problem.Detail, "ses_nonsense", "ID") &&
					strings.ReplaceAll(x.problem.Detail, task.ID, "ID") != strings.ReplaceAll(y.problem.Detail, "task_nonsense", "ID") {
					t.Errorf("%s tells it apart: %q, %q", got.target, x.problem.Detail, y.problem.Detail)
				}
			}
		}
		w.refused(ask{agentDoor, who, "POST", "/v1/calls", nil, fmt.Sprintf(`{"tool":"stat","args":{"path":"."},"session":%q}`, mine.ID)}, 404, writ.NotFound,
			"there is no such open session of this token; open one with: writ session start")
		w.refused(ask{agentDoor, who, "POST", "/v1/calls", nil, fmt.Sprintf(`{"tool":"stat","args":{"path":"."},"task":%q}`, task.ID)}, 404, writ.NotFound,
			"there is no such open task in this session; open one with: writ task start NAME")
		for _, s := range jsonOf[client.Page[client.Session]](t, w.ok(ask{agentDoor, who, "GET", "/v1/sessions", nil, ""})).Data {
			if s.ID == mine.ID {
				t.Errorf("%s lists it", who)
			}
		}
	}
	// Control: its own token works in it, and ends it.
	w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, fmt.Sprintf(`{"tool":"stat","args":{"path":"."},"session":%q,"task":%q}`, mine.ID, task.ID)})
	must(t, w.agent("coder").EndTask(t.Context(), task.ID))
	must(t, w.agent("coder").EndSession(t.Context(), mine.ID))
}

// A tool that is not listed cannot be called, and no spelling of one that is
// stands for it.
func TestUnlistedTools(t *testing.T) {
	w := newWorld(t)
	tools, err := w.agent("other").Tools().All(t.Context())
	must(t, err)
	listed := func(name string) bool {
		return slices.ContainsFunc(tools, func(x client.Tool) bool { return x.Name == name })
	}
	for _, hidden := range []string{"shell_command", "delete_file", "count_words"} {
		if listed(hidden) {
			t.Errorf("%s is listed", hidden)
		}
		got := w.ask(ask{agentDoor, "other", "POST", "/v1/calls", nil, fmt.Sprintf(`{"tool":%q,"args":{"path":"x"}}`, hidden)})
		if got.status != 403 || got.problem.Kind != writ.Denied || got.problem.CallID == "" {
			t.Errorf("%s: %d %s", hidden, got.status, got.body)
		}
		if got := w.ask(ask{agentDoor, "other", "GET", "/v1/tools/" + hidden, nil, ""}); got.status != 404 {
			t.Errorf("%s is shown: %s", hidden, got.body)
		}
	}
	for _, alike := range []string{"STAT", "Stat", "stat ", " stat", "stat\u200b", "ѕtat", "ｓtat", "stat\u0000", "sta\u0074\u0301", "stat/", "stat%00", "writ__stat", "../stat"} {
		body, err := json.Marshal(client.CallRequest{Tool: alike, Args: json.RawMessage(`{"path":"."}`)})
		must(t, err)
		if got := w.ask(ask{agentDoor, "coder", "POST", "/v1/calls", nil, string(body)}); got.status != 404 || got.problem.Kind != writ.NotFound {
			t.Errorf("%q: %d %s", alike, got.status, got.body)
		}
	}
	w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"stat","args":{"path":"."}}`})
}

// One denied call of a batch neither stops the others nor slips through with them.
func TestBatch(t *testing.T) {
	w := newWorld(t)
	w.write("ws/gone", "x")
	got := w.ok(ask{agentDoor, "coder", "POST", "/v1/batches", nil, `{"calls":[
		{"tool":"write_file","args":{"path":"a","content":"1"}},
		{"tool":"read_file","args":{"path":"/etc/shadow"}},
		{"tool":"delete_file","args":{"path":"gone"}},
		{"tool":"nonsense"},
		{"tool":"read_file","args":{"path":"missing"}},
		{"tool":"read_file","args":{"path":"a"}}]}`})
	var kinds []string
	out := jsonOf[client.BatchReply](t, got)
	for _, r := range out.Results {
		kind := "ok"
		if r.Error != nil {
			kind = string(r.Error.Kind)
		} else if r.IsError {
			kind = "error"
		}
		kinds = append(kinds, kind)
		if r.CallID == "" || r.Error != nil && (!r.IsError || r.Content == "") {
			t.Errorf("%+v", r)
		}
	}
	if want := []string{"ok", "denied", "approval_pending", "not_found", "error", "ok"}; !slices.Equal(kinds, want) {
		t.Errorf("got %v, want %v\n%s", kinds, want, got.body)
	}
	if r := out.Results[2]; !strings.HasPrefix(r.CallID, "call_") || r.Error.Approval != r.CallID {
		t.Errorf("%+v", r)
	}
	if _, err := os.Stat(filepath.Join(w.dir, "ws/gone")); err != nil {
		t.Error("it was deleted without a person")
	}
	if !strings.Contains(out.Results[5].Content, "1") {
		t.Errorf("the read does not see the write before it: %+v", out.Results[5])
	}
}

// What a model writes as "1" where a number is meant runs as 1, and it is 1 that is
// decided and recorded; nothing else is taken for something else.
func TestCoercion(t *testing.T) {
	w := newWorld(t)
	for _, args := range []string{`{"n":"1"}`, `{"n":1}`, `{"n":1.0}`, `{"n":"1e0"}`, `{"n":"1 "}`} {
		go func() { w.gate <- struct{}{} }()
		got := jsonOf[client.CallReply](t, w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"wait","args":` + args + `}`}))
		if got.Content != `waited {"n":1}` {
			t.Errorf("%s: %q", args, got.Content)
		}
	}
	for _, args := range []string{`{"n":[1]}`, `{"n":true}`, `{"n":null}`, `{"n":"1 2"}`, `{"n":"0x1"}`, `{"n":""}`} {
		if got := w.ask(ask{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"wait","args":` + args + `}`}); got.status != 400 {
			t.Errorf("%s: %s", args, got.body)
		}
	}
}

// Who calls is the token's agent, whatever the request says of itself.
func TestIdentity(t *testing.T) {
	w := newWorld(t)
	got := w.ok(ask{agentDoor, "other", "POST", "/v1/calls", []string{"X-Agent: coder", "X-Forwarded-User: coder", "X-Writ-Agent: coder", "Cookie: token=" + w.token("coder")},
		`{"tool":"stat","args":{"path":"."}}`})
	entries, err := w.operator.LedgerCall(jsonOf[client.CallReply](t, got).CallID).All(t.Context())
	must(t, err)
	if len(entries) != 2 {
		t.Fatalf("%d entries", len(entries))
	}
	for _, e := range entries {
		if b := bodyOf(t, e); b.Agent != "other" {
			t.Errorf("%s", e.Body)
		}
	}
}

type entryBody struct {
	Seq               int64
	Kind, Agent, Call string
	Data              map[string]any
}

func bodyOf(t testing.TB, e client.Entry) entryBody {
	t.Helper()
	var b entryBody
	must(t, json.Unmarshal(e.Body, &b))
	return b
}

// A caller that goes away ends its call, and how that ended is written down.
func TestCancelled(t *testing.T) {
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	failed := make(chan error, 1)
	coder := w.agent("coder")
	go func() {
		_, err := coder.Call(ctx, client.CallRequest{Tool: "wait"}, 0)
		failed <- err
	}()
	call := ""
	for e, err := range w.operator.Events(t.Context(), 0) {
		must(t, err)
		b := bodyOf(t, e.Entry)
		if e.Kind == "call.started" {
			call = b.Call
			cancel()
		}
		if e.Kind == "call.finished" {
			if b.Call != call || b.Data["outcome"] == "ok" {
				t.Errorf("%s", e.Body)
			}
			break
		}
	}
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	w.end()
	if strings.Contains(w.log.String(), "level=ERROR") {
		t.Errorf("a caller that went away is logged as a failure:\n%s", w.log)
	}
}

// The token of a child ends with it, and so do those of its own children.
func TestDelegatedToken(t *testing.T) {
	w := newWorld(t)
	kid, err := w.agent("coder").Delegate(t.Context(), client.DelegationRequest{Name: "kid", LastsSeconds: 60})
	must(t, err)
	w.tokens["kid"] = kid.Token
	grandkid, err := w.agent("kid").Delegate(t.Context(), client.DelegationRequest{Name: "grandkid", LastsSeconds: 60})
	must(t, err)
	w.tokens["grandkid"] = grandkid.Token
	stat := `{"tool":"stat","args":{"path":"."}}`
	for _, who := range []string{"kid", "grandkid"} {
		w.ok(ask{agentDoor, who, "POST", "/v1/calls", nil, stat})
		names := jsonOf[client.Page[client.Agent]](t, w.ok(ask{agentDoor, who, "GET", "/v1/agents", nil, ""})).Data
		if len(names) != map[string]int{"kid": 2, "grandkid": 1}[who] || names[0].Where != "" || len(names[0].Tokens) != 0 {
			t.Errorf("%s sees %+v", who, names)
		}
	}
	// Neither itself, nor one below, nor a stranger ends it.
	for _, who := range []string{"kid", "grandkid", "other", "helper"} {
		if got := w.ask(ask{agentDoor, who, "POST", "/v1/delegations/" + url.PathEscape(kid.Agent) + "/end", nil, ""}); got.status != 404 {
			t.Errorf("%s ends it: %s", who, got.body)
		}
	}
	must(t, w.agent("coder").EndDelegation(t.Context(), kid.Agent))
	for _, who := range []string{"kid", "grandkid"} {
		w.refused(ask{agentDoor, who, "POST", "/v1/calls", nil, stat}, 401, writ.Unauthenticated, badToken)
		w.refused(ask{agentDoor, who, "GET", "/v1/events", nil, ""}, 401, writ.Unauthenticated, badToken)
		w.refused(ask{operatorDoor, who, "GET", "/v1/tools", nil, ""}, 401, writ.Unauthenticated, badToken)
	}
}

// An agent sees what became of its own requests and of nobody else's; all of one is for
// people.
func TestOthersApprovals(t *testing.T) {
	w := newWorld(t)
	id := w.pending("coder", "secret-name")
	w.refused(ask{agentDoor, "other", "GET", "/v1/approvals/" + id, nil, ""}, 404, writ.NotFound,
		fmt.Sprintf("there is no request %q; 'writ approval list' shows those that wait", id))
	if got := w.ok(ask{agentDoor, "other", "GET", "/v1/approvals", nil, ""}); strings.Contains(got.body, "secret-name") || strings.Contains(got.body, id) {
		t.Errorf("it is listed: %s", got.body)
	}
	state := filepath.Join(w.dir, "state")
	for _, d := range []door{agentDoor, operatorDoor} { // a token makes its agent, at either door
		for _, target := range []string{"/v1/approvals/" + id, "/v1/approvals"} {
			mine := w.ok(ask{d, "coder", "GET", target, nil, ""})
			if !strings.Contains(mine.body, id) || strings.Contains(mine.body, "secret-name") || strings.Contains(mine.body, state) || strings.Contains(mine.body, "writ.yaml") {
				t.Errorf("%s: %s", target, mine.body)
			}
		}
	}
	whole := w.ok(ask{operatorDoor, "", "GET", "/v1/approvals/" + id, nil, ""})
	if !strings.Contains(whole.body, "secret-name") || !strings.Contains(whole.body, state) || !strings.Contains(whole.body, "writ.yaml") {
		t.Errorf("the operator does not see all: %s", whole.body)
	}
	all := jsonOf[client.Approval](t, whole)
	want := client.Approval{
		ID: id, State: "pending", Agent: "coder", Tool: "delete_file", Risk: all.Risk, Class: all.Class, Requested: all.Requested, Expires: all.Expires, Digest: all.Digest, Quorum: 1,
		ArgsDigest: all.ArgsDigest, ArgsBytes: int64(len(all.Shown.Args)),
	}
	if diff := cmp.Diff(want, jsonOf[client.Approval](t, w.ok(ask{agentDoor, "coder", "GET", "/v1/approvals/" + id, nil, ""}))); diff != "" {
		t.Error(diff)
	}
}

// Every answer has an id; the caller's own is kept where it fits a line, and a
// failure is logged with it.
func TestRequestID(t *testing.T) {
	w := newWorld(t)
	for given, kept := range map[string]bool{"abc-1.2_3": true, strings.Repeat("a", 64): true, strings.Repeat("a", 65): false, "a b": false, "a\tb": false, "é": false, "": false, "<x>": false} {
		for _, target := range []string{"/v1/health", "/nothing"} {
			got := w.ask(ask{agentDoor, "", "GET", target, []string{"X-Request-ID: " + given}, ""}).header.Get("X-Request-ID")
			if (got == given) != kept || !kept && !strings.HasPrefix(got, "req_") {
				t.Errorf("%q: %q", given, got)
			}
		}
	}
	w.token("coder")
	w.broken = true
	must(t, w.engine.Ledger().Close())
	got := w.ask(ask{agentDoor, "coder", "POST", "/v1/calls", []string{"X-Request-ID: find-me"}, `{"tool":"stat","args":{"path":"."}}`})
	if got.status != http.StatusServiceUnavailable || got.problem.Kind != writ.StoreUnavailable || !strings.Contains(w.log.String(), "request=find-me") {
		t.Errorf("%s\n%s", got.body, w.log)
	}
}
