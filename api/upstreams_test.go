package api

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// behind puts an MCP server with two tools behind the gateway, and waits until it is
// taken up. It gives the server, to change what it offers.
func (w *world) behind() *mcp.Server {
	w.t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, t := range []*mcp.Tool{
		{Name: "look", Description: "Look at it.", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}},
		{Name: "wipe", Description: "Wipe it.", Annotations: &mcp.ToolAnnotations{DestructiveHint: new(true)}},
	} {
		offer(s, t)
	}
	h := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil))
	w.t.Cleanup(h.CloseClientConnections)
	w.t.Cleanup(h.Close)
	w.t.Cleanup(func() { w.end() }) // before the server: it waits for its clients
	must(w.t, os.MkdirAll(filepath.Join(w.dir, "upstreams"), 0o700))
	w.write("upstreams/web.yaml", fmt.Sprintf("url: %s/mcp?key=s3cret\nheaders: {Authorization: Bearer s3cret}\n", h.URL))
	if _, err := w.operator.Reload(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.until(func(u client.Upstream) bool { return u.State == "ready" && len(u.Tools) == 2 })
	return s
}

func offer(s *mcp.Server, t *mcp.Tool) {
	mcp.AddTool(s, t, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil, nil
	})
}

// until waits until the server is shown so.
func (w *world) until(holds func(client.Upstream) bool) client.Upstream {
	w.t.Helper()
	var u client.Upstream
	for range 1000 {
		var err error
		u, err = w.operator.Upstream(w.t.Context(), "web")
		must(w.t, err)
		if holds(u) {
			return u
		}
		time.Sleep(10 * time.Millisecond)
	}
	w.t.Fatalf("it does not come to pass: %+v", u)
	return u
}

// What is accepted is what was shown: of a server whose definition changed meanwhile
// nothing is, and nothing is without the passphrase.
func TestAcceptUpstream(t *testing.T) {
	w := newWorld(t)
	s := w.behind()
	shown := func() map[string]string {
		out := map[string]string{}
		for _, x := range w.until(func(client.Upstream) bool { return true }).Suspended() {
			out[x.Name] = x.Digest
		}
		return out
	}
	accept := func(digests map[string]string, pass string) error {
		return w.operator.AcceptUpstream(t.Context(), "web", client.UpstreamAcceptRequest{Digests: digests, By: client.Credentials{Name: "alice", Passphrase: pass}})
	}
	refused := func(what string, err error, kind writ.Kind, text string) {
		t.Helper()
		p, ok := err.(*client.Problem)
		if !ok || p.Kind != kind || !strings.Contains(p.Detail, text) {
			t.Errorf("%s: %v", what, err)
		}
		if len(shown()) != 2 {
			t.Errorf("%s: something was accepted: %v", what, shown())
		}
	}
	before := shown()
	refused("no tools", accept(map[string]string{}, passphrase), writ.Invalid, "name the tools to accept")
	refused("no tool of it", accept(map[string]string{"read_file": before["web__look"]}, passphrase), writ.NotFound, `the server web has no tool "read_file"`)
	refused("another digest", accept(map[string]string{"web__look": before["web__look"], "web__wipe": before["web__look"]}, passphrase), writ.Changed, "(web__wipe), and nothing was accepted")
	offer(s, &mcp.Tool{Name: "wipe", Description: "Wipe it, and more."})
	if _, err := w.operator.TestUpstream(t.Context(), "web"); err != nil {
		t.Fatal(err)
	}
	w.until(func(u client.Upstream) bool { return len(u.Tools) == 2 && u.Tools[1].Digest != before["web__wipe"] })
	refused("a changed one", accept(before, passphrase), writ.Changed, "(web__wipe), and nothing was accepted")
	refused("a wrong passphrase", accept(shown(), "not this one"), writ.Unauthenticated, "")

	entries := w.ledgerLength()
	must(t, accept(shown(), passphrase))
	u := w.until(func(u client.Upstream) bool { return len(u.Suspended()) == 0 })
	if u.Tools[0].Class != "read_only" || u.Tools[1].Class != "write" {
		t.Errorf("classes: %+v", u.Tools)
	}
	all, err := w.operator.LedgerAfter(entries).All(t.Context())
	must(t, err)
	accepted := 0
	for _, e := range all {
		if strings.Contains(string(e.Body), `"tool.accepted"`) {
			accepted++
		}
	}
	if accepted != 2 {
		t.Errorf("%d entries say that a tool was accepted", accepted)
	}
	if err := accept(map[string]string{"web__look": u.Tools[0].Digest}, passphrase); err == nil || !strings.Contains(err.Error(), "accepted as it is already") {
		t.Errorf("once more: %v", err)
	}
}

// No secret of a server's configuration is shown, and a server that is not there says
// which are.
func TestShowUpstream(t *testing.T) {
	w := newWorld(t)
	w.behind()
	for _, target := range []string{"/v1/upstreams", "/v1/upstreams/web"} {
		a := w.ok(ask{door: operatorDoor, method: "GET", target: target})
		if strings.Contains(a.body, "s3cret") || !strings.Contains(a.body, "/mcp?…") {
			t.Errorf("%s: %s", target, a.body)
		}
	}
	got, err := w.operator.TestUpstream(t.Context(), "web")
	must(t, err)
	if !got.OK || got.Tools != 2 || len(got.Steps) != 3 || len(got.New) != 2 || strings.Contains(strings.Join(got.Steps, " "), "s3cret") {
		t.Errorf("%+v", got)
	}
	u, err := w.operator.RestartUpstream(t.Context(), "web")
	must(t, err)
	if u.State != "ready" || len(u.Tools) != 2 || strings.Contains(u.URL, "s3cret") {
		t.Errorf("restarted: %+v", u)
	}
	w.refused(ask{door: operatorDoor, method: "POST", target: "/v1/upstreams/wbe/restart"}, 404, writ.NotFound, `there is no server "wbe"; did you mean web?; 'writ upstream list' shows them`)
	w.refused(ask{door: operatorDoor, method: "GET", target: "/v1/upstreams/wbe"}, 404, writ.NotFound, `there is no server "wbe"; did you mean web?; 'writ upstream list' shows them`)
}
