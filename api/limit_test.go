package api

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// raw opens a connection to the agents' door and sends bytes.
func (w *world) raw(text string) net.Conn {
	w.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
	must(w.t, err)
	w.t.Cleanup(func() { c.Close() })
	go io.WriteString(c, text) // the answer may come before all of it is taken
	must(w.t, c.SetReadDeadline(time.Now().Add(30*time.Second)))
	return c
}

// full is a listener of a kernel that has no room a few times.
type full struct {
	net.Listener
	left []error
}

func (l *full) Accept() (net.Conn, error) {
	if len(l.left) > 0 {
		err := l.left[0]
		l.left = l.left[1:]
		return nil, &net.OpError{Op: "accept", Err: err}
	}
	return l.Listener.Accept()
}

// A door waits while the kernel has no room for a connection, and ends for everything else.
func TestPatient(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := patient{&full{l, []error{syscall.ENOSPC, syscall.EMFILE, syscall.ENOMEM}}}
	c, err := net.Dial("tcp", l.Addr().String())
	must(t, err)
	defer c.Close()
	got, err := p.Accept()
	must(t, err)
	got.Close()
	must(t, l.Close())
	if _, err := p.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("a listener that is closed: %v", err)
	}
}

// answered reads one answer.
func (w *world) answered(c net.Conn) (int, string) {
	w.t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	must(w.t, err)
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge { // net/http hangs up on the rest of those
		must(w.t, err)
	}
	return resp.StatusCode, string(b)
}

func (w *world) head(length int, more string) string {
	return fmt.Sprintf("POST /v1/calls HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n", w.token("coder"), length, more)
}

// Whoever sends slowly, or more than fits, is ended; a call that has arrived may
// take longer than sending it may.
func TestSlow(t *testing.T) {
	w := newWorld(t, func(l *limits) { l.readHeader, l.readBody = 100*time.Millisecond, 200*time.Millisecond })
	replied := make(chan client.CallReply, 1)
	coder := w.agent("coder")
	go func() {
		reply, err := coder.Call(t.Context(), client.CallRequest{Tool: "wait"}, 0)
		if err != nil {
			t.Errorf("a call was ended by the limit on sending it: %v", err)
		}
		replied <- reply
	}()
	for e, err := range w.operator.Events(t.Context(), 0) {
		must(t, err)
		if e.Kind == "call.started" {
			break
		}
	}
	for _, half := range []string{"", "POST /v1/calls HTTP/1.1\r\nHost: 127.0", "GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "} {
		if b, err := io.ReadAll(w.raw(half)); err != nil || len(b) != 0 {
			t.Errorf("%q: %q %v", half, b, err)
		}
	}
	status, text := w.answered(w.raw(w.head(100, "") + `{"tool":`))
	if status != 400 || !strings.Contains(text, "the request did not arrive whole; send it again") {
		t.Errorf("%d %s", status, text)
	}
	w.gate <- struct{}{} // longer than readBody after the call was sent
	if reply := <-replied; reply.Content != "waited {}" {
		t.Errorf("%+v", reply)
	}
}

