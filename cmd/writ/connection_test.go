package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ/cli"
)

// canary is a credential that must turn up nowhere but at the server it is for.
const canary = "cAnArY-7f3a/9b+Q=tok3n&value"

// echo is a server that writes everything back that it was sent, in many spellings.
type echo struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
}

func newEcho(t *testing.T) *echo {
	e := &echo{}
	e.Server = httptest.NewServer(http.HandlerFunc(e.serve))
	t.Cleanup(e.Close)
	return e
}

func (e *echo) serve(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	e.seen = append(e.seen, r)
	e.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/away") {
		w.Header().Set("Location", "http://127.0.0.1:1/?token="+r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusFound)
		return
	}
	auth := r.Header.Get("Authorization")
	w.Header().Set("X-Echo", auth)
	body, _ := io.ReadAll(r.Body)
	escaped, _ := json.Marshal(auth)
	fmt.Fprintf(w, "%s %s\nauth %s\nbase64 %s\nurl %s\njson %s\nhex %x\nbody %s\n", r.Method, r.RequestURI, auth,
		base64.StdEncoding.EncodeToString([]byte("x"+auth)), strings.NewReplacer("/", "%2F", "+", "%2b", "=", "%3D", "&", "%26").Replace(auth), escaped, auth, body)
}

// last is the request that came last.
func (e *echo) last(t *testing.T) *http.Request {
	t.Helper()
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.seen) == 0 {
		t.Fatal("the server saw no request")
	}
	return e.seen[len(e.seen)-1]
}

func (e *echo) count() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.seen)
}

// leaks says which spelling of the canary is in a text, or "".
func leaks(text string) string {
	for _, form := range []string{
		canary, base64.StdEncoding.EncodeToString([]byte(canary))[:36], base64.StdEncoding.EncodeToString([]byte("xBearer " + canary))[14:40],
		fmt.Sprintf("%x", canary), "cAnArY-7f3a%2F9b", `\u0026value`,
	} {
		if strings.Contains(text, form) {
			return form
		}
	}
	return ""
}

const free = "level: elevated\nautonomy: full\n"

func (w *world) api(args map[string]any) outcome { w.t.Helper(); return w.call("external_api", args) }

// A connection's credential goes to its server and comes back in no spelling.
func TestExternalAPI(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	w := newWorld(t, free, fmt.Sprintf(`connections:
  echo:
    base_url: %s/base
    auth: {type: bearer, secret: "store:canary"}
    methods: [GET, HEAD, POST]
    paths: ["/v1/**", "/away"]
`, e.URL)).init()
	if o := w.by("alice", []string{canary}, "secret", "set", "canary"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	o := w.api(map[string]any{"connection": "echo", "path": "/v1/things?page=2", "headers": map[string]string{"Authorization": "Bearer mine", "X-Trace": "1"}})
	if o.code != 0 || leaks(o.out+o.err) != "" || !strings.Contains(o.out, "GET /base/v1/things?page=2") || !strings.Contains(o.out, "[secret]") {
		t.Errorf("read: %q %+v", leaks(o.out+o.err), o)
	}
	if got := e.last(t).Header; got.Get("Authorization") != "Bearer "+canary || got.Get("X-Trace") != "1" {
		t.Errorf("the server got %v", got)
	}
	if _, err := os.Stat(filepath.Join(w.state("keys"), "secrets.key")); err != nil {
		t.Error(err)
	}
}

// A server whose certificate nobody here trusts is called that, to whoever tests and in the
// log; without a connection there is no external_api, and it is said what it takes.
func TestConnectionUntrusted(t *testing.T) {
	t.Parallel()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	w := newWorld(t, free, "connections:\n  ext:\n    base_url: "+s.URL+"\n    auth: {type: bearer, secret: \"store:canary\"}\n").init()
	if o := w.by("alice", []string{canary}, "secret", "set", "canary"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	const why = "its certificate is not one to trust: "
	if o := w.run("", "connection", "test", "ext"); o.code != 1 || !strings.Contains(o.out+o.err, why) || !strings.Contains(o.out+o.err, "unknown authority") {
		t.Errorf("%+v", o)
	}
	if out := w.must("", "egress", "log", "--refused"); !strings.Contains(out, why) {
		t.Errorf("the log does not say why:\n%s", out)
	}
	bare := newWorld(t, free, "").init()
	if o := bare.api(map[string]any{}); o.code != 1 || !strings.Contains(o.err, "while no connection is configured; an operator writes one under connections") {
		t.Errorf("without a connection: %+v", o)
	}
}

// What docs/connections.md prints works as it is printed, for the agent that init makes.
func TestConnectionPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/connections.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "```yaml\nagents:\n  coder:\n")
	block, _, _ = strings.Cut(block, "```")
	agent, more, ok := strings.Cut(block, "autonomy:\n")
	if !ok || !strings.Contains(more, "https://api.github.com ") {
		t.Fatalf("the page has no such block: %q", block)
	}
	e := newEcho(t)
	more = "autonomy:\n" + strings.Replace(more, "https://api.github.com ", e.URL+" ", 1)
	w := newWorld(t, "role: developer\n"+strings.TrimSpace(agent)+"\n", more).init()
	if o := w.by("alice", []string{canary}, "secret", "set", "github-token"); o.code != 0 {
		t.Fatalf("set: %+v", o)
	}
	w.must("", "connection", "test", "github")
	if o := w.api(map[string]any{"connection": "github", "path": "/repos/acme/app/issues"}); o.code != 0 || !strings.Contains(o.out, "GET /repos/acme/app/issues") {
		t.Errorf("reading: %+v", o)
	}
	if o := w.api(map[string]any{"connection": "github", "path": "/repos/acme/app/issues", "method": "POST", "body": "{}"}); o.code != cli.ExitPending {
		t.Errorf("writing asks nobody: %+v", o)
	}
	w.edit(`, "external_data:request"]`, "]")
	w.must("", "config", "reload")
	if o := w.api(map[string]any{"connection": "github", "path": "/user"}); o.code != cli.ExitPending {
		t.Errorf("semi by itself asks nobody: %+v", o)
	}
}
