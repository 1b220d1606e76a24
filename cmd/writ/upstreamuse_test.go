package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/writ-run/writ/cli"
	"github.com/writ-run/writ/client"
)

// webServer is an MCP server at a URL with one tool that only reads and counts its calls.
// It answers those alone who say the key.
func webServer(t *testing.T, key string) (url string, calls *atomic.Int64) {
	t.Helper()
	calls = new(atomic.Int64)
	s := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "query", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("call %d", calls.Add(1))}}}, nil, nil
	})
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, nil)
	web := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Key") != key {
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return web.URL + "/mcp", calls
}

// TestUpstreamReach: whoever decides about a call of a server's tool is shown what the
// server reaches, and not the nothing that the daemon itself does.
func TestUpstreamReach(t *testing.T) {
	t.Parallel()
	w, bin, list := serverProgram(t, map[string]string{"put": ""})
	data := filepath.Join(w.home, "data")
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	w.own(data)
	w.edit(`"@srv"`, `"@srv", "@web"`)
	w.init()
	w.must("", "doctor") // which starts the daemon
	url, _ := webServer(t, "")
	w.must("", "upstream", "add", "srv", "--read", filepath.Dir(list), "--write", data, "--", bin, list)
	w.must("", "upstream", "add", "web", "--url", url+"?key=s3cret")
	box := "  server       srv: its box reads " + filepath.Dir(list) + ", writes " + data + ", reaches no network\n  never        "
	for name, reach := range map[string]string{"srv__put": box, "web__query": "  server       web: goes to " + url + "?…, which writ does not confine\n  never        "} {
		w.must(pass+"\n", "tool", "accept", name, "--passphrase-stdin")
		o := w.run("", "explain", name, "--agent", "coder")
		contains(t, o.out, reach)
		if strings.Contains(o.out, "can read") || strings.Contains(o.out, "s3cret") {
			t.Errorf("more than there is to say:\n%s", o.out)
		}
	}
	w.explains("can read", "stat", "path=.") // what runs here says so still
	if o := w.call("srv__put", map[string]any{"path": filepath.Join(data, "n")}); o.code != cli.ExitPending {
		t.Fatalf("it does not ask: %+v", o)
	}
	id := w.pending()
	contains(t, w.must("", "approval", "show", id), "what it can reach\n"+box)
	var a client.Approval
	w.decode(&a, "", "approval", "show", id, "--json")
	if s := a.Shown.Confine.Server; s == nil || s.Name != "srv" || !s.Box || len(s.Write) != 1 || s.Write[0] != data {
		t.Errorf("as JSON: %+v", s)
	}
	w.approves(id)
	contains(t, w.must("", "ledger", "export"), `"server":"srv"`)
}

// TestUpstreamUse: what it takes until an agent's call of a server's tool runs is said at
// every step, and holds.
func TestUpstreamUse(t *testing.T) {
	t.Parallel()
	w, bin, list := serverProgramFor(t, "role: developer\nlevel: standard\nautonomy: semi", map[string]string{"look": `{"readOnlyHint":true}`, "put": ""})
	w.init()
	w.must("", "doctor") // which starts the daemon
	const remedy = `an operator adds allowed: ["@srv"] to agents.coder, then: writ config reload`
	contains(t, w.must("", "upstream", "add", "srv", "--read", filepath.Dir(list), "--", bin, list), "no agent may use its tools: "+remedy)
	out := w.must(pass+"\n", "upstream", "accept", "srv", "--passphrase-stdin")
	contains(t, out, "accepted 2 of srv\nno agent may use its tools: "+remedy,
		"it says that it only reads, and asks a person at every call: coder: autonomy semi asks a person for comms:external; read_action: code:read of the server has what only reads decided as code:read")
	w.denied(w.call("srv__look", map[string]any{}), "role developer does not include tool srv__look; "+remedy)

	w.edit("autonomy: semi", "autonomy: semi\n    allowed: [\"@srv\"]")
	w.must("", "config", "reload")
	if out := w.must("", "upstream", "show", "srv"); strings.Contains(out, "no agent may use") || !strings.Contains(out, "read as   comms:external") {
		t.Errorf("an agent may use it:\n%s", out)
	}
	w.explains("autonomy semi asks a person for comms:external", "srv__look")

	w.write(w.serverFile("srv"), w.read(w.serverFile("srv"))+"read_action: code:read\n")
	out = w.must("", "config", "reload")
	if strings.Contains(out, "suspended") {
		t.Errorf("the operator's word suspended what a person accepted:\n%s", out)
	}
	contains(t, w.must("", "upstream", "show", "srv"), "read as   code:read")
	w.eventually("it is back", func() bool { return strings.Contains(w.must("", "upstream", "show", "srv"), "srv: ready") })
	if o := w.call("srv__look", map[string]any{}); o.code != 0 || !strings.Contains(o.out, "hello from look") {
		t.Errorf("what only reads does not run: %+v", o)
	}
	if o := w.call("srv__put", map[string]any{"path": "x"}); o.code != cli.ExitPending {
		t.Errorf("what writes does not ask: %+v", o)
	}
	w.explains("comms:external", "srv__put", "path=x")
	w.fails(1, `unknown action type "code:reed"; did you mean code:read?`, "", "upstream", "add", "other", "--read-action", "code:reed", "--", bin, list)
	out = w.must("", "upstream", "add", "other", "--read-action", "code:read", "--read", filepath.Dir(list), "--", bin, list)
	contains(t, out, "read as   code:read")
	out = w.must(pass+"\n", "upstream", "accept", "other", "--passphrase-stdin")
	contains(t, out, "it says that it only reads: calls run without asking, as code:read")
	w.verifies()
}

// TestUpstreamKeys: keys of a server that bite in the daemon alone.
func TestUpstreamKeys(t *testing.T) {
	t.Parallel()
	t.Run("headers", func(t *testing.T) {
		url, _ := webServer(t, "k3y")
		for key, state := range map[string]string{"k3y": "srv: ready", "other": "srv: failed"} {
			w := newWorld(t, "level: elevated", fmt.Sprintf("upstreams: {srv: {url: %q, headers: {X-Key: %s}}}\n", url, key)).init()
			w.eventually(state, func() bool { return strings.HasPrefix(w.must("", "upstream", "show", "srv"), state) })
		}
	})
	t.Run("cacheable", func(t *testing.T) {
		for cacheable, want := range map[string]int64{"[query]": 1, "[]": 2} {
			url, calls := webServer(t, "")
			w := newWorld(t, "level: elevated\nautonomy: full\nallowed: [\"@srv\"]", fmt.Sprintf("upstreams: {srv: {url: %q, cacheable: %s}}\n", url, cacheable)).init()
			w.takeUp("srv__query")
			for range 2 {
				if o := w.call("srv__query", map[string]any{}); o.code != 0 {
					t.Fatalf("%+v", o)
				}
			}
			if n := calls.Load(); n != want {
				t.Errorf("with cacheable: %s the server was asked %d times, want %d", cacheable, n, want)
			}
		}
	})
	t.Run("connect_timeout", func(t *testing.T) {
		for _, after := range []string{"1s", "2s"} {
			w := newWorld(t, "level: elevated", fmt.Sprintf("upstreams: {srv: {command: [sleep, \"60\"], connect_timeout: %s}}\n", after)).init()
			w.eventually("it failed", func() bool {
				return strings.Contains(w.must("", "upstream", "show", "srv"), "failed    it did not answer within "+after+" (connect_timeout)\n")
			})
		}
	})
}

func (w *world) read(path string) string {
	w.t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(b)
}
