package upstream

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The generations of the protocol that servers of these tests speak.
const (
	modern = "2026-07-28"
	legacy = "2025-11-25"
)

// ways are the real servers that most tests run against: both links, both generations.
var ways = []struct {
	name    string
	version string
	dial    func(t testing.TB, s *mcp.Server, version string) func(context.Context, Options) (*Conn, error)
}{
	{"stdio modern", modern, overPipes},
	{"stdio legacy", legacy, overPipes},
	{"http modern", modern, overHTTP},
	{"http legacy", legacy, overHTTP},
}

// everything is a server of the SDK's with a bit of all.
func everything(version string) *mcp.Server {
	o := &mcp.ServerOptions{Instructions: "be kind", CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
		return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"paris"}}}, nil
	}}
	if version == legacy {
		o.SupportedProtocolVersions = []string{legacy, "2025-06-18"}
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "everything", Version: "1"}, o)
	object := json.RawMessage(`{"type":"object"}`)
	s.AddTool(&mcp.Tool{Name: "echo", Description: "says it again", InputSchema: object}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(r.Params.Arguments)}}}, nil
	})
	s.AddTool(&mcp.Tool{Name: "fails", InputSchema: object}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32000, Message: "no\x1b[31m way", Data: json.RawMessage(`{"a":1}`)}
	})
	s.AddTool(&mcp.Tool{Name: "works", InputSchema: object}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		for i := range 3 {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i)}); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "done"}}}, nil
	})
	s.AddResource(&mcp.Resource{URI: "file:///a", Name: "a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "file:///a", Text: "content of a"}}}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "file:///{+path}", Name: "files"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return nil, errors.New("none")
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet"}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hello"}}}}, nil
	})
	return s
}

func overPipes(t testing.TB, s *mcp.Server, _ string) func(context.Context, Options) (*Conn, error) {
	return func(ctx context.Context, o Options) (*Conn, error) {
		fromServer, serverOut := io.Pipe()
		serverIn, toServer := io.Pipe()
		if _, err := s.Connect(context.Background(), &mcp.IOTransport{Reader: serverIn, Writer: serverOut}, nil); err != nil {
			t.Fatal(err)
		}
		return Stdio(ctx, fromServer, toServer, o)
	}
}

func overHTTP(t testing.TB, s *mcp.Server, version string) func(context.Context, Options) (*Conn, error) {
	h := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{
		Stateless: version == modern, PropagateRequestCancellation: version == modern,
	})
	return overHandler(t, h)
}

func overHandler(t testing.TB, h http.Handler) func(context.Context, Options) (*Conn, error) {
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return func(ctx context.Context, o Options) (*Conn, error) {
		tr := &http.Transport{}
		t.Cleanup(tr.CloseIdleConnections)
		return HTTP(ctx, srv.URL, &http.Client{Transport: tr}, o)
	}
}

// connected is a connection that ends with the test.
func connected(t testing.TB, dial func(context.Context, Options) (*Conn, error), o Options) *Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := dial(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// A hand is a server written by hand, on pipes: what it answers with is up to the test.
type hand struct {
	t   testing.TB
	in  *bufio.Reader
	out io.WriteCloser
	wmu sync.Mutex

	// answer is the line for a request; "" for none at all. nil: the method is unknown.
	answers map[string]func(id, params string) string
	seen    chan string // lines that were not requests with an answer here
}

// handshake is how a server of the older generation begins.
func (h *hand) handshake(capabilities string) {
	h.answers["initialize"] = func(id, _ string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"result":{"protocolVersion":"2025-11-25","capabilities":` + capabilities + `,"serverInfo":{"name":"hand","version":"1"}}}`
	}
	if h.answers["tools/list"] == nil {
		h.answers["tools/list"] = func(id, _ string) string {
			return `{"jsonrpc":"2.0","id":` + id + `,"result":{"tools":[{"name":"t","inputSchema":{"type":"object"}}]}}`
		}
	}
}

func result(id, result string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + result + `}`
}

// newHand is a server with a handshake and, in set, whatever else.
func newHand(t testing.TB, set func(h *hand)) (h *hand, dial func(context.Context, Options) (*Conn, error)) {
	h = &hand{t: t, answers: map[string]func(id, params string) string{}, seen: make(chan string, 1000)}
	if set != nil {
		set(h)
	}
	h.handshake(`{"tools":{"listChanged":true}}`)
	return h, func(ctx context.Context, o Options) (*Conn, error) {
		fromServer, serverOut := io.Pipe()
		serverIn, toServer := io.Pipe()
		h.start(serverIn, serverOut)
		return Stdio(ctx, fromServer, toServer, o)
	}
}

func (h *hand) start(in io.Reader, out io.WriteCloser) {
	h.in, h.out = bufio.NewReader(in), out
	go h.serve()
}

func (h *hand) serve() {
	defer h.out.Close()
	in, out := h.in, h.out
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			h.t.Errorf("the client sent %q: %v", line, err)
			return
		}
		answer, known := h.answers[m.Method]
		switch {
		case m.Method == "" || m.ID == nil:
			h.seen <- strings.TrimSpace(line)
		case known:
			if a := answer(string(m.ID), string(m.Params)); a != "" {
				h.write(out, a+"\n")
			}
		default:
			h.write(out, `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"error":{"code":-32601,"message":"no such method"}}`+"\n")
		}
	}
}

func (h *hand) say(line string) { h.write(h.out, line+"\n") }

func (h *hand) write(w io.Writer, s string) {
	h.wmu.Lock()
	defer h.wmu.Unlock()
	io.Copy(w, strings.NewReader(s))
}

// next is the next line that a client sent besides its requests, of a method.
func (h *hand) next(t testing.TB, method string) string {
	t.Helper()
	for {
		select {
		case line := <-h.seen:
			if method == "" && !strings.Contains(line, `"method"`) || method != "" && strings.Contains(line, `"method":"`+method+`"`) {
				return line
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("no %s came", method)
		}
	}
}

// peer writes down what it is told, and answers as it is told to.
type peer struct {
	mu             sync.Mutex
	progress, logs []string
	ask            func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)
}

func (p *peer) Progress(m json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.progress = append(p.progress, string(m))
}

func (p *peer) Log(m json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.logs = append(p.logs, string(m))
}

func (p *peer) Ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if p.ask == nil {
		return nil, errors.New("refused")
	}
	return p.ask(ctx, method, params)
}

// settled waits until no more goroutines run than did.
func settled(t testing.TB, before int) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for runtime.NumGoroutine() > before {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, and there were %d:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
		runtime.Gosched()
	}
}

func page(entries []string, next string) string {
	cursor := ""
	if next != "" {
		cursor = fmt.Sprintf(`,"nextCursor":%q`, next)
	}
	return `{"tools":[` + strings.Join(entries, ",") + `]` + cursor + `}`
}
