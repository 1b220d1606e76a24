package api

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// A call that asks is answered 202 with where to look; there it is found once it has
// ended, with its result, however its agent waits.
func TestAcceptedThenPolled(t *testing.T) {
	w := newWorld(t)
	got := w.ask(ask{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"send","args":{"text":"a"}}`})
	id := got.problem.CallID
	at := "/v1/invocations/" + id
	if got.status != http.StatusAccepted || !strings.HasPrefix(id, "call_") || got.problem.Approval != id || got.problem.Resume != at || got.header.Get("Location") != at {
		t.Fatalf("%d %v %s", got.status, got.header, got.body)
	}
	poll := func(query string) client.Invocation {
		return jsonOf[client.Invocation](t, w.ok(ask{agentDoor, "coder", "GET", got.header.Get("Location") + query, nil, ""}))
	}
	if i := poll(""); i.ID != id || i.Status != "pending" || i.ApprovalStatus != "pending" || i.Class != "write" || i.Door != "http" || i.Result != nil || i.Error != nil {
		t.Errorf("%+v", i)
	}
	w.decide(id, `"approve":true`)
	i := poll("?wait=5")
	for i.Completed == "" {
		i = poll("?wait=5")
	}
	if i.Status != "completed" || i.ApprovalStatus != "approved" || i.DecidedBy != "alice" || i.Outcome != "ok" || i.Result == nil || i.Result.Content != "sent 1" || i.Result.CallID != id {
		t.Errorf("%+v %+v", i, i.Result)
	}
	if again := poll(""); again.Result == nil || again.Result.Content != "sent 1" {
		t.Errorf("looked at again: %+v", again)
	}
	if n := w.sent.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// Made again after its approval, the same call gets what came of it, once; made a
// third time it is a new one. One that is answered otherwise does not run.
func TestAcceptedThenMadeAgain(t *testing.T) {
	w := newWorld(t)
	body := `{"tool":"send","args":{"text":"a"}}`
	id := w.send("coder", "a")
	w.decide(id, `"approve":true`)
	w.ended(id)
	w.refused(ask{agentDoor, "coder", "POST", "/v1/invocations/" + id + "/cancel", nil, ""}, 409, writ.Conflict, id+" is already completed") // and takes nothing
	again := jsonOf[client.CallReply](t, w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, body}))
	if again.CallID != id || again.Content != "sent 1" || w.sent.Load() != 1 {
		t.Errorf("%+v after %d runs", again, w.sent.Load())
	}
	if third := w.send("coder", "a"); third == id {
		t.Error("an outcome was handed over twice")
	}
	rejected := w.send("coder", "b")
	w.decide(rejected, `"approve":false,"reason":"not today"`)
	i := jsonOf[client.Invocation](t, w.ok(ask{agentDoor, "coder", "GET", "/v1/invocations/" + rejected + "?wait=5", nil, ""}))
	if i.Status != "rejected" || i.ApprovalStatus != "rejected" || i.ApprovalReason != "not today" || i.DecidedBy != "alice" || w.sent.Load() != 1 {
		t.Errorf("%+v after %d runs", i, w.sent.Load())
	}
}

// Whatever a person grants besides, the call that they approved runs once; the next
// like it runs under the grant, and none after the last.
func TestGrantedOnce(t *testing.T) {
	w := newWorld(t)
	id := w.send("coder", "a")
	w.decide(id, `"approve":true,"grant":{"uses":1,"seconds":600}`)
	if i := w.ended(id); i.Status != "completed" || i.Grant != "" || w.sent.Load() != 1 {
		t.Fatalf("%+v after %d runs", i, w.sent.Load())
	}
	body := `{"tool":"send","args":{"text":"a"}}`
	if got := jsonOf[client.CallReply](t, w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, body})); got.CallID != id {
		t.Errorf("its outcome was not handed over: %+v", got)
	}
	got := jsonOf[client.CallReply](t, w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, body}))
	grants := jsonOf[client.Page[client.Grant]](t, w.ok(ask{agentDoor, "coder", "GET", "/v1/grants", nil, ""})).Data
	if len(grants) != 1 || grants[0].From != id || grants[0].Uses != 1 || grants[0].State != "used_up" || string(grants[0].Args["text"]) != `"a"` {
		t.Fatalf("%+v", grants)
	}
	if i := w.ended(got.CallID); i.Grant != grants[0].ID || i.ApprovalStatus != "approved" || i.DecidedBy != "alice" || w.sent.Load() != 2 {
		t.Errorf("%+v after %d runs", i, w.sent.Load())
	}
	w.send("coder", "a") // it asks again
}

// keyed makes a call with a key.
func (w *world) keyed(agent, key, path, content string) answer {
	w.t.Helper()
	return w.ask(ask{agentDoor, agent, "POST", "/v1/calls", nil, fmt.Sprintf(`{"tool":"write_file","args":{"path":%q,"content":%q},"idempotency_key":%q}`, path, content, key)})
}

// The same key and call are one call: the same answer, one effect. The same key for
// another call is refused, and another agent's key is another.
func TestIdempotencyKey(t *testing.T) {
	w := newWorld(t)
	first := w.keyed("coder", "k", "a", "1")
	w.write("ws/a", "changed since")
	second := w.keyed("coder", "k", "a", "1")
	if first.status != 200 || second.status != 200 || first.body != second.body {
		t.Errorf("%s\n%s", first.body, second.body)
	}
	if b, err := os.ReadFile(filepath.Join(w.dir, "ws/a")); err != nil || string(b) != "changed since" {
		t.Errorf("it was written again: %q %v", b, err)
	}
	for _, content := range []string{"2", ""} {
		got := w.keyed("coder", "k", "a", content)
		if got.status != 409 || got.problem.Kind != writ.Conflict || got.problem.Detail != "the idempotency key was used for another call; use a new one" {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	w.refused(ask{agentDoor, "coder", "POST", "/v1/calls", nil, `{"tool":"stat","args":{"path":"a"},"idempotency_key":"k"}`}, 409, writ.Conflict,
		"the idempotency key was used for another call; use a new one")
	for _, who := range []string{"other", "helper"} {
		if got := w.keyed(who, "k", "b-"+who, "2"); got.status != 200 || !strings.Contains(got.body, "created b-"+who) {
			t.Errorf("%s: %d %s", who, got.status, got.body)
		}
	}
	if got := w.keyed("coder", "k2", "a", "3"); got.status != 200 {
		t.Errorf("a new key: %s", got.body)
	}
}

// Twenty at once with one key, also where a person has to agree first, are one.
func TestIdempotencyKeyAtOnce(t *testing.T) {
	w := newWorld(t)
	w.token("coder")
	many := func(query string) []answer {
		var all sync.WaitGroup
		out := make([]answer, 20)
		for n := range out {
			all.Go(func() {
				out[n] = w.ask(ask{agentDoor, "coder", "POST", "/v1/calls" + query, nil, `{"tool":"send","args":{"text":"a"},"idempotency_key":"one"}`})
			})
		}
		all.Wait()
		return out
	}
	ids := map[string]bool{}
	for _, got := range many("") {
		if got.status != 202 {
			t.Errorf("%d %s", got.status, got.body)
		}
		ids[got.problem.Approval] = true
	}
	if len(ids) != 1 {
		t.Fatalf("they are %d requests: %v", len(ids), ids)
	}
	for id := range ids {
		w.decide(id, `"approve":true`)
	}
	for _, got := range many("?wait=60") {
		if reply := jsonOf[client.CallReply](t, got); got.status != 200 || reply.Content != "sent 1" || !ids[reply.CallID] {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if n := w.sent.Load(); n != 1 {
		t.Errorf("it ran %d times", n)
	}
}

// A key is a short line, whatever is in it, and no part of a statement (O7).
func TestHostileKeys(t *testing.T) {
	w := newWorld(t)
	for _, key := range []string{strings.Repeat("k", 10<<10), strings.Repeat("k", 129), "a\x00b", "a\nb", "\x1b[2Jk", "\u202ek", "k\u200b", "ключ"} {
		if got := w.keyed("coder", key, "refused", "x"); got.status != 400 || got.problem.Detail != "the idempotency key: use at most 128 printable ASCII characters" {
			if !strings.ContainsAny(key, "\x00\x1b") || got.status != 400 { // %q is no JSON for those, which is refused as well
				t.Errorf("%.20q: %d %s", key, got.status, got.body)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(w.dir, "ws/refused")); err == nil {
		t.Error("a refused call ran")
	}
	keys := []string{`' OR '1'='1`, `'; DROP TABLE tool_invocations; --`, `$1`, `%`, `_`, `"`, `\`, `*`, strings.Repeat("k", 128)}
	for n, key := range keys {
		for range 2 {
			if got := w.keyed("coder", key, fmt.Sprint("f", n), "x"); got.status != 200 || !strings.Contains(got.body, fmt.Sprint("created f", n)) {
				t.Errorf("%q: %d %s", key, got.status, got.body)
			}
		}
	}
	var kept []string
	for _, i := range jsonOf[client.Page[client.Invocation]](t, w.ok(ask{agentDoor, "coder", "GET", "/v1/invocations?state=completed", nil, ""})).Data {
		kept = append(kept, i.Key)
	}
	slices.Reverse(kept)
	if !slices.Equal(kept, keys) {
		t.Errorf("got %q, want %q", kept, keys)
	}
}
