package api

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/store"
)

// What an agent called, asked for and was granted is nobody else's to see, to end or
// to take: with its exact id it is as if it were not there (A9). Those above it see it.
func TestForeignInvocations(t *testing.T) {
	w := newWorld(t)
	kid, err := w.agent("coder").Delegate(t.Context(), client.DelegationRequest{Name: "kid", LastsSeconds: 600})
	must(t, err)
	w.tokens["kid"] = kid.Token
	pending, done := w.send("kid", "secret-asked"), w.send("kid", "secret-done")
	w.decide(done, `"approve":true`)
	w.ended(done)
	granted := w.send("kid", "secret-granted")
	w.decide(granted, `"approve":true,"grant":{"uses":1,"seconds":600}`)
	grants, err := w.operator.Grants().All(t.Context())
	must(t, err)
	grant := grants[0].ID

	type reach struct{ method, target, id string }
	all := []reach{
		{"GET", "/v1/invocations/ID", done}, {"GET", "/v1/invocations/ID?wait=1", done}, {"GET", "/v1/invocations/ID", pending},
		{"GET", "/v1/invocations/ID/events", done}, {"GET", "/v1/invocations/ID/events?after=0", pending},
		{"POST", "/v1/invocations/ID/cancel", done}, {"POST", "/v1/invocations/ID/cancel", pending},
		{"GET", "/v1/approvals/ID", pending}, {"GET", "/v1/approvals/ID", done},
		{"POST", "/v1/grants/ID/revoke", grant},
	}
	for _, who := range []string{"other", "helper"} { // a stranger, and another child of the same parent
		for _, d := range []door{agentDoor, operatorDoor} { // a token makes its agent, at either door
			for _, r := range all {
				x := w.ask(ask{d, who, r.method, strings.Replace(r.target, "ID", r.id, 1), nil, ""})
				guess := r.id[:len(r.id)-4] + "zzzz"
				y := w.ask(ask{d, who, r.method, strings.Replace(r.target, "ID", guess, 1), nil, ""})
				same := strings.ReplaceAll(x.problem.Detail, r.id, "ID") == strings.ReplaceAll(y.problem.Detail, guess, "ID")
				if x.status != 404 || y.status != 404 || x.problem.Kind != writ.NotFound || !same {
					t.Errorf("%s: %s %s: %d %q; a missing one: %d %q", who, r.method, r.target, x.status, x.problem.Detail, y.status, y.problem.Detail)
				}
			}
			for _, list := range []string{"/v1/invocations", "/v1/approvals", "/v1/grants"} {
				if got := w.ok(ask{d, who, "GET", list, nil, ""}); strings.Contains(got.body, "secret") || strings.Contains(got.body, kid.Agent) {
					t.Errorf("%s lists %s", who, got.body)
				}
			}
		}
		// The first that comes in a stream of everything is its own.
		mine := jsonOf[client.CallReply](t, w.ok(ask{agentDoor, who, "POST", "/v1/calls", nil, `{"tool":"stat","args":{"path":"."}}`})).CallID
		if got := w.stream(ask{door: agentDoor, token: who, target: "/v1/invocation-events?after=0"}, 3); got[0].invocation != mine {
			t.Errorf("%s sees %v", who, got)
		}
	}
	// Nor did any of them take, end or revoke anything.
	if i := w.ended(done); i.Status != "completed" || i.Result == nil {
		t.Errorf("%+v", i)
	}
	if a, err := w.operator.Approval(t.Context(), pending); err != nil || a.State != "pending" {
		t.Errorf("%+v %v", a, err)
	}
	if grants, err = w.operator.Grants().All(t.Context()); err != nil || grants[0].Revoked != "" {
		t.Errorf("%+v %v", grants, err)
	}
	// Control: the child itself and its parent see all of it, and the parent's looking takes nothing.
	for _, who := range []string{"coder", "kid"} {
		for _, r := range all {
			if r.method == "GET" && !strings.HasSuffix(r.target, "?after=0") { // which does not end
				w.ok(ask{agentDoor, who, r.method, strings.Replace(r.target, "ID", r.id, 1), nil, ""})
			}
		}
		if got := w.ok(ask{agentDoor, who, "GET", "/v1/grants", nil, ""}); !strings.Contains(got.body, grant) {
			t.Errorf("%s does not see its grant: %s", who, got.body)
		}
		if got := w.stream(ask{door: agentDoor, token: who, target: "/v1/invocation-events?after=0"}, 1); got[0].invocation != pending {
			t.Errorf("%s sees %v", who, got)
		}
		if taken := !w.undelivered(done); taken != (who == "kid") {
			t.Errorf("after %s looked, the outcome is taken: %v", who, taken)
		}
	}
	w.ok(ask{agentDoor, "coder", "POST", "/v1/grants/" + grant + "/revoke", nil, ""})
	if i := jsonOf[client.Invocation](t, w.ok(ask{agentDoor, "coder", "POST", "/v1/invocations/" + pending + "/cancel", nil, ""})); i.Status != "cancelled" {
		t.Errorf("%+v", i)
	}
}

