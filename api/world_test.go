package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/crypto/argon2"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/sandbox/subprocess"
	"github.com/writ-run/writ/sandbox/wrapped"
)

func TestMain(m *testing.M) {
	wrapped.Main()
	subprocess.Main() // the tests' own program becomes the boxes of the doctor
	os.Exit(m.Run())
}

// world is an engine behind both doors, with listeners of its own.
type world struct {
	t        testing.TB
	dir      string
	engine   *engine.Engine
	url      string // of the agents' door
	mu       sync.Mutex
	tokens   map[string]string // by agent, as they were needed
	ids      map[string]string // of those tokens
	doors    map[door]*http.Client
	checking sync.Mutex // answers against specs
	specs    map[door]*spec
	operator *client.Client
	gate     chan struct{} // what the tool wait waits for
	log      *logged
	broken   bool // the test closed the ledger
	start    func()
	end      func()
	sent     atomic.Int64 // how often the tool send had its effect
}

const passphrase = "correct horse battery"

var alice = client.Credentials{Name: "alice", Passphrase: passphrase}

const configText = `version: 1
listen: 127.0.0.1:0
store: {path: $DIR/state}
workspaces: {main: {path: $DIR/ws}}
agents:
  coder: {workspace: main, person: alice, level: standard, overrides: {requires_approval: ["code:delete"]}}
  helper: {workspace: main, parent: coder, level: sandboxed}
  other: {workspace: main, level: sandboxed, denied: [delete_file]}
`

// definition is a tool from a file, which a person has to accept.
const definition = `name: count_words
description: Count the words of a file.
category: file_system
action_type: code:read
egress_class: none
policy: {risk: low, filesystem: {read: ["/**"]}}
parameters: {type: object, required: [file], properties: {file: {type: string, x-writ-path: read}}}
runner: {process: {argv: [wc, -w, --, {arg: file}]}}
`

func newWorld(t testing.TB, change ...func(*limits)) *world {
	t.Helper()
	return newWorldAt(t, config.Listen{Address: "127.0.0.1:0"}, change...)
}

func newWorldAt(t testing.TB, at config.Listen, change ...func(*limits)) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "writ-api-") // short: a socket's path is bounded
	must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &world{t: t, dir: dir, tokens: map[string]string{}, ids: map[string]string{}, specs: map[door]*spec{}, log: &logged{}}
	for _, d := range []string{"ws", "state", "tools"} {
		must(t, os.MkdirAll(filepath.Join(dir, d), 0o700))
	}
	if os.Geteuid() == 0 { // nothing runs as root in a box
		must(t, os.Chmod(dir, 0o711))
		must(t, os.Chown(filepath.Join(dir, "ws"), 65534, 65534))
	}
	w.write("writ.yaml", strings.ReplaceAll(configText, "$DIR", dir))
	w.write("tools/count_words.yaml", definition)
	lim := usual()
	for _, c := range change {
		c(&lim)
	}
	w.start = func() { w.serve(at, lim) }
	w.start()
	t.Cleanup(func() { w.end() })
	must(t, w.operator.AddFirstPerson(t.Context(), alice))
	w.cheapen()
	return w
}

// cheapen puts a hash of alice's passphrase in place that takes no time to check: hundreds
// of these tests have her prove herself, and package person tests how dear that is.
func (w *world) cheapen() {
	salt := make([]byte, 16)
	enc := base64.RawStdEncoding
	hash := fmt.Sprintf("$argon2id$v=19$m=16,t=1,p=2$%s$%s", enc.EncodeToString(salt), enc.EncodeToString(argon2.IDKey([]byte(passphrase), salt, 1, 16, 2, 32)))
	tx, err := w.engine.Store().Begin(w.t.Context())
	must(w.t, err)
	_, err = tx.SetPassphrase(alice.Name, hash)
	must(w.t, err)
	must(w.t, tx.Commit())
}

// serve opens the engine and both doors; end closes them.
func (w *world) serve(at config.Listen, lim limits) {
	w.t.Helper()
	log := slog.New(slog.NewTextHandler(w.log, nil))
	gate := make(chan struct{})
	w.gate = gate
	e, err := engine.Open(w.t.Context(), engine.Options{Config: filepath.Join(w.dir, "writ.yaml"), Log: log, Tools: []engine.Tool{w.waiting(), w.sending()}})
	must(w.t, err)
	w.engine = e
	l, err := Listen(at, filepath.Join(w.dir, "state"), e.Reach)
	must(w.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- serve(ctx, e, l, log, lim) }()
	w.end = sync.OnceFunc(func() {
		cancel()
		if err := <-served; err != nil {
			w.t.Errorf("serve: %v", err)
		}
		close(gate)
		if err := e.Close(); (err != nil) != w.broken {
			w.t.Errorf("close: %v", err)
		}
	})
	w.url = l.URL()
	w.dial()
}

