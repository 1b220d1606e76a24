package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// asks makes a request with a body, and gives the answer's.
func asks(ctx context.Context, d *direct, url, body string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	resp, err := d.RoundTrip(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(b)), err
}

func TestDirect(t *testing.T) {
	var opened atomic.Int32
	begun, gone := make(chan struct{}), make(chan struct{})
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/hints":
			w.WriteHeader(http.StatusEarlyHints)
		case "/last":
			w.Header().Set("Connection", "close")
		case "/none":
			w.WriteHeader(http.StatusAccepted)
			return
		case "/stream":
			fmt.Fprint(w, "a")
			w.(http.Flusher).Flush()
			close(begun)
			<-r.Context().Done()
			close(gone)
			return
		}
		fmt.Fprintf(w, "%s %s", r.URL.Path, b)
	}))
	s.Config.ConnState = func(_ net.Conn, st http.ConnState) {
		if st == http.StateNew {
			opened.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	d := &direct{dial: (&net.Dialer{}).DialContext}
	defer d.CloseIdleConnections()
	for _, c := range []struct {
		path, want string
		opened     int32 // so far
	}{
		{"/x", "200 /x body", 1}, {"/x", "200 /x body", 1}, {"/hints", "200 /hints body", 1}, {"/none", "202 ", 1}, {"/x", "200 /x body", 1},
		{"/last", "200 /last body", 1}, {"/x", "200 /x body", 2},
	} {
		if got, err := asks(t.Context(), d, s.URL+c.path, "body"); err != nil || got != c.want || opened.Load() != c.opened {
			t.Errorf("%s: %q %v, %d connections; want %q and %d", c.path, got, err, opened.Load(), c.want, c.opened)
		}
	}

	// A connection that the server closed meanwhile is not used.
	s.CloseClientConnections()
	if got, err := asks(t.Context(), d, s.URL+"/x", "body"); err != nil || got != "200 /x body" || opened.Load() != 3 {
		t.Errorf("after it closed: %q %v, %d connections", got, err, opened.Load())
	}

	// Whoever gives up is not held, and the server hears of it.
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("gave up")
	go func() { <-begun; cancel(why) }()
	if got, err := asks(ctx, d, s.URL+"/stream", ""); !errors.Is(err, why) || got != "200 a" && got != "" {
		t.Errorf("given up: %q %v", got, err)
	}
	select {
	case <-gone:
	case <-time.After(10 * time.Second):
		t.Error("the server was not told")
	}
	if _, err := asks(ctx, d, s.URL+"/x", ""); !errors.Is(err, why) {
		t.Error(err)
	}

	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for n := range 20 {
				want := fmt.Sprintf("200 /x %d-%d", i, n)
				if got, err := asks(t.Context(), d, s.URL+"/x", want[7:]); err != nil || got != want {
					t.Errorf("%q %v, want %q", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// A server that talks before it is asked is not believed.
func TestDirectUnasked(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	answered := make(chan struct{}, 2)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				b := make([]byte, 4096)
				c.Read(b)
				io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
				answered <- struct{}{}
				io.Copy(io.Discard, c)
			}()
		}
	}()
	d := &direct{dial: (&net.Dialer{}).DialContext}
	defer d.CloseIdleConnections()
	for range 2 {
		if got, err := asks(t.Context(), d, "http://"+l.Addr().String()+"/", ""); err != nil || got != "200 ok" {
			t.Errorf("%q %v", got, err)
		}
		<-answered
	}
	if _, err := asks(t.Context(), d, "http://127.0.0.1:1/", ""); !neverDialled(err) {
		t.Errorf("nobody is there: %v", err)
	}
}

// What a server may send before the body of an answer has an end.
func TestDirectHead(t *testing.T) {
	begin := make(chan string, 1)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				c.Read(make([]byte, 4096))
				first, again, _ := strings.Cut(<-begin, "…")
				io.WriteString(c, first)
				for sent := 0; again != "" && sent < 64<<20; sent += len(again) {
					if _, err := io.WriteString(c, again); err != nil {
						return
					}
				}
			}()
		}
	}()
	d := &direct{dial: (&net.Dialer{}).DialContext}
	defer d.CloseIdleConnections()
	const ok, long = "HTTP/1.1 200 OK\r\n", "the server's answer has more than 1048576 bytes before its body"
	for said, want := range map[string]string{
		ok + "X: " + strings.Repeat("a", 500<<10) + "\r\nContent-Length: 2\r\n\r\nok": "200 ok",
		strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 5) + ok + "\r\nok":         "200 ok",
		ok + "Content-Length: 3145728\r\n\r\n" + strings.Repeat("a", 3<<20):           "200 " + strings.Repeat("a", 3<<20),
		ok + "X: …" + strings.Repeat("a", 1000):                                       long,
		ok + "…" + strings.Repeat("X: a\r\n", 1000):                                   long,
		"…HTTP/1.1 100 Continue\r\n\r\n":                                              "the server announced an answer 6 times and gave none",
	} {
		begin <- said
		got, err := asks(t.Context(), d, "http://"+l.Addr().String()+"/", "")
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.60q: %.200q, want %.60q", said, got, want)
		}
	}
}