// undelivered reports whether an outcome waits for its agent to come back.
func (w *world) undelivered(id string) bool {
	w.t.Helper()
	k, ok, err := w.engine.Store().Result(w.t.Context(), id)
	must(w.t, err)
	return ok && k.Delivered == ""
}

// A GET changes nothing and decides nothing, on any route and whatever it says
// besides. There is one exception: an agent's own look at its call that has ended hands
// the outcome over, so that the same call made again is a new one.
func TestGetChangesNothing(t *testing.T) {
	w := newWorld(t)
	pending, done := w.send("coder", "asked"), w.send("coder", "done")
	w.decide(done, `"approve":true`)
	w.ended(done)
	granted := w.send("coder", "granted")
	w.decide(granted, `"approve":true,"grant":{"uses":9,"seconds":600}`)
	w.ended(granted)
	w.token("helper")
	before := w.everything()
	for _, d := range []door{agentDoor, operatorDoor} {
		for path, ops := range w.spec(d).Paths {
			if _, ok := ops["get"]; !ok {
				continue
			}
			for _, id := range []string{pending, done} {
				target := strings.NewReplacer("{id}", id, "{name}", "count_words").Replace(path)
				asks := []ask{
					{d, "coder", "GET", target, nil, ""}, {d, "helper", "GET", target, nil, ""},
					{d, "coder", "GET", target + "?approve=true", nil, ""}, {d, "coder", "GET", target + "?method=POST", nil, ""},
					{d, "coder", "GET", target, []string{"X-HTTP-Method-Override: POST"}, ""},
				}
				if d == operatorDoor {
					asks = append(asks, ask{d, "", "GET", target, nil, ""}, ask{d, "", "GET", target + "?approve=true", nil, ""})
				}
				for _, a := range asks {
					if target == "/v1/invocations/"+done && a.token == "coder" && !strings.Contains(a.target, "?") {
						continue // the exception
					}
					w.peek(a)
				}
			}
		}
	}
	if diff := cmp.Diff(before, w.everything()); diff != "" {
		t.Error(diff)
	}
	if !w.undelivered(done) {
		t.Error("the outcome is taken")
	}
	w.ok(ask{agentDoor, "coder", "GET", "/v1/invocations/" + done, nil, ""})
	if w.undelivered(done) {
		t.Error("the exception is none any more: say so where it is documented")
	}
	if diff := cmp.Diff(before, w.everything()); diff != "" {
		t.Error(diff)
	}
}

// peek sends a request and reads what comes first: a stream may have no end.
func (w *world) peek(a ask) {
	w.t.Helper()
	if !strings.Contains(a.target, "events") {
		w.ask(a)
		return
	}
	base := map[door]string{agentDoor: w.url, operatorDoor: "http://writ"}[a.door]
	req, err := http.NewRequestWithContext(w.t.Context(), "GET", base+a.target, nil)
	must(w.t, err)
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token(a.token))
	}
	resp, err := w.doors[a.door].Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	_, err = resp.Body.Read(make([]byte, 64))
	must(w.t, err)
}

// everything is what the store holds of calls and grants, and how long the ledger is.
func (w *world) everything() any {
	w.t.Helper()
	calls, err := w.engine.Store().InvocationsBefore(w.t.Context(), store.InvocationsOf{Now: w.engine.Ledger().Now()}, 0, 1000)
	must(w.t, err)
	grants, err := w.engine.Store().Grants(w.t.Context())
	must(w.t, err)
	var votes []store.Vote
	for _, i := range calls {
		v, err := w.engine.Store().Votes(w.t.Context(), i.ID)
		must(w.t, err)
		votes = append(votes, v...)
	}
	return []any{calls, grants, votes, w.ledgerLength(), w.sent.Load()}
}

