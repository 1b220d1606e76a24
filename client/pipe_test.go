package client

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// silent is a daemon that begins a session and answers nothing else; it notes what it
// was asked, and that it was left.
type silent struct{ asked []string }

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, r.Method)
	if len(s.asked) == 1 || r.Method == http.MethodDelete {
		h := http.Header{"Content-Type": {"application/json"}, "Mcp-Session-Id": {"s"}}
		return &http.Response{StatusCode: 200, Header: h, Body: io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":0,"result":{}}`))}, nil
	}
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// What is not answered in time after the end of the input is answered by the pipe, and
// its session is left to the daemon: ending it would take back what it does there.
func TestPipeBound(t *testing.T) {
	const first = `{"jsonrpc":"2.0","id":0,"method":"initialize"}` + "\n"
	const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call"}` + "\n"
	const begun = `{"jsonrpc":"2.0","id":0,"result":{}}` + "\n"
	late := func(after string) string {
		return begun + `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"there was no answer within ` + after + ` of the end of the input; what became of the call is in: writ invocation list"}}` + "\n"
	}
	for _, c := range []struct {
		name, in  string
		wait      time.Duration
		interrupt time.Duration
		takes     time.Duration
		out, asks string
	}{
		{"the daemon's own", first + call, 0, 0, 60 * time.Second, late("1m0s"), "POST POST"},
		{"the caller's", first + call, 5 * time.Minute, 0, 315 * time.Second, late("5m15s"), "POST POST"},
		{"interrupted", first + call, 0, time.Second, time.Second, begun, "POST POST"},
		{"nothing open", first, 0, 0, 0, begun, "POST DELETE"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.interrupt > 0 {
					time.AfterFunc(c.interrupt, cancel)
				}
				daemon, start := &silent{}, time.Now()
				var out bytes.Buffer
				p := &Pipe{Client: &Client{http: &http.Client{Transport: daemon}, base: "http://writ"}, Wait: c.wait}
				if err := p.Run(ctx, strings.NewReader(c.in), &out); err != nil {
					t.Error(err)
				}
				if took := time.Since(start); took != c.takes || out.String() != c.out || strings.Join(daemon.asked, " ") != c.asks {
					t.Errorf("after %s:\n%s%v", took, out.String(), daemon.asked)
				}
			})
		})
	}
}