// restart ends the daemon and begins it again on the same store.
func (w *world) restart() {
	w.t.Helper()
	w.end()
	w.start()
}

func (w *world) dial() {
	socket := client.SocketPath(filepath.Join(w.dir, "state"))
	unix := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}
	w.doors = map[door]*http.Client{agentDoor: {Transport: &http.Transport{}}, operatorDoor: {Transport: unix}}
	w.operator = client.Dial(filepath.Join(w.dir, "state"))
}

// waiting is a tool that ends when the test says so, or its call is cancelled.
func (w *world) waiting() engine.Tool {
	return engine.Tool{
		Name: "wait", Description: "Wait.", Category: action.FileSystem, Action: "code:read", Class: writ.ClassNone,
		Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`),
		Run: func(ctx context.Context, args json.RawMessage) (writ.Result, error) {
			if strings.Contains(string(args), "-1") {
				panic("the tool broke")
			}
			select {
			case <-w.gate:
				return writ.Result{Content: "waited " + string(args)}, nil
			case <-ctx.Done():
				return writ.Result{}, ctx.Err()
			}
		},
	}
}

// sending is a tool that changes something outside, so that a person is asked, and
// counts how often it did. What its text says becomes of it: fail, lost, or wait.
func (w *world) sending() engine.Tool {
	return engine.Tool{
		Name: "send", Description: "Send.", Category: action.FileSystem,
		Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string"}},"additionalProperties":false}`),
		Run: func(ctx context.Context, args json.RawMessage) (writ.Result, error) {
			n := w.sent.Add(1)
			if strings.Contains(string(args), "wait") {
				<-ctx.Done()
				return writ.Result{}, ctx.Err()
			}
			if strings.Contains(string(args), "lost") {
				return writ.Result{}, writ.Fail(writ.Unknown, "the line went dead", nil)
			}
			return writ.Result{Content: fmt.Sprint("sent ", n), IsError: strings.Contains(string(args), "fail")}, nil
		},
	}
}

func (w *world) write(name, text string) {
	w.t.Helper()
	must(w.t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), 0o600))
}

// token is an agent's, made when it is first needed; what is no agent is a token.
func (w *world) token(name string) string {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if slices.Contains([]string{"coder", "helper", "other"}, name) && w.tokens[name] == "" {
		made, err := w.operator.NewToken(w.t.Context(), name, alice)
		must(w.t, err)
		w.tokens[name], w.ids[name] = made.Token, made.ID
	}
	return cmp.Or(w.tokens[name], name)
}

// agent is a client with an agent's token.
func (w *world) agent(name string) *client.Client {
	w.t.Helper()
	c, err := client.New(w.url, w.token(name), nil)
	must(w.t, err)
	return c
}

// ask is one request.
type ask struct {
	door   door
	token  string // an agent's name, or a token itself
	method string
	target string
	header []string // "Name: value"
	body   string
}

// answer is what came back.
type answer struct {
	status  int
	header  http.Header
	body    string
	problem client.Problem // when the status is not 200
}

// ask sends a request and holds the answer against the door's document: whatever a
// test asks, it is answered as documented.
func (w *world) ask(a ask) answer {
	w.t.Helper()
	base := w.url
	if a.door == operatorDoor {
		base = "http://writ"
	}
	req, err := http.NewRequestWithContext(w.t.Context(), a.method, base+a.target, strings.NewReader(a.body))
	must(w.t, err)
	if a.body == "" {
		req.Body, req.ContentLength = nil, 0
	}
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token(a.token))
	}
	if a.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range a.header {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Del(name)
		if value != "" {
			req.Header.Set(name, value)
		}
	}
	resp, err := w.doors[a.door].Do(req)
	must(w.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	must(w.t, err)
	got := answer{status: resp.StatusCode, header: resp.Header, body: string(b)}
	if got.status != http.StatusOK {
		w.isProblem(a, &got)
	}
	w.documented(a, got)
	return got
}

