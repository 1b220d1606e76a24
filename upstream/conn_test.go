package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Every method that is forwarded, on both links and in both generations.
func TestForwarded(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			c := connected(t, way.dial(t, everything(way.version), way.version), Options{})
			if c.Version() != way.version {
				t.Fatalf("version %s", c.Version())
			}
			for _, m := range []struct{ method, params, want string }{
				{"tools/call", `{"name":"echo","arguments":{"n":12345678901234567890,"z":1,"a":2}}`, `{\"n\":12345678901234567890,\"z\":1,\"a\":2}`},
				{"tools/list", ``, `"name":"echo"`},
				{"resources/list", `{}`, `"uri":"file:///a"`},
				{"resources/templates/list", `{}`, `"uriTemplate":"file:///{+path}"`},
				{"resources/read", `{"uri":"file:///a"}`, `content of a`},
				{"prompts/list", `{}`, `"name":"greet"`},
				{"prompts/get", `{"name":"greet"}`, `"hello"`},
				{"completion/complete", `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"x","value":"p"}}`, `"paris"`},
			} {
				got, err := c.Call(t.Context(), m.method, json.RawMessage(m.params), nil)
				if err != nil || !strings.Contains(string(got), m.want) {
					t.Errorf("%s: %s, %v; it has no %s", m.method, got, err, m.want)
				}
			}
		})
	}
}

func TestServerError(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			c := connected(t, way.dial(t, everything(way.version), way.version), Options{})
			_, err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"fails"}`), nil)
			var e *ServerError
			if !errors.As(err, &e) {
				t.Fatalf("%v", err)
			}
			want := &ServerError{Code: -32000, Message: "no<U+001B>[31m way", Data: json.RawMessage(`{"a":1}`)}
			if d := cmp.Diff(want, e); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			c := connected(t, way.dial(t, everything(way.version), way.version), Options{})
			p := &peer{}
			got, err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"works","_meta":{"progressToken":"the caller's"}}`), p)
			if err != nil || !strings.Contains(string(got), "done") {
				t.Fatalf("%s, %v", got, err)
			}
			if len(p.progress) != 3 || !strings.Contains(p.progress[2], `"progress":2`) {
				t.Errorf("progress %q", p.progress)
			}
		})
	}
}

// When a caller stops waiting the call returns at once, and the server's work ends.
func TestCancel(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := everything(way.version)
			began, ended := make(chan struct{}, 1), make(chan error, 1)
			s.AddTool(&mcp.Tool{Name: "hangs", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				began <- struct{}{}
				<-ctx.Done()
				ended <- ctx.Err()
				return nil, ctx.Err()
			})
			c := connected(t, way.dial(t, s, way.version), Options{})
			ctx, cancel := context.WithCancel(t.Context())
			go func() { <-began; cancel() }()
			if _, err := c.Call(ctx, "tools/call", json.RawMessage(`{"name":"hangs"}`), nil); !errors.Is(err, context.Canceled) {
				t.Fatalf("%v", err)
			}
			<-ended
			if got, err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"echo","arguments":{}}`), nil); err != nil {
				t.Errorf("the connection is gone: %s, %v", got, err)
			}
		})
	}
}

// A server may ask only through the call that it works on, and only where the operator
// and the caller take it.
func TestAsked(t *testing.T) {
	for _, way := range ways {
		if way.version == modern { // there a server asks by its result
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			s := everything(way.version)
			s.AddTool(&mcp.Tool{Name: "asks", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Mode: "form", Message: "who?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"string"}}}`)})
				said := ""
				if err != nil {
					said = "refused: " + err.Error()
				} else {
					said = res.Action
				}
				//lint:ignore SA1019 older servers ask for it
				if _, err := r.Session.ListRoots(ctx, nil); err == nil {
					said += ", and roots were listed"
				}
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: said}}}, nil
			})
			takes := &peer{ask: func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
				if method != "elicitation/create" || text(field(params, "message")) != "who?" {
					t.Errorf("asked %s %s", method, params)
				}
				return json.RawMessage(`{"action":"accept","content":{"n":"me"}}`), nil
			}}
			for _, q := range []struct {
				name string
				o    Options
				p    Peer
				want string
			}{
				{"taken", Options{Elicitation: true}, takes, `"accept"`},
				{"the operator does not relay", Options{}, takes, `refused: `},
				{"the caller takes nothing", Options{Elicitation: true}, nil, `refused: `},
				{"the caller refuses", Options{Elicitation: true}, &peer{}, `refused: `},
			} {
				c := connected(t, way.dial(t, s, way.version), q.o)
				got, err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"asks","arguments":{}}`), q.p)
				if err != nil || !strings.Contains(string(got), q.want) || strings.Contains(string(got), "roots were listed") {
					t.Errorf("%s: %s, %v", q.name, got, err)
				}
			}
		})
	}
}

// The newer way of asking comes back to the caller as it is.
func TestInputRequiredIsRaw(t *testing.T) {
	for _, way := range ways {
		if way.version != modern {
			continue
		}
		t.Run(way.name, func(t *testing.T) {
			s := everything(way.version)
			s.AddTool(&mcp.Tool{Name: "asks", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(_ context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if r.Params.RequestState != "" {
					return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "again " + r.Params.RequestState}}}, nil
				}
				return &mcp.CallToolResult{RequestState: "s", InputRequests: mcp.InputRequestMap{"q": &mcp.ElicitParams{Mode: "form", Message: "who?", RequestedSchema: json.RawMessage(`{"type":"object"}`)}}}, nil
			})
			c := connected(t, way.dial(t, s, way.version), Options{Elicitation: true})
			got, err := c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"asks","arguments":{}}`), nil)
			if err != nil || ResultType(got) != "input_required" || text(field(got, "requestState")) != "s" {
				t.Fatalf("%s, %v", got, err)
			}
			got, err = c.Call(t.Context(), "tools/call", json.RawMessage(`{"name":"asks","arguments":{},"requestState":"s","inputResponses":{"q":{"action":"accept","content":{}}}}`), nil)
			if err != nil || ResultType(got) != "complete" || !strings.Contains(string(got), "again s") {
				t.Fatalf("%s, %v", got, err)
			}
		})
	}
}

func TestListChanged(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			s := everything(way.version)
			changed := make(chan string, 100)
			listening := make(chan struct{}, 10)
			s.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
					if method == "subscriptions/listen" {
						listening <- struct{}{}
					}
					return next(ctx, method, r)
				}
			})
			connected(t, way.dial(t, s, way.version), Options{Changed: func(list string) { changed <- list }})
			if way.version == modern {
				<-listening
			}
			// Nobody says when a standing stream is open, so changes are made until one is told.
			for {
				s.AddTool(&mcp.Tool{Name: "more", InputSchema: json.RawMessage(`{"type":"object"}`)}, nil)
				select {
				case list := <-changed:
					if list != "tools" {
						t.Errorf("%s changed", list)
					}
					return
				case <-t.Context().Done():
					t.Fatal("nothing was told")
				case <-time.After(100 * time.Millisecond):
				}
			}
		})
	}
}

func TestCloseEndsEverything(t *testing.T) {
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			dial := way.dial(t, everything(way.version), way.version)
			c := connected(t, dial, Options{Changed: func(string) {}})
			c.Close()
			if !errors.Is(c.Err(), ErrClosed) {
				t.Error(c.Err())
			}
			if _, err := c.Call(t.Context(), "tools/list", nil, nil); !errors.Is(err, ErrNotSent) || !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		})
	}
}
