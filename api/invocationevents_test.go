package api

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// happened is one event of a stream as it came over the wire.
type happened struct{ id, name, invocation string }

// stream reads events of a stream until it ends by itself, or there are so many
// (0: it has to end).
func (w *world) stream(a ask, most int) []happened {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	base := map[door]string{agentDoor: w.url, operatorDoor: "http://writ"}[a.door]
	req, err := http.NewRequestWithContext(ctx, "GET", base+a.target, nil)
	must(w.t, err)
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token(a.token))
	}
	for _, h := range a.header {
		req.Header.Set("Last-Event-ID", h)
	}
	resp, err := w.doors[a.door].Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" {
		b, _ := io.ReadAll(resp.Body)
		w.t.Fatalf("%s: %d %s", a.target, resp.StatusCode, b)
	}
	var all []happened
	var e happened
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			e.id = value
		case "event":
			e.name = strings.TrimPrefix(value, "tool_invocation_")
		case "data":
			e.invocation = jsonOf[client.InvocationEvent](w.t, answer{body: value}).Invocation
		case "":
			if e.name != "" {
				all = append(all, e)
			}
			e = happened{}
		}
		if most > 0 && len(all) == most {
			return all
		}
	}
	if most > 0 || ctx.Err() != nil {
		w.t.Errorf("%s: after %v it ended: %v", a.target, all, ctx.Err())
	}
	return all
}

func namesOf(all []happened) (names []string) {
	for _, e := range all {
		names = append(names, e.name)
	}
	return names
}

// of is the stream of one call, as the operator or an agent asks for it.
func of(d door, who, id string, last ...string) ask {
	return ask{door: d, token: who, target: "/v1/invocations/" + id + "/events", header: last}
}

// The stream of one call begins with it and ends with it; it is resumed without loss
// or repetition, also across a restart, and whoever has seen its end is told so.
func TestInvocationStream(t *testing.T) {
	w := newWorld(t)
	id := w.send("coder", "a")
	begun := w.stream(of(agentDoor, "coder", id), 2)
	if diff := cmp.Diff([]string{"requested", "approval_required"}, namesOf(begun)); diff != "" || begun[0].id != "" || begun[1].id == "" {
		t.Fatalf("%v %s", begun, diff)
	}
	w.restart()
	rest := make(chan []happened)
	go func() { rest <- w.stream(of(agentDoor, "coder", id, begun[1].id), 0) }()
	w.decide(id, `"approve":true`)
	whole := append(begun, <-rest...)
	if diff := cmp.Diff([]string{"requested", "approval_required", "approved", "started", "completed"}, namesOf(whole)); diff != "" {
		t.Error(diff)
	}
	for _, e := range whole {
		if e.invocation != id {
			t.Errorf("%+v is in the stream of %s", e, id)
		}
	}
	w.restart()
	for n, e := range whole { // broken off after any of them, by either door
		if e.id == "" {
			continue // the next belongs to it
		}
		for _, a := range []ask{of(agentDoor, "coder", id, e.id), of(operatorDoor, "", id, e.id)} {
			if got := w.stream(a, 0); !slices.Equal(got, whole[n+1:]) {
				t.Errorf("after %s: %v, want %v", e.id, got, whole[n+1:])
			}
		}
	}
	if got := w.stream(of(agentDoor, "coder", id), 0); !slices.Equal(got, whole) {
		t.Errorf("from its beginning: %v, want %v", got, whole)
	}
	if w.sent.Load() != 1 {
		t.Errorf("it ran %d times", w.sent.Load())
	}
}

// A call whose arguments a person changed goes on as the one they made of it, for
// whoever listens already and for whoever comes later.
func TestInvocationStreamEdited(t *testing.T) {
	w := newWorld(t)
	id := w.send("coder", "a")
	begun := w.stream(of(agentDoor, "coder", id), 2)
	live := make(chan []happened)
	go func() { live <- w.stream(of(agentDoor, "coder", id, begun[1].id), 0) }()
	p := jsonOf[client.Approval](t, w.ok(ask{operatorDoor, "", "POST", "/v1/approvals/" + id + "/preview", nil, `{"args":{"text":"b"}}`}))
	made := w.decide(id, `"approve":true,"edit":{"args":{"text":"b"},"digest":"`+p.Digest+`"}`)
	if made.EditOf != id || made.ID == id {
		t.Errorf("%+v", made)
	}
	want := []string{"requested", "approval_required", "approved", "started", "completed"}
	if diff := cmp.Diff(want, namesOf(append(begun, <-live...))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want, namesOf(w.stream(of(agentDoor, "coder", id), 0))); diff != "" {
		t.Error(diff)
	}
	i := jsonOf[client.Invocation](t, w.ok(ask{agentDoor, "coder", "GET", "/v1/invocations/" + id + "?wait=60", nil, ""}))
	if i.ID != made.ID || i.EditOf != id || i.Status != "completed" || i.Result == nil {
		t.Errorf("%+v", i)
	}
}

