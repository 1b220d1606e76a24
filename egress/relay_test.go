package egress

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/sandbox"
)

// A way is a relay whose mouth is on this machine's loopback, and what it logged.
type way struct {
	t      *testing.T
	mouth  net.Addr
	relay  *Relay
	mu     sync.Mutex
	events []Event
}

// names resolves everything to loopback.
type names struct{}

func (names) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
}

// newWay leads every connection to a server as if name had been asked about.
func newWay(t *testing.T, server net.Addr, class writ.Class, l Limits, rules ...Rule) *way {
	t.Helper()
	w := &way{t: t}
	b := New(Options{Resolver: names{}, Limits: l, Log: func(e Event) { w.mu.Lock(); defer w.mu.Unlock(); w.events = append(w.events, e) }})
	p := b.Open(Run{Call: "call_1", Agent: "coder", Class: class, Rules: rules})
	to := netip.MustParseAddrPort(server.String())
	p.pin(mustHost(t, "good.test"), []netip.Addr{to.Addr()})
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	udp, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.mouth = tcp.Addr()
	w.relay = p.Serve(sandbox.Mouth{TCP: tcp, DNS: udp, DNSTCP: stream, Original: func(net.Conn) (netip.AddrPort, error) { return to, nil }})
	t.Cleanup(func() { w.relay.Close() })
	return w
}

func mustHost(t *testing.T, s string) host.Host {
	t.Helper()
	h, err := host.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// rule allows good.test at the port of a server, whose address is this machine's own.
func rule(t *testing.T, server net.Addr, class writ.Class) Rule {
	t.Helper()
	p, err := host.ParsePattern(fmt.Sprintf("good.test:%d", server.(*net.TCPAddr).Port))
	if err != nil {
		t.Fatal(err)
	}
	return Rule{Host: p, Class: class, Ranges: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, At: "here"}
}

// says sends text and gives all that comes back.
func (w *way) says(text string) string {
	w.t.Helper()
	c, err := net.Dial("tcp", w.mouth.String())
	if err != nil {
		return "" // it was reset before it was there
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	io.WriteString(c, text)
	b, _ := io.ReadAll(c) // a reset is an answer too
	return string(b)
}

// logged are the verdicts so far, after everything has ended.
func (w *way) logged() string {
	w.relay.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []string
	for _, e := range w.events {
		if e.Call != "call_1" || e.Agent != "coder" {
			w.t.Errorf("whose is %+v?", e)
		}
		out = append(out, e.Kind+" "+string(e.Verdict))
	}
	return strings.Join(out, ", ")
}

func TestRequests(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Method+" "+r.URL.String()+" "+string(body))
		fmt.Fprint(rw, "served")
	}))
	defer s.Close()
	at := s.Listener.Addr()
	hostLine := "Host: good.test:" + strings.Split(at.String(), ":")[1] + "\r\n"
	get := func(more string) string {
		return "GET /x HTTP/1.1\r\n" + hostLine + "Connection: close\r\n" + more + "\r\n"
	}
	post := "POST /x HTTP/1.1\r\n" + hostLine + "Connection: close\r\nContent-Length: 2\r\n\r\nhi"
	for _, c := range []struct {
		name     string
		call, of writ.Class // of the call, and of the host by the rule
		text     string
		answer   string // part of it
		log      string
		seen     string
	}{
		{"reading", writ.ClassReadOnly, writ.ClassWrite, get(""), "served", "http allowed, connect allowed", "GET /x "},
		{"changing", writ.ClassReadOnly, writ.ClassWrite, post, "writ: method_refused: a call that only reads sends GET, HEAD and OPTIONS", "http method_refused, connect allowed", ""},
		{"changing, by an approved call", writ.ClassWrite, writ.ClassWrite, post, "served", "http allowed, connect allowed", "POST /x hi"},
		{"changing, where a rule says what it counts as", writ.ClassReadOnly, writ.ClassReadOnly, post, "writ: method_refused", "http method_refused, connect allowed", ""},
		{"a method in a header", writ.ClassReadOnly, writ.ClassWrite, get("X-HTTP-Method-Override: DELETE\r\n"), "does not send X-Http-Method-Override", "http method_refused, connect allowed", ""},
		{"another protocol", writ.ClassReadOnly, writ.ClassWrite, get("Upgrade: websocket\r\n"), "does not change the protocol", "http method_refused, connect allowed", ""},
		{"another host", writ.ClassWrite, writ.ClassWrite, "GET / HTTP/1.1\r\nHost: bad.test\r\n\r\n", "writ: other_name", "http other_name, connect allowed", ""},
		{"another port", writ.ClassWrite, writ.ClassWrite, "GET / HTTP/1.1\r\nHost: good.test:1\r\n\r\n", "writ: other_name", "http other_name, connect allowed", ""},
		{"CONNECT", writ.ClassWrite, writ.ClassWrite, "CONNECT bad.test:443 HTTP/1.1\r\nHost: bad.test:443\r\n\r\n", "writ: malformed", "http malformed, connect allowed", ""},
		{"two lengths", writ.ClassWrite, writ.ClassWrite, "POST / HTTP/1.1\r\n" + hostLine + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "400 Bad Request", "connect allowed", ""},
		{"two hosts", writ.ClassWrite, writ.ClassWrite, "GET / HTTP/1.1\r\n" + hostLine + "Host: bad.test\r\n\r\n", "400 Bad Request", "connect allowed", ""},
		{"a length and chunks", writ.ClassReadOnly, writ.ClassWrite, "GET /x HTTP/1.1\r\n" + hostLine + "Connection: close\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nDELETE /y HTTP/1.1\r\n" + hostLine + "\r\n", "served", "http allowed, connect allowed", "GET /x "},
		{"HTTP/2 without TLS", writ.ClassWrite, writ.ClassWrite, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "http other_name, connect allowed", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			mu.Lock()
			seen = nil
			mu.Unlock()
			w := newWay(t, at, c.call, Limits{}, rule(t, at, c.of))
			got := w.says(c.text)
			if log := w.logged(); !strings.Contains(got, c.answer) || log != c.log {
				t.Errorf("answer %q, want %q\nlog %s\nwant %s", got, c.answer, log, c.log)
			}
			mu.Lock()
			defer mu.Unlock()
			if all := strings.Join(seen, "; "); all != c.seen {
				t.Errorf("the server saw %q, want %q", all, c.seen)
			}
		})
	}
}

