package upstream

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var benchParams = json.RawMessage(`{"name":"t","arguments":{"path":"/tmp/some/file","limit":10}}`)

// One call of a server that does nothing, by bytes. The server's own work counts too:
// it is as small as a line can be.
func BenchmarkStdioCall(b *testing.B) {
	h, dial := newHand(b, nil)
	h.answers["tools/call"] = func(id, _ string) string { return result(id, `{"content":[{"type":"text","text":"ok"}]}`) }
	c := connected(b, dial, Options{})
	run(b, c)
}

// The same, with as little of a server as there can be, so that the allocations are
// those of the client.
func BenchmarkStdioCallClient(b *testing.B) {
	fromServer, serverOut := io.Pipe()
	serverIn, toServer := io.Pipe()
	h := &hand{t: b, answers: map[string]func(id, params string) string{}, seen: make(chan string, 10)}
	h.handshake(`{}`)
	go func() {
		buf, out := make([]byte, 64<<10), make([]byte, 0, 1024)
		for {
			n, err := serverIn.Read(buf)
			if err != nil {
				return
			}
			line := buf[:n]
			switch id := field(line, "id"); {
			case id == nil:
				continue
			case text(field(line, "method")) == "tools/call":
				out = append(append(append(out[:0], `{"jsonrpc":"2.0","id":`...), id...), `,"result":{"content":[{"type":"text","text":"ok"}]}}`+"\n"...)
			case text(field(line, "method")) == "initialize":
				out = append(out[:0], h.answers["initialize"](string(id), "")+"\n"...)
			default:
				out = append(append(append(out[:0], `{"jsonrpc":"2.0","id":`...), id...), `,"error":{"code":-32601,"message":"no"}}`+"\n"...)
			}
			serverOut.Write(out)
		}
	}()
	c := connected(b, func(ctx context.Context, o Options) (*Conn, error) { return Stdio(ctx, fromServer, toServer, o) }, Options{})
	run(b, c)
}

func BenchmarkHTTPCall(b *testing.B) {
	dial := overHandler(b, handHTTP(func(w http.ResponseWriter, _, id string) {
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, result(id, `{"content":[{"type":"text","text":"ok"}]}`))
	}))
	run(b, connected(b, dial, Options{}))
}

func BenchmarkHTTPStreamCall(b *testing.B) {
	dial := overHandler(b, handHTTP(func(w http.ResponseWriter, _, id string) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "event: message\ndata: "+result(id, `{"content":[{"type":"text","text":"ok"}]}`)+"\n\n")
	}))
	run(b, connected(b, dial, Options{}))
}

func run(b *testing.B, c *Conn) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Call(b.Context(), "tools/call", benchParams, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// What the same call costs through the SDK's own client, for comparison.
func BenchmarkSDKStdioCall(b *testing.B) {
	h, _ := newHand(b, nil)
	h.answers["tools/call"] = func(id, _ string) string { return result(id, `{"content":[{"type":"text","text":"ok"}]}`) }
	fromServer, serverOut := io.Pipe()
	serverIn, toServer := io.Pipe()
	h.start(serverIn, serverOut)
	c := mcp.NewClient(&mcp.Implementation{Name: "b", Version: "1"}, nil)
	s, err := c.Connect(b.Context(), &mcp.IOTransport{Reader: fromServer, Writer: toServer}, &mcp.ClientSessionOptions{ProtocolVersion: legacy})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.CallTool(b.Context(), &mcp.CallToolParams{Name: "t", Arguments: json.RawMessage(`{"path":"/tmp/some/file","limit":10}`)}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkStructuredResult(b *testing.B) {
	t, err := parseTool(json.RawMessage(`{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`))
	if err != nil {
		b.Fatal(err)
	}
	raw := json.RawMessage(`{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`)
	b.ReportAllocs()
	for b.Loop() {
		if r, err := t.Result(raw, 0); err != nil || r.IsError {
			b.Fatal(err)
		}
	}
}

func BenchmarkResult(b *testing.B) {
	raw := json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Result(raw, ResultOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
