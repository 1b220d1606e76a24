package engine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/upstream"
)

// answering serves an MCP server with these tools at an address until the test is over.
func answering(t *testing.T, l net.Listener, tools ...string) {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, name := range tools {
		mcp.AddTool(s, &mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
	}
	web := &http.Server{Handler: mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)}
	go web.Serve(l)
	t.Cleanup(func() { web.Close() })
}

// shown waits until a server is in a state.
func (f *fixture) shown(name, state string) Upstream {
	f.t.Helper()
	var u Upstream
	for range 1000 {
		var err error
		u, err = f.Upstream(name)
		f.must(err)
		if u.State == state {
			return u
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.t.Fatalf("it is not %s: %+v", state, u)
	return u
}

// A server that is down says why and when it is tried again, without what its address
// holds; a test that reaches it has it connected at once.
func TestUpstreamThatComesUp(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	f := newFixture(t, agentsText+"upstreams: {web: {url: 'http://"+addr+"/mcp?key=s3cret', headers: {X-Key: s3cret}}}\n", Options{})
	u := f.shown("web", "failed")
	if u.Failed == "" || u.Next == "" || u.Failures == 0 || u.Where != "writ.yaml:7" || len(u.Tools) > 0 {
		t.Errorf("%+v", u)
	}
	got, err := f.TestUpstream(t.Context(), "web")
	f.must(err)
	if got.Failed == "" || len(got.Steps) > 0 {
		t.Errorf("nobody is there: %+v", got)
	}
	for _, text := range []string{u.Failed, got.Failed, u.Server.URL, u.Server.Headers["X-Key"]} {
		if strings.Contains(text, "s3cret") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	if l, err = net.Listen("tcp", addr); err != nil {
		t.Fatal(err)
	}
	answering(t, l, "look")
	got, err = f.TestUpstream(t.Context(), "web")
	f.must(err)
	if got.Failed != "" || got.Tools != 1 || len(got.Steps) != 3 || got.Steps[2] != "0 tools are as people accepted them; new: web__look" {
		t.Errorf("it answers: %+v", got)
	}
	u = f.shown("web", "ready")
	if len(u.Tools) != 1 || u.Tools[0].Name != "web__look" || u.Tools[0].State != "new" || u.Tools[0].Class != "read_only" {
		t.Errorf("%+v", u.Tools)
	}
}

// What a server offers and is not taken is shown with it, and with no other.
func TestUpstreamRefused(t *testing.T) {
	text := agentsText + "upstreams:\n"
	for _, name := range []string{"bare", "other"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		answering(t, l, "read_file", name)
		text += "  " + name + ": {url: 'http://" + l.Addr().String() + "', prefix: " + map[string]string{"bare": "none", "other": "name"}[name] + "}\n"
	}
	f := newFixture(t, text, Options{})
	want := map[string][]upstream.Refusal{"bare": {{Name: "tool read_file", Why: "its name read_file is another tool's too; rename or disable one of them"}}, "other": nil}
	for name, refused := range want {
		u := f.shown(name, "ready")
		if diff := cmp.Diff(refused, u.Refused); diff != "" || len(u.Tools) != 2-len(refused) {
			t.Errorf("%s has %d tools: %s", name, len(u.Tools), diff)
		}
	}
	if all := f.Upstreams(); len(all) != 2 || all[0].Name != "bare" || all[1].Name != "other" {
		t.Errorf("%+v", all)
	}
	u := f.shown("other", "ready")
	digests := map[string]string{u.Tools[0].Name: u.Tools[0].Digest}
	var fails *writ.Error
	if err := f.AcceptUpstream(t.Context(), "bare", digests, f.alice()); !errors.As(err, &fails) || fails.Kind != writ.NotFound {
		t.Errorf("another server's tool: %v", err)
	}
	f.must(f.AcceptUpstream(t.Context(), "other", digests, f.alice()))
	if got := f.shown("other", "ready").Tools[0].State; got != "accepted" {
		t.Errorf("it is %s", got)
	}
}

// Agents are not told which address a server's tool is of, or what it is given.
func TestUpstreamForAgents(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answering(t, l, "look")
	f := newFixture(t, agentsText+"upstreams: {web: {url: 'http://"+l.Addr().String()+"/mcp', headers: {X-Plain: visible}}}\n", Options{})
	f.shown("web", "ready")
	made := f.at().defined["web__look"]
	if whole := made.Canonical(); !strings.Contains(whole, l.Addr().String()) || !strings.Contains(whole, "visible") {
		t.Fatalf("the control: %s", whole)
	}
	shown, err := ForAgents(made)
	f.must(err)
	if text := string(shown); strings.Contains(text, l.Addr().String()) || strings.Contains(text, "visible") || !strings.Contains(text, `"server":"web"`) {
		t.Errorf("%s", text)
	}
}