func TestTooLarge(t *testing.T) {
	w := newWorld(t)
	whole := usual().body
	status, text := w.answered(w.raw(w.head(100_000_000, "") + `{"tool":"` + strings.Repeat("x", int(whole))))
	if status != 413 || !strings.Contains(text, "the request is larger than 16842752 bytes; send less") {
		t.Errorf("100 MB: %d %s", status, text)
	}
	chunked := strings.Replace(w.head(0, "Transfer-Encoding: chunked\r\n"), "Content-Length: 0\r\n", "", 1)
	if status, text = w.answered(w.raw(chunked + fmt.Sprintf("%x\r\n%s\r\n", whole+1, strings.Repeat("x", int(whole+1))))); status != 413 {
		t.Errorf("without end: %d %s", status, text)
	}
	if status, text = w.answered(w.raw("GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + strings.Repeat("x", 72<<10) + "\r\n\r\n")); status != 431 {
		t.Errorf("headers: %d %s", status, text)
	}
	// Control: a little less is taken.
	w.ok(ask{agentDoor, "", "GET", "/v1/health", []string{"X: " + strings.Repeat("x", 32<<10)}, ""})
	w.ok(ask{agentDoor, "coder", "POST", "/v1/calls", nil, fmt.Sprintf(`{"tool":"write_file","args":{"path":"big","content":%q}}`, strings.Repeat("x", 9<<20))})
}

// Smuggled requests do not get in: what two readers could take for different
// requests is refused whole.
func TestSmuggling(t *testing.T) {
	w := newWorld(t)
	body := `{"tool":"stat","args":{"path":"."}}`
	for what, text := range map[string]string{
		"two lengths":         w.head(len(body), fmt.Sprintf("Content-Length: %d\r\n", len(body)+1)) + body,
		"length and chunked":  strings.Replace(w.head(5, "Transfer-Encoding: chunked\r\n"), "POST", "POST", 1) + "0\r\n\r\nGET /v1/tools HTTP/1.1\r\n\r\n",
		"no host":             "GET /v1/health HTTP/1.1\r\n\r\n",
		"two hosts":           "GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
		"space before colon":  "GET /v1/health HTTP/1.1\r\nHost : 127.0.0.1\r\n\r\n",
		"folded":              "GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n evil.example\r\n\r\n",
		"absolute elsewhere":  "GET http://evil.example/v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"chunked twice":       strings.Replace(w.head(0, "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n"), "Content-Length: 0\r\n", "", 1) + "0\r\n\r\n",
		"two tokens":          w.head(len(body), "Authorization: Bearer x\r\n") + body,
		"not a method":        "G(T /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
		"http 0.9":            "GET /v1/health\r\n\r\n",
		"host of HTTP/1.0":    "GET /v1/health HTTP/1.0\r\n\r\n",
		"connect":             "CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n",
		"upgrade to plain h2": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		if status, text := w.answered(w.raw(text)); status < 400 {
			t.Errorf("%s: %d %s", what, status, text)
		}
	}
	if status, text := w.answered(w.raw(w.head(len(body), "Connection: close\r\n") + body)); status != 200 {
		t.Errorf("control: %d %s", status, text)
	}
}

// A token, a door and a machine have only so much under way; the operator always
// gets in.
func TestUnderWay(t *testing.T) {
	w := newWorld(t, func(l *limits) { l.agentRequests, l.requests = 2, 3 })
	done := make(chan error, 3)
	start := func(who string) {
		c := w.agent(who)
		go func() {
			_, err := c.Call(t.Context(), client.CallRequest{Tool: "wait"}, 0)
			done <- err
		}()
	}
	started := 0
	count := func(n int) {
		for e, err := range w.operator.Events(t.Context(), 0) {
			must(t, err)
			if e.Kind == "call.started" {
				if started++; started == n {
					started = 0
					return
				}
			}
		}
	}
	start("coder")
	start("coder")
	count(2)
	w.refused(ask{agentDoor, "coder", "GET", "/v1/tools", nil, ""}, 409, writ.Conflict, "this agent has too many requests under way; wait for some to end")
	w.ok(ask{agentDoor, "other", "GET", "/v1/tools", nil, ""})
	start("other")
	count(3)
	got := w.ask(ask{agentDoor, "other", "GET", "/v1/tools", nil, ""})
	if got.status != 409 || got.problem.Detail != "too many requests are under way; try again" || got.header.Get("Retry-After") != "1" {
		t.Errorf("%d %s", got.status, got.body)
	}
	must(t, w.operator.Stop(t.Context(), client.StopRequest{Agent: "coder"}))
	for range 2 {
		if err := <-done; err == nil {
			t.Error("a stopped call succeeded")
		}
	}
	w.gate <- struct{}{}
	must(t, <-done)
	w.ok(ask{agentDoor, "coder", "GET", "/v1/tools", nil, ""})
}

// A connection more than there may be waits until one ends; one that lies idle makes
// room, so that nobody keeps the others out with connections alone.
func TestConnections(t *testing.T) {
	w := newWorld(t, func(l *limits) { l.connections = 2 })
	hello := "GET /v1/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
	half := hello[:len(hello)-2]
	w.doors[agentDoor].CloseIdleConnections()
	first, second := w.raw(half), w.raw(half)
	third := w.raw(hello)
	must(t, third.SetReadDeadline(time.Now().Add(100*time.Millisecond)))
	if n, err := third.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a third connection is served while two are busy: %v", err)
	}
	_, err := first.Write([]byte("\r\n"))
	must(t, err)
	w.answered(first) // and now it is idle
	must(t, third.SetReadDeadline(time.Now().Add(30*time.Second)))
	if status, text := w.answered(third); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	must(t, first.SetReadDeadline(time.Now().Add(30*time.Second)))
	if n, err := first.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("the idle one was not closed: %v", err)
	}
	_, err = second.Write([]byte("\r\n"))
	must(t, err)
	if status, text := w.answered(second); status != 200 {
		t.Errorf("the busy one: %d %s", status, text)
	}
}