// hello is how a client begins that wants a name, with one extension more.
func helloFor(t *testing.T, name string, extension uint16) []byte {
	t.Helper()
	here, there := net.Pipe()
	go func() {
		tls.Client(here, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		here.Close()
	}()
	b := make([]byte, 1<<14)
	n, err := there.Read(b)
	there.Close()
	if err != nil {
		t.Fatal(err)
	}
	b = b[:n]
	if extension == 0 {
		return b
	}
	at := 5 + 4 + 2 + 32
	at += 1 + int(b[at])
	at += 2 + int(binary.BigEndian.Uint16(b[at:]))
	at += 1 + int(b[at])
	b = append(b, byte(extension>>8), byte(extension), 0, 0)
	for _, l := range []struct{ at, size int }{{3, 2}, {7, 2}, {at, 2}} {
		binary.BigEndian.PutUint16(b[l.at:], binary.BigEndian.Uint16(b[l.at:])+4)
	}
	return b
}

func TestTLS(t *testing.T) {
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	defer s.Close()
	at := s.Listener.Addr()
	blind := rule(t, at, writ.ClassWrite)
	blind.Blind = true
	for _, c := range []struct {
		name  string
		call  writ.Class
		rule  Rule
		hello []byte
		want  string
	}{
		{"the name", writ.ClassWrite, rule(t, at, writ.ClassWrite), helloFor(t, "good.test", 0), "connect allowed"},
		{"in capitals", writ.ClassWrite, rule(t, at, writ.ClassWrite), helloFor(t, "GOOD.test", 0), "connect allowed"},
		{"another name", writ.ClassWrite, rule(t, at, writ.ClassWrite), helloFor(t, "bad.test", 0), "connect other_name"},
		{"a name below", writ.ClassWrite, rule(t, at, writ.ClassWrite), helloFor(t, "good.test.bad.test", 0), "connect other_name"},
		{"no name", writ.ClassWrite, rule(t, at, writ.ClassWrite), helloFor(t, "127.0.0.1", 0), "connect no_name"},
		{"no name, by rule", writ.ClassWrite, blind, helloFor(t, "127.0.0.1", 0), "connect allowed"},
		{"a hidden name", writ.ClassWrite, rule(t, at, writ.ClassWrite), helloFor(t, "good.test", encryptedHello), "connect hidden_name"},
		{"a hidden name, by rule", writ.ClassWrite, blind, helloFor(t, "good.test", encryptedHello), "connect allowed"},
		{"a call that only reads", writ.ClassReadOnly, rule(t, at, writ.ClassWrite), helloFor(t, "good.test", 0), "connect not_seen"},
		{"where a rule says that it only reads", writ.ClassReadOnly, rule(t, at, writ.ClassReadOnly), helloFor(t, "good.test", 0), "connect allowed"},
		{"no TLS", writ.ClassWrite, rule(t, at, writ.ClassWrite), append([]byte{22}, bytes.Repeat([]byte("x"), 100)...), "connect malformed"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWay(t, at, c.call, Limits{}, c.rule)
			conn, err := net.Dial("tcp", w.mouth.String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.SetDeadline(time.Now().Add(10 * time.Second))
			conn.Write(c.hello)
			n, _ := conn.Read(make([]byte, 1))
			conn.Close()
			if answered := n == 1; answered != strings.HasSuffix(c.want, "allowed") {
				t.Errorf("answered: %v", answered)
			}
			if got := w.logged(); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A run is bounded in what it has open, and in what goes through.
func TestLimits(t *testing.T) {
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
			go func() { io.Copy(c, c); c.Close() }()
		}
	}()
	w := newWay(t, l.Addr(), writ.ClassWrite, Limits{Connections: 2, Bytes: 5 << 20}, rule(t, l.Addr(), writ.ClassWrite))
	var open []net.Conn
	for i := range 3 {
		c, err := net.Dial("tcp", w.mouth.String())
		if err != nil && i == 2 {
			break // it was reset before it was there
		}
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		c.Write([]byte("\x01"))
		open = append(open, c)
	}
	for i, c := range open {
		if n, _ := c.Read(make([]byte, 1)); (n == 1) != (i < 2) {
			t.Errorf("connection %d: %d bytes", i, n)
		}
	}
	go io.Copy(io.Discard, open[0])
	sent, _ := io.Copy(open[0], io.LimitReader(zeroes{}, 64<<20))
	if sent > 16<<20 {
		t.Errorf("%d bytes went through", sent)
	}
	open[1].Close()
	if log := w.logged(); strings.Count(log, "too_many") != 1 || !strings.Contains(log, "too_much") {
		t.Error(log)
	}
}

type zeroes struct{}

func (zeroes) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// What nobody asked about, or no rule has, is nobody's.
func TestStrangers(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	other := rule(t, &net.TCPAddr{Port: 1}, writ.ClassWrite)
	w := newWay(t, l.Addr(), writ.ClassWrite, Limits{}, other)
	if got := w.says("GET / HTTP/1.1\r\n\r\n"); got != "" {
		t.Error(got)
	}
	if log := w.logged(); log != "connect host_not_allowed" {
		t.Error(log)
	}
	none := newWay(t, l.Addr(), writ.ClassWrite, Limits{})
	none.says("x")
	if log := none.logged(); log != "connect host_not_allowed" {
		t.Error(log)
	}
}
