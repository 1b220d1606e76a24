package egress

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// Where somebody else speaks to a host in place of the box, a request to the proxy is no way
// around him.
func TestProxyAroundNobody(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "served") }))
	defer s.Close()
	at := s.Listener.Addr()
	plain, via, over := rule(t, at, writ.ClassWrite), rule(t, at, writ.ClassWrite), rule(t, at, writ.ClassWrite)
	via.Via = func(context.Context, net.Conn, net.Conn) error { return nil }
	over.Over = func(next http.RoundTripper) http.RoundTripper { return next }
	for _, c := range []struct {
		name      string
		rule      Rule
		want, log string
	}{
		{"nobody", plain, "served", "http allowed, connect allowed"},
		{"ssh", via, "writ: not_seen: nothing goes there by requests to a proxy; CONNECT does", "connect not_seen"},
		{"git", over, "writ: not_seen: nothing goes there by requests to a proxy; CONNECT does", "connect not_seen"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWay(t, at, writ.ClassWrite, Limits{}, c.rule)
			box, ours := net.Pipe()
			defer box.Close()
			go w.relay.proxy(ours, Event{})
			box.SetDeadline(time.Now().Add(10 * time.Second))
			host := "good.test" + at.String()[len("127.0.0.1"):]
			fmt.Fprintf(box, "POST http://%s/ HTTP/1.1\r\nHost: %[1]s\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", host)
			got, _ := io.ReadAll(box)
			if log := w.logged(); !strings.Contains(string(got), c.want) || log != c.log {
				t.Errorf("%q, log %s", got, log)
			}
		})
	}
}
