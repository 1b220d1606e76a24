package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// receiver is somebody who is told.
type receiver struct {
	t    testing.TB
	at   string // host:port
	key  []byte // what it checks signatures with
	stop func()

	mu     sync.Mutex
	got    []delivery
	answer func(n int, w http.ResponseWriter, r *http.Request) // nil: thanks; n counts from 1
}

type delivery struct {
	id, body string
	Event    string
	Call     string `json:"invocation"`
	Tool     string
	Agent    string
	Link     string
	Answer   string
	signed   bool
	taken    bool
}

const hookKey = "a key of more than sixteen bytes"

// receive starts one on an address of this machine; with none given, on any.
func receive(t testing.TB, at string, answer func(int, http.ResponseWriter, *http.Request)) *receiver {
	t.Helper()
	if at == "" {
		at = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	r := &receiver{t: t, at: l.Addr().String(), key: []byte(hookKey), answer: answer}
	s := &http.Server{Handler: r}
	go s.Serve(l)
	r.stop = func() { s.Close() }
	t.Cleanup(r.stop)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	d := delivery{id: req.Header.Get("webhook-id"), body: string(body)}
	if err := json.Unmarshal(body, &d); err != nil {
		r.t.Errorf("%s: %v", body, err)
	}
	h := hmac.New(sha256.New, r.key)
	fmt.Fprintf(h, "%s.%s.%s", d.id, req.Header.Get("webhook-timestamp"), body)
	d.signed = req.Header.Get("webhook-signature") == "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil))
	r.mu.Lock()
	n, answer := len(r.got)+1, r.answer
	r.got = append(r.got, d)
	r.mu.Unlock()
	code := &noted{ResponseWriter: w, code: 200}
	if answer != nil {
		answer(n, code, req)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got[n-1].taken = code.code/100 == 2
}

type noted struct {
	http.ResponseWriter
	code int
}

func (s *noted) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

// all is what came, in order.
func (r *receiver) all() []delivery {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// events are the names of what it took.
func (r *receiver) events() (out []string) {
	for _, d := range r.all() {
		if d.taken {
			out = append(out, strings.TrimPrefix(d.Event, "tool_invocation_"))
		}
	}
	return out
}

// took waits until it has taken exactly these.
func (r *receiver) took(want ...string) []delivery {
	r.t.Helper()
	for range 1000 {
		if len(r.events()) >= len(want) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	if got := r.events(); !slices.Equal(got, want) {
		r.t.Fatalf("told of %q, want %q", got, want)
	}
	return r.all()
}

// hookSecret is a file with the key.
func hookSecret(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "hook.key")
	if err := os.WriteFile(path, []byte("whsec_"+base64.StdEncoding.EncodeToString([]byte(hookKey))+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hookedTo is a configuration with one webhook; more is laid into it.
func hookedTo(t testing.TB, at, more string) string {
	return fmt.Sprintf("approvals:\n  webhooks:\n    ops: {url: 'http://%s/hook', secret: 'file:%s'%s}\n", at, hookSecret(t), more)
}

// listed is how a webhook is doing.
func (w *world) listed(name string) (out struct{ Name, State, URL, Failure string }) {
	w.t.Helper()
	var all []struct{ Name, State, URL, Failure string }
	w.decode(&all, "", "webhook", "list", "--json")
	for _, h := range all {
		if h.Name == name {
			return h
		}
	}
	w.t.Fatalf("%s is not in %v", name, all)
	return out
}

// Everybody is told of what they want to know, in order, once and signed; and of nothing
// that an argument says.
func TestWebhooks(t *testing.T) {
	t.Parallel()
	all, some, chat := receive(t, "", nil), receive(t, "", nil), receive(t, "", nil)
	w := newWorld(t, standard, fmt.Sprintf(`approvals:
  address: https://writ.example/
  webhooks:
    all: {url: "http://%s/hook?token=s3cret", secret: "file:%s"}
    some: {url: "http://%s/hook", secret: "file:%s", events: [tool_invocation_denied]}
    chat: {url: "http://%s/services/T0/B0/s3cret", format: slack}
`, all.at, hookSecret(t), some.at, hookSecret(t), chat.at)).init()
	w.ok(w.call("list_directory", map[string]any{}))
	w.call("read_file", map[string]any{"path": "/etc/shadow"})
	id := w.asks("some-argument.txt")
	before := all.took("requested", "started", "completed", "requested", "denied", "requested", "approval_required")
	w.must(pass+"\n", "approval", "reject", id, "--reason", "no", "--passphrase-stdin")
	got := all.took("requested", "started", "completed", "requested", "denied", "requested", "approval_required", "rejected")
	ids := map[string]bool{}
	for _, d := range got {
		if !d.signed || ids[d.id] || !strings.HasPrefix(d.id, "evt_") {
			t.Errorf("signed %v, id %q of %v", d.signed, d.id, ids)
		}
		if d.Agent != "coder" || d.Call == "" || d.Tool == "" || strings.Contains(d.body, "some-argument") || strings.Contains(d.body, "shadow") {
			t.Errorf("%s", d.body)
		}
		ids[d.id] = true
	}
	if ask := before[6]; ask.Call != id || ask.Tool != "delete_file" || ask.Link != "https://writ.example/v1/approvals/"+id || ask.Answer != "writ approval show "+id {
		t.Errorf("%s", ask.body)
	}
	some.took("denied")
	var said struct {
		Text   string
		Blocks []struct{ Type string }
	}
	if d := chat.took("")[0]; d.signed || json.Unmarshal([]byte(d.body), &said) != nil || len(said.Blocks) != 3 || !strings.Contains(said.Text, "agent coder asks to call delete_file") ||
		!strings.Contains(d.body, `\u003chttps://writ.example/v1/approvals/`+id+`|Look at it\u003e`) || strings.Contains(d.body, "some-argument") {
		t.Errorf("%s", d.body)
	}

	w.must("", "webhook", "test", "all")
	if d := all.took("requested", "started", "completed", "requested", "denied", "requested", "approval_required", "rejected", "webhook_test"); !d[8].signed {
		t.Error("a test is not signed")
	}
	if h := w.listed("all"); h.State != "ready" || h.URL != "http://"+all.at+"/…" {
		t.Errorf("%+v", h)
	}
	for _, verb := range []string{"test", "retry"} {
		if o := w.run("", "webhook", verb, "al"); o.code != 1 || !strings.Contains(o.err, `there is no webhook "al"; 'writ webhook list' shows them; did you mean all?`) {
			t.Errorf("%s: %+v", verb, o)
		}
	}
	for _, args := range [][]string{{"webhook", "list"}, {"config", "show", "--effective"}, {"egress", "log"}, {"ledger", "tail", "-n", "1000"}} {
		if o := w.must("", args...); strings.Contains(o, "s3cret") || strings.Contains(o, hookKey) {
			t.Errorf("writ %v shows a secret:\n%s", args, o)
		}
	}
	w.verifies()
}

// Who is down is told once they are up: of everything, in order, with the ids of the first
// attempt.
func TestWebhookRetries(t *testing.T) {
	t.Parallel()
	r := receive(t, "", func(n int, w http.ResponseWriter, _ *http.Request) {
		if n <= 2 {
			w.WriteHeader(500)
		}
	})
	w := newWorld(t, standard, hookedTo(t, r.at, ", events: [tool_invocation_requested, tool_invocation_completed, tool_invocation_denied]")).init()
	w.ok(w.call("list_directory", map[string]any{}))
	w.call("read_file", map[string]any{"path": "/etc/shadow"})
	w.eventually("it fails", func() bool { return w.listed("ops").State == "failing" })
	if o := w.must("", "doctor"); !strings.Contains(o, "webhook ops fails since") || !strings.Contains(o, "it answers 500") {
		t.Errorf("doctor says nothing:\n%s", o)
	}
	if o := w.must("", "webhook", "list"); !strings.Contains(o, "next try in") {
		t.Errorf("%s", o)
	}
	got := r.took("requested", "completed", "requested", "denied")
	if len(got) != 6 || got[0].id != got[1].id || got[1].id != got[2].id || got[2].id == got[3].id {
		t.Errorf("%+v", got)
	}
	if h := w.listed("ops"); h.State != "ready" {
		t.Errorf("%+v", h)
	}
	if kinds := w.ledgerKinds(); !slices.Contains(kinds, "webhook.failing") || !slices.Contains(kinds, "webhook.recovered") {
		t.Errorf("%v", kinds)
	}
}

// A daemon that is killed between what happened and telling of it tells of it when it runs
// again; what it told already it does not tell again.
func TestWebhookOutlivesTheDaemon(t *testing.T) {
	at := fmt.Sprintf("127.0.0.1:%d", freePort(t))
	first := receive(t, at, nil)
	w := newWorld(t, standard, hookedTo(t, at, "")).init()
	_, kill := w.serve()
	w.ok(w.call("list_directory", map[string]any{}))
	told := first.took("requested", "started", "completed")
	kill()
	w.daemonGone()
	_, kill = w.serve()
	w.call("read_file", map[string]any{"path": "/etc/shadow"})
	w.eventually("what it had told, but for the last, is not told again", func() bool {
		all := first.all()[len(told):]
		if len(all) > 0 && all[0].id == told[2].id {
			all = all[1:]
		}
		return len(all) == 2 && all[0].Event == "tool_invocation_requested" && all[1].Event == "tool_invocation_denied"
	})
	first.stop()
	w.call("read_file", map[string]any{"path": "/etc/shadow"})
	w.eventually("nobody answers", func() bool { return w.listed("ops").State == "failing" })
	kill()
	w.daemonGone()
	second := receive(t, at, nil)
	w.must("", "doctor")
	second.took("requested", "denied")
}

// What fails for too long is given up until somebody says so, over restarts; 410 at once.
func TestWebhookIsGivenUp(t *testing.T) {
	t.Parallel()
	down := true
	var mu sync.Mutex
	r := receive(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if down {
			w.WriteHeader(404)
		}
	})
	gone := receive(t, "", func(_ int, w http.ResponseWriter, _ *http.Request) { w.WriteHeader(410) })
	w := newWorld(t, standard, hookedTo(t, r.at, ", give_up_after: 1s")+fmt.Sprintf("    gone: {url: 'http://%s', format: slack, events: [tool_invocation_denied]}\n", gone.at)).init()
	w.call("read_file", map[string]any{"path": "/etc/shadow"})
	w.eventually("both are given up", func() bool { return w.listed("ops").State == "stopped" && w.listed("gone").State == "stopped" })
	if n := len(gone.all()); n != 1 {
		t.Errorf("one that is gone was asked %d times", n)
	}
	w.must("", "serve", "--stop")
	w.daemonGone()
	if o := w.must("", "doctor"); !strings.Contains(o, "webhook ops was given up: it answers 404; mend it and run: writ webhook retry ops") {
		t.Errorf("%s", o)
	}
	tried := len(r.all())
	w.ok(w.call("list_directory", map[string]any{}))
	mu.Lock()
	down = false
	mu.Unlock()
	if n := len(r.all()); n != tried {
		t.Errorf("it is tried though it was given up: %d, then %d", tried, n)
	}
	w.must("", "webhook", "retry", "ops")
	r.took("requested", "denied", "requested", "started", "completed")
	w.must("", "webhook", "retry", "gone", "--from-now")
	if h := w.listed("gone"); h.State != "ready" {
		t.Errorf("%+v", h)
	}
	w.call("read_file", map[string]any{"path": "/etc/shadow"})
	w.eventually("it is told of what comes", func() bool { return len(gone.all()) == 2 })
	if a, b := gone.all()[0], gone.all()[1]; a.id == b.id {
		t.Error("what was to be left out was sent")
	}
}

// Nobody is led elsewhere, and an answer that does not come holds up nothing but itself.
func TestWebhookStaysWhereItIsSent(t *testing.T) {
	elsewhere := receive(t, "", nil)
	r := receive(t, "", func(_ int, w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "http://"+elsewhere.at+"/", http.StatusTemporaryRedirect)
	})
	over := make(chan struct{})
	slow := receive(t, "", func(n int, _ http.ResponseWriter, req *http.Request) {
		if n == 1 {
			select {
			case <-over:
			case <-req.Context().Done():
			}
		}
	})
	defer close(over)
	w := newWorld(t, standard, hookedTo(t, r.at, "")+fmt.Sprintf("    slow: {url: 'http://%s', secret: 'file:%s', events: [tool_invocation_denied]}\n", slow.at, hookSecret(t))).init()
	w.call("read_file", map[string]any{"path": "/etc/shadow"})
	w.eventually("it is not followed", func() bool {
		return strings.Contains(w.listed("ops").Failure, "it answers 307, which leads elsewhere and is not followed")
	})
	if got := elsewhere.all(); len(got) > 0 {
		t.Errorf("somebody else was told: %+v", got)
	}
	w.eventually("the slow one is asked", func() bool { return len(slow.all()) == 1 })
	began := time.Now()
	w.must("", "serve", "--stop")
	w.daemonGone()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the daemon waits %s for somebody who does not answer", took)
	}
	w.must("", "doctor")
	w.eventually("it is asked again", func() bool { return len(slow.all()) == 2 })
	if got := slow.all(); got[0].id != got[1].id {
		t.Errorf("%+v", got)
	}
}

// A secret that is not there, or that others can read, signs nothing: nothing is sent.
func TestWebhookNeedsItsSecret(t *testing.T) {
	t.Parallel()
	r := receive(t, "", nil)
	w := newWorld(t, standard, hookedTo(t, r.at, "")).init()
	_, rest, _ := strings.Cut(mustRead(t, w.config), "file:")
	path, _, _ := strings.Cut(rest, "'")
	for _, c := range []struct {
		spoil func()
		want  string
	}{
		{func() { os.Chmod(path, 0o644) }, "secret file:" + path + ": others can read or change the file (mode 0644); run: chmod 600 " + path},
		{func() { os.Chmod(path, 0o600); os.WriteFile(path, []byte("short\n"), 0o600) }, "secret: the secret has fewer than 16 bytes"},
		{func() { os.WriteFile(path, []byte("whsec_?\n"), 0o600) }, "secret: what follows whsec_ is not base64"},
		{func() { os.Remove(path) }, "secret file:" + path + ": there is no such file"},
		{func() { w.edit("file:"+path, "env:WRIT_TEST_NO_SUCH"); w.must("", "config", "reload") }, "secret env:WRIT_TEST_NO_SUCH: the daemon has no such variable"},
	} {
		c.spoil()
		if o := w.run("", "webhook", "test", "ops"); o.code != 1 || !strings.Contains(o.err, c.want) {
			t.Errorf("%+v, want %s", o, c.want)
		}
	}
	if got := r.all(); len(got) > 0 {
		t.Errorf("%+v", got)
	}
}

func mustRead(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
