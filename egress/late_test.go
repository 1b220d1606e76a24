package egress

import (
	"bufio"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// Clients that are late are decided on as those that are not, long after a client that
// listens first would have been taken for one.
func TestLate(t *testing.T) {
	answer := http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "served") })
	plain := httptest.NewServer(answer)
	t.Cleanup(plain.Close)
	secure := httptest.NewUnstartedServer(answer)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	request := func(name string) string {
		return "GET / HTTP/1.1\r\nHost: " + name + plain.Listener.Addr().String()[len("127.0.0.1"):] + "\r\nConnection: close\r\n\r\n"
	}
	for _, c := range []struct {
		name   string
		server *httptest.Server
		call   writ.Class
		text   string
		answer string // how it begins
		log    string
	}{
		{"TLS", secure, writ.ClassWrite, string(helloFor(t, "good.test", 0)), "\x16", "connect allowed"},
		{"TLS to another name", secure, writ.ClassWrite, string(helloFor(t, "bad.test", 0)), "", "connect other_name"},
		{"TLS to nobody", secure, writ.ClassWrite, string(helloFor(t, "127.0.0.1", 0)), "", "connect no_name"},
		{"TLS to a hidden name", secure, writ.ClassWrite, string(helloFor(t, "good.test", encryptedHello)), "", "connect hidden_name"},
		{"TLS of a call that only reads", secure, writ.ClassReadOnly, string(helloFor(t, "good.test", 0)), "", "connect not_seen"},
		{"HTTP", plain, writ.ClassWrite, request("good.test"), "HTTP/1.1 200 OK", "http allowed, connect allowed"},
		{"HTTP to another name", plain, writ.ClassWrite, request("bad.test"), "HTTP/1.1 403 Forbidden", "http other_name, connect allowed"},
		{"HTTP of a call that only reads", plain, writ.ClassReadOnly, request("good.test"), "HTTP/1.1 200 OK", "http allowed, connect allowed"},
		{"half of a hello", secure, writ.ClassWrite, "\x15\x03", "", "connect malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			at := c.server.Listener.Addr()
			b := New(Options{Resolver: names{}})
			b.silentFor = 10 * time.Millisecond
			w := b.way(t, at, c.call, rule(t, at, writ.ClassWrite))
			conn, err := net.Dial("tcp", w.mouth.String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			time.Sleep(30 * b.silentFor)
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			io.WriteString(conn, c.text)
			head := make([]byte, max(1, len(c.answer)))
			n, _ := io.ReadFull(conn, head)
			if string(head[:n]) != c.answer {
				t.Errorf("answer %q, want %q", head[:n], c.answer)
			}
			conn.Close()
			if log := w.logged(); log != c.log {
				t.Errorf("%s, want %s", log, c.log)
			}
		})
	}
}

// A whole conversation over TLS that begins late.
func TestLateConversation(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { io.WriteString(rw, "served") }))
	defer s.Close()
	at := s.Listener.Addr()
	b := New(Options{Resolver: names{}})
	b.silentFor = 10 * time.Millisecond
	w := b.way(t, at, writ.ClassWrite, rule(t, at, writ.ClassWrite))
	raw, err := net.Dial("tcp", w.mouth.String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	time.Sleep(30 * b.silentFor)
	raw.SetDeadline(time.Now().Add(10 * time.Second))
	conn := tls.Client(raw, &tls.Config{ServerName: "good.test", InsecureSkipVerify: true})
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: good.test\r\nConnection: close\r\n\r\n")
	if got, err := io.ReadAll(conn); !strings.HasSuffix(string(got), "served") {
		t.Errorf("%q %v", got, err)
	}
}

// Of a late client that may not, a server hears nothing: the connection that was there for
// it to speak first is given up, and no other is made.
func TestLateTellsNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	said := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b, _ := bufio.NewReader(c).ReadString('\n') // nothing comes on the one that is given up
				said <- b
			}()
		}
	}()
	b := New(Options{Resolver: names{}})
	b.silentFor = 10 * time.Millisecond
	w := b.way(t, l.Addr(), writ.ClassWrite, rule(t, l.Addr(), writ.ClassWrite))
	conn, err := net.Dial("tcp", w.mouth.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	time.Sleep(30 * b.silentFor)
	conn.Write(helloFor(t, "bad.test", 0))
	if got := <-said; got != "" {
		t.Errorf("the server was told %q", got)
	}
	if log := w.logged(); log != "connect other_name" {
		t.Error(log)
	}
	if len(said) > 0 {
		t.Errorf("the server was connected to again, and told %q", <-said)
	}
}