// A request is answered by a person with their passphrase, at the operator's door:
// never by a token, whoever's it is and whatever comes with it (A6).
func TestOnlyPeopleDecide(t *testing.T) {
	w := newWorld(t)
	id := w.send("coder", "a")
	at := "/v1/approvals/" + id
	yes := w.decision(id, `"approve":true`)
	preview := `{"args":{"text":"b"}}`
	for _, who := range []string{"coder", "helper", "other"} {
		for _, target := range []string{at + "/decision", at + "/preview", "/v1/invocations/" + id + "/resolution"} {
			body := map[bool]string{true: yes, false: preview}[strings.HasSuffix(target, "decision")]
			w.refused(ask{agentDoor, who, "POST", target, nil, body}, 404, writ.NotFound, "there is nothing at this path; GET /v1/openapi.json lists what there is")
			w.refused(ask{operatorDoor, who, "POST", target, nil, body}, 403, writ.Denied, "this is for the operator, and a token makes you its agent; leave the token out")
		}
	}
	w.refused(ask{agentDoor, "", "POST", at + "/decision", nil, yes}, 404, writ.NotFound, "there is nothing at this path; GET /v1/openapi.json lists what there is")
	token := w.token("coder")
	for _, who := range []string{`{"name":"alice","passphrase":"` + token + `"}`, `{"name":"coder","passphrase":"` + token + `"}`, `{"name":"alice","passphrase":""}`} {
		w.refused(ask{operatorDoor, "", "POST", at + "/decision", nil, strings.Replace(yes, by, who, 1)}, 401, writ.Unauthenticated, badPass)
	}
	if a, err := w.operator.Approval(t.Context(), id); err != nil || a.State != "pending" || len(a.Votes) != 0 || w.sent.Load() != 0 {
		t.Errorf("%+v %v after %d runs", a, err, w.sent.Load())
	}
	must(t, w.operator.AddPerson(t.Context(), client.NewPerson{Name: "vera", Role: "viewer", Passphrase: "only looking here"}, alice))
	w.refused(ask{operatorDoor, "", "POST", at + "/decision", nil, strings.Replace(yes, by, `{"name":"vera","passphrase":"only looking here"}`, 1)}, 403, writ.Denied,
		"vera has the role viewer, and this takes approver or admin; an admin changes it with 'writ person role vera ROLE'")
	// Control: the same words from her whose passphrase it is.
	w.ok(ask{operatorDoor, "", "POST", at + "/decision", nil, yes})
	if i := w.ended(id); i.Status != "completed" || i.DecidedBy != "alice" {
		t.Errorf("%+v", i)
	}
}

// The same answer sent again counts once, also for a call that was made again (A10).
func TestReplayedDecision(t *testing.T) {
	w := newWorld(t)
	first := w.send("coder", "a")
	yes := w.decision(first, `"approve":true`)
	at := "/v1/approvals/" + first + "/decision"
	w.ok(ask{operatorDoor, "", "POST", at, nil, yes})
	w.ended(first)
	w.refused(ask{operatorDoor, "", "POST", at, nil, yes}, 409, writ.Conflict, fmt.Sprintf("request %s is already used", first))
	w.ok(ask{agentDoor, "coder", "GET", "/v1/invocations/" + first, nil, ""})
	second := w.send("coder", "a")
	w.refused(ask{operatorDoor, "", "POST", at, nil, yes}, 409, writ.Conflict, fmt.Sprintf("request %s is already used", first))
	w.refused(ask{operatorDoor, "", "POST", "/v1/approvals/" + second + "/decision", nil, yes}, 409, writ.Changed,
		"the digest is not that of the request as it stands; look at it again")
	a, err := w.operator.Approval(t.Context(), first)
	must(t, err)
	if len(a.Votes) != 1 || a.Votes[0].Person != "alice" || a.Votes[0].Factor != "passphrase" || w.sent.Load() != 1 {
		t.Errorf("%+v after %d runs", a.Votes, w.sent.Load())
	}
	// At once, they are one too.
	yes = w.decision(second, `"approve":true`)
	statuses := make(chan int, 4)
	for range cap(statuses) {
		go func() {
			statuses <- w.ask(ask{operatorDoor, "", "POST", "/v1/approvals/" + second + "/decision", nil, yes}).status
		}()
	}
	var got []int
	for range cap(statuses) {
		got = append(got, <-statuses)
	}
	if slices.Sort(got); !slices.Equal(got, []int{200, 409, 409, 409}) || w.ended(second).Status != "completed" || w.sent.Load() != 2 {
		t.Errorf("%v after %d runs", got, w.sent.Load())
	}
}
