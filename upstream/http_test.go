package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Arguments that a tool wants in headers too are there: the SDK's server refuses the
// call otherwise.
func TestArgumentsInHeaders(t *testing.T) {
	s := everything(modern)
	s.AddTool(&mcp.Tool{Name: "região", InputSchema: json.RawMessage(`{"type":"object","properties":{"where":{"type":"string","x-mcp-header":"Where"},"in":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"N"}}}}}`)},
		func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			h := r.Extra.Header
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: h.Get("Mcp-Param-Where") + " " + h.Get("Mcp-Param-N") + " " + h.Get("Mcp-Name")}}}, nil
		})
	dial := overHTTP(t, s, modern)
	u, err := Start(Spec{Name: "web", Connect: dial})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	got, err := u.CallTool(t.Context(), "região", json.RawMessage(`{"where":"São","in":{"n":7}}`), nil)
	if err != nil || !strings.Contains(string(got), `=?base64?U8Ojbw==?= 7 região`) {
		t.Errorf("%s, %v", got, err)
	}
	c := connected(t, dial, Options{}) // which never read the list
	_, err = c.Call(t.Context(), "tools/call", callParams("região", json.RawMessage(`{"where":"x"}`)), nil)
	var refused *ServerError
	if !errors.As(err, &refused) {
		t.Errorf("without them: %v", err)
	}
}

// A server may hang up in the middle of a call and give the rest later.
func TestResumes(t *testing.T) {
	s := everything(legacy)
	s.AddTool(&mcp.Tool{Name: "later", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "at last"}}}, nil
	})
	var resumed atomic.Int32
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)})
	c := connected(t, overHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last-Event-ID") != "" {
			resumed.Add(1)
		}
		h.ServeHTTP(w, r)
	})), Options{})
	got, err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"later","arguments":{}}`), nil)
	if err != nil || !strings.Contains(string(got), "at last") || resumed.Load() == 0 {
		t.Errorf("%s, %v, resumed %d times", got, err, resumed.Load())
	}
}

// The stream of changes is opened again when it is cut, and something may have changed
// meanwhile; a server that has none is not asked again.
func TestStandingStream(t *testing.T) {
	var opened atomic.Int32
	inner := handHTTP(func(w http.ResponseWriter, _, id string) {})
	changed := make(chan string, 10)
	connected(t, overHandler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			inner(w, r)
			return
		}
		switch opened.Add(1) {
		case 1:
			w.Header().Set("Content-Type", "text/event-stream")
			io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/prompts/list_changed\"}\n\n")
		default:
			w.WriteHeader(405)
		}
	})), Options{Changed: func(list string) { changed <- list }})
	for _, want := range []string{"prompts", "tools", "resources", "prompts"} {
		if got := <-changed; got != want {
			t.Errorf("%s changed, want %s", got, want)
		}
	}
}

func TestHTTPRefusesAClientWithoutTransport(t *testing.T) {
	for _, c := range []struct {
		endpoint string
		client   *http.Client
		want     string
	}{
		{"http://127.0.0.1:1/", &http.Client{}, "there is no HTTP transport to reach the server with"},
		{"http://127.0.0.1:1/", nil, "there is no HTTP transport to reach the server with"},
		{"file:///x", &http.Client{Transport: &http.Transport{}}, `endpoint "file:///x": give the http or https address of the server`},
	} {
		if _, err := HTTP(t.Context(), c.endpoint, c.client, Options{}); err == nil || err.Error() != c.want {
			t.Error(err)
		}
	}
	if _, err := HTTP(t.Context(), "http://127.0.0.1:1/", &http.Client{Transport: &http.Transport{}}, Options{}); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Error(err)
	}
}