// However a call ends, it says so in the words of the document, on its own stream and
// on that of all.
func TestInvocationEvents(t *testing.T) {
	w := newWorld(t)
	coder := func(body string) string {
		return "call_" + strings.Split(strings.Split(w.ask(ask{agentDoor, "coder", "POST", "/v1/calls?wait=10", nil, body}).body, `"call_id":"call_`)[1], `"`)[0]
	}
	decided := func(text, more string) string {
		id := w.send("coder", text)
		w.decide(id, more)
		w.ended(id)
		return id
	}
	asked := []string{"requested", "approval_required"}
	ran := slices.Concat(asked, []string{"approved", "started"})
	want := map[string][]string{
		coder(`{"tool":"stat","args":{"path":"."}}`):                {"requested", "started", "completed"},
		coder(`{"tool":"read_file","args":{"path":"missing"}}`):     {"requested", "started", "failed"},
		coder(`{"tool":"read_file","args":{"path":"/etc/shadow"}}`): {"requested", "denied"},
		decided("rejected", `"approve":false`):                      append(slices.Clone(asked), "rejected"),
		decided("fail", `"approve":true`):                           append(slices.Clone(ran), "failed"),
		decided("lost", `"approve":true`):                           append(slices.Clone(ran), "unknown"),
	}
	cancelled := w.send("coder", "never mind")
	w.ok(ask{agentDoor, "coder", "POST", "/v1/invocations/" + cancelled + "/cancel", nil, ""})
	want[cancelled] = append(slices.Clone(asked), "cancelled")
	running := w.send("coder", "wait")
	w.decide(running, `"approve":true`)
	w.stream(of(operatorDoor, "", running), 4)
	w.ok(ask{agentDoor, "coder", "POST", "/v1/invocations/" + running + "/cancel", nil, ""})
	w.ended(running)
	want[running] = append(slices.Clone(ran), "cancelled")
	w.write("writ.yaml", strings.ReplaceAll(configText, "$DIR", w.dir)+"approvals: {expiry: 1s}\n")
	w.ok(ask{operatorDoor, "", "POST", "/v1/config/reload", nil, ""})
	expired := w.send("coder", "late")
	w.ask(ask{agentDoor, "coder", "POST", "/v1/calls?wait=10", nil, `{"tool":"send","args":{"text":"late"}}`})
	want[expired] = append(slices.Clone(asked), "expired")

	total := 0
	for id, names := range want {
		total += len(names)
		if diff := cmp.Diff(names, namesOf(w.stream(of(agentDoor, "coder", id), 0))); diff != "" {
			t.Errorf("of %s: %s", id, diff)
		}
	}
	for who, d := range map[string]door{"coder": agentDoor, "": operatorDoor} {
		all := map[string][]string{}
		for _, e := range w.stream(ask{door: d, token: who, target: "/v1/invocation-events?after=0"}, total) {
			all[e.invocation] = append(all[e.invocation], e.name)
		}
		if diff := cmp.Diff(want, all); diff != "" {
			t.Errorf("%q: %s", who, diff)
		}
	}
	if n := w.sent.Load(); n != 3 {
		t.Errorf("%d ran", n)
	}
	// Read in pieces, nothing is lost or comes twice.
	var pieces []happened
	for last := "0"; len(pieces) < total; {
		got := w.stream(ask{door: operatorDoor, target: "/v1/invocation-events", header: []string{last}}, min(5, total-len(pieces)))
		for n := len(got); n > 0; n-- { // an event without a number belongs to the next one
			if got[n-1].id != "" {
				last, pieces = got[n-1].id, append(pieces, got[:n]...)
				break
			}
		}
	}
	if whole := w.stream(ask{door: operatorDoor, target: "/v1/invocation-events?after=0"}, total); !slices.Equal(pieces, whole) {
		t.Errorf("in pieces %v, want %v", pieces, whole)
	}
}

// A caller that waits adds nothing to what happens to its call: what a person says of
// it is said once.
func TestInvocationEventsOfWaiting(t *testing.T) {
	w := newWorld(t)
	w.token("coder")
	waited := make(chan answer)
	go func() {
		waited <- w.ask(ask{agentDoor, "coder", "POST", "/v1/calls?wait=60", nil, `{"tool":"send","args":{"text":"a"}}`})
	}()
	id := w.stream(ask{door: operatorDoor, target: "/v1/invocation-events?after=0"}, 2)[1].invocation
	w.decide(id, `"approve":false,"reason":"no"`)
	if got := <-waited; got.status != 403 || got.problem.Kind != writ.Rejected || got.problem.CallID != id || got.problem.Detail != `a person rejected this call and said: "no"` {
		t.Errorf("%d %s", got.status, got.body)
	}
	next := jsonOf[client.CallReply](t, w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"stat","args":{"path":"."}}`})).CallID
	want := []happened{{"", "requested", id}, {"", "approval_required", id}, {"", "rejected", id}, {"", "requested", next}}
	got := w.stream(ask{door: operatorDoor, target: "/v1/invocation-events?after=0"}, len(want))
	for n := range got {
		got[n].id = ""
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