func (w *world) isProblem(a ask, got *answer) {
	w.t.Helper()
	if ct := got.header.Get("Content-Type"); ct != "application/problem+json" {
		w.t.Errorf("%s %s: %d is answered as %q: %s", a.method, a.target, got.status, ct, got.body)
		return
	}
	if a.method == http.MethodHead {
		return
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(got.body)))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&got.problem); err != nil {
		w.t.Errorf("%s %s: %v in %s", a.method, a.target, err, got.body)
	}
	p := got.problem
	if p.Status != got.status || p.Title != http.StatusText(got.status) || p.Type != "urn:writ:problem:"+string(p.Kind) || p.Instance == "" || p.Instance != got.header.Get("X-Request-ID") {
		w.t.Errorf("%s %s: the problem does not agree with its answer: %+v", a.method, a.target, p)
	}
}

// must succeed.
func (w *world) ok(a ask) answer {
	w.t.Helper()
	got := w.ask(a)
	if got.status != http.StatusOK {
		w.t.Fatalf("%s %s: %d %s", a.method, a.target, got.status, got.body)
	}
	return got
}

// refused demands a status, a kind and the exact detail.
func (w *world) refused(a ask, status int, kind writ.Kind, detail string) {
	w.t.Helper()
	got := w.ask(a)
	if got.status != status || got.problem.Kind != kind || got.problem.Detail != detail {
		w.t.Errorf("%s %s %.80q\n got %d %s %q\nwant %d %s %q", a.method, a.target, a.body, got.status, got.problem.Kind, got.problem.Detail, status, kind, detail)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// logged is the daemon's log.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// jsonOf reads an answer's body.
func jsonOf[T any](t testing.TB, a answer) T {
	t.Helper()
	var v T
	must(t, json.Unmarshal([]byte(a.body), &v))
	return v
}

// pending makes a call that asks a person, and returns the request's id.
func (w *world) pending(agent, path string) string {
	w.t.Helper()
	must(w.t, os.WriteFile(filepath.Join(w.dir, "ws", path), []byte("x"), 0o600))
	got := w.ask(ask{agentDoor, agent, "POST", "/v1/calls", nil, fmt.Sprintf(`{"tool":"delete_file","args":{"path":%q}}`, path)})
	if got.status != http.StatusAccepted || got.problem.Kind != writ.Pending || got.problem.Approval == "" {
		w.t.Fatalf("it does not ask: %s", got.body)
	}
	return got.problem.Approval
}

// send makes a call of the tool send that asks a person, and returns its id.
func (w *world) send(agent, text string) string {
	w.t.Helper()
	args, err := json.Marshal(map[string]string{"text": text})
	must(w.t, err)
	got := w.ask(ask{agentDoor, agent, "POST", "/v1/calls", nil, `{"tool":"send","args":` + string(args) + `}`})
	if got.status != http.StatusAccepted || got.problem.CallID == "" || got.problem.Approval != got.problem.CallID {
		w.t.Fatalf("it does not ask: %s", got.body)
	}
	return got.problem.CallID
}

// decision is the body of alice's answer to a request as it is shown now.
func (w *world) decision(id, more string) string {
	w.t.Helper()
	a := jsonOf[client.Approval](w.t, w.ok(ask{operatorDoor, "", "GET", "/v1/approvals/" + id, nil, ""}))
	return `{"digest":"` + a.Digest + `",` + more + `,"by":` + by + `}`
}

// decide answers a request as alice.
func (w *world) decide(id, more string) client.Approval {
	w.t.Helper()
	return jsonOf[client.Approval](w.t, w.ok(ask{operatorDoor, "", "POST", "/v1/approvals/" + id + "/decision", nil, w.decision(id, more)}))
}

// ended waits for a call to end, as the operator, who takes nothing.
func (w *world) ended(id string) client.Invocation {
	w.t.Helper()
	i := jsonOf[client.Invocation](w.t, w.ok(ask{operatorDoor, "", "GET", "/v1/invocations/" + id + "?wait=60", nil, ""}))
	if i.Completed == "" {
		w.t.Fatalf("it does not end: %+v", i)
	}
	return i
}

// exists reports whether the workspace has a file.
func (w *world) exists(name string) bool {
	_, err := os.Stat(filepath.Join(w.dir, "ws", name))
	return err == nil
}
