package egress

import (
	"bufio"
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
	names  net.Addr
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
	return New(Options{Resolver: names{}, Limits: l}).way(t, server, class, rules...)
}

// way is one of several of a broker.
func (b *Broker) way(t *testing.T, server net.Addr, class writ.Class, rules ...Rule) *way {
	t.Helper()
	w := &way{t: t}
	p := b.Open(Run{Call: "call_1", Agent: "coder", Class: class, Rules: rules, Log: func(e Event) { w.mu.Lock(); defer w.mu.Unlock(); w.events = append(w.events, e) }})
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
	w.mouth, w.names = tcp.Addr(), udp.LocalAddr()
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
		{"two lengths", writ.ClassWrite, writ.ClassWrite, "POST / HTTP/1.1\r\n" + hostLine + "Content-Length: 2\r\nContent-Length: 3\r\n\r\nhi", "400 Bad Request", "connect malformed", ""},
		{"two hosts", writ.ClassWrite, writ.ClassWrite, "GET / HTTP/1.1\r\n" + hostLine + "Host: bad.test\r\n\r\n", "400 Bad Request", "connect malformed", ""},
		{"a length and chunks", writ.ClassReadOnly, writ.ClassWrite, "GET /x HTTP/1.1\r\n" + hostLine + "Connection: close\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nDELETE /y HTTP/1.1\r\n" + hostLine + "\r\n", "writ: method_refused: a call that only reads sends no body", "http method_refused, connect allowed", ""},
		{"the same, by an approved call", writ.ClassWrite, writ.ClassWrite, "GET /x HTTP/1.1\r\n" + hostLine + "Connection: close\r\nContent-Length: 50\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nDELETE /y HTTP/1.1\r\n" + hostLine + "\r\n", "served", "http allowed, connect allowed", "GET /x "},
		{"a method in a header, in other letters", writ.ClassReadOnly, writ.ClassWrite, get("X_HTTP_Method_Override: DELETE\r\n"), "does not send X_http_method_override", "http method_refused, connect allowed", ""},
		{"a method in a header, with dots", writ.ClassReadOnly, writ.ClassWrite, get("X.HTTP.Method~Override: DELETE\r\n"), "does not send X.http.method~override", "http method_refused, connect allowed", ""},
		{"a method in a header of another name", writ.ClassReadOnly, writ.ClassWrite, get("X-Tunneled-Method: DELETE\r\n"), "does not send X-Tunneled-Method", "http method_refused, connect allowed", ""},
		{"a method in a header that calls it a verb", writ.ClassReadOnly, writ.ClassWrite, get("X-HTTP-Verb: DELETE\r\n"), "does not send X-Http-Verb", "http method_refused, connect allowed", ""},
		{"a header with that word in another", writ.ClassReadOnly, writ.ClassWrite, get("X-Verbose: 1\r\n"), "served", "http allowed, connect allowed", "GET /x "},
		{"a method that is only asked about", writ.ClassReadOnly, writ.ClassWrite, get("Access-Control-Request-Method: DELETE\r\n"), "served", "http allowed, connect allowed", "GET /x "},
		{"an empty one before it", writ.ClassReadOnly, writ.ClassWrite, get("X-HTTP-Method-Override:\r\nX-HTTP-Method-Override: DELETE\r\n"), "does not send X-Http-Method-Override", "http method_refused, connect allowed", ""},
		{"a body", writ.ClassReadOnly, writ.ClassWrite, get("Content-Length: 2\r\n") + "hi", "sends no body", "http method_refused, connect allowed", ""},
		{"an empty line first", writ.ClassReadOnly, writ.ClassReadOnly, "\r\n" + post, "400 Bad Request", "connect malformed", ""},
		{"small letters", writ.ClassReadOnly, writ.ClassReadOnly, "post" + post[4:], "writ: method_refused", "http method_refused, connect allowed", ""},
		{"another protocol, by an approved call", writ.ClassWrite, writ.ClassWrite, get("Connection: Upgrade\r\nUpgrade: h2c\r\n"), "only websocket can follow", "http method_refused, connect allowed", ""},
		{"an alert first", writ.ClassWrite, writ.ClassWrite, "\x15\x03\x01\x00\x02\x01\x00" + post, "", "connect malformed", ""},
		{"a method that nobody has", writ.ClassWrite, writ.ClassWrite, "!GET / HTTP/1.1\r\nHost: bad.test\r\n\r\n" + post, "", "connect malformed", ""},
		{"HTTP/2 without TLS", writ.ClassWrite, writ.ClassWrite, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "http malformed, connect allowed", ""},
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
		{"in an older form", writ.ClassWrite, rule(t, at, writ.ClassWrite), append([]byte{0x80, 0x2e, 1, 3, 1}, bytes.Repeat([]byte{0}, 43)...), "connect malformed"},
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

// Who listens first is served, and does not turn into something that would have been
// looked at.
func TestListensFirst(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	got := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				io.WriteString(c, "220 hello\r\n")
				b, _ := io.ReadAll(c)
				got <- string(b)
				c.Close()
			}()
		}
	}()
	for _, c := range []struct {
		text, want, log string
		class           writ.Class
	}{
		{"EHLO me\r\n", "EHLO me\r\n", "connect allowed", writ.ClassWrite},
		{"QUIT", "QUIT", "connect allowed", writ.ClassWrite},
		{"GET / HTTP/1.1\r\nHost: bad.test\r\n\r\n", "", "connect malformed", writ.ClassWrite},
		{"\r\nGET / HTTP/1.1\r\nHost: bad.test\r\n\r\n", "", "connect malformed", writ.ClassWrite},
		{string(helloFor(t, "bad.test", 0)), "", "connect malformed", writ.ClassWrite},
	} {
		w := newWay(t, l.Addr(), c.class, Limits{}, rule(t, l.Addr(), writ.ClassWrite))
		conn, err := net.Dial("tcp", w.mouth.String())
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "220 hello\r\n" {
			t.Errorf("%q: %q %v", c.text, line, err)
		}
		for _, b := range []byte(c.text) { // one by one
			conn.Write([]byte{b})
		}
		conn.(*net.TCPConn).CloseWrite()
		if sent := <-got; sent != c.want {
			t.Errorf("%q: the server got %q", c.text, sent)
		}
		conn.Close()
		if log := w.logged(); log != c.log {
			t.Errorf("%q: %s", c.text, log)
		}
	}
	w := newWay(t, l.Addr(), writ.ClassReadOnly, Limits{}, rule(t, l.Addr(), writ.ClassWrite))
	if got := w.says("SSH-2.0-x\r\n"); got != "" {
		t.Errorf("a call that only reads: %q", got)
	}
	if log := w.logged(); log != "connect not_seen" {
		t.Error(log)
	}
}

// What neither side uses ends.
func TestIdle(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err == nil {
			io.WriteString(c, "hi")
			io.Copy(io.Discard, c)
			c.Close()
		}
	}()
	w := newWay(t, l.Addr(), writ.ClassWrite, Limits{Idle: 100 * time.Millisecond}, rule(t, l.Addr(), writ.ClassWrite))
	conn, err := net.Dial("tcp", w.mouth.String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(20 * time.Second))
	conn.Write([]byte{1})
	if b, err := io.ReadAll(conn); string(b) != "hi" || isTimeout(err) {
		t.Errorf("%q %v", b, err)
	}
}

// A flood of questions is answered as far as there is room, and the log has an end.
func TestQuestions(t *testing.T) {
	p, err := host.ParsePattern("good.test:443")
	if err != nil {
		t.Fatal(err)
	}
	lines, where := 0, ""
	pass := New(Options{Resolver: names{}}).Open(Run{Rules: Rules{{Host: p}}, Log: func(e Event) { lines, where = lines+1, e.Host }})
	for range 3 * logBurst {
		pass.mayLog()
	}
	if lines != 1 || where != "every host" || pass.tokens > logBurst/2 {
		t.Errorf("%d lines beside what was let through, of %q, %.0f left", lines, where, pass.tokens)
	}
	many := make([]netip.Addr, 2*mostPins)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{1, 2, byte(i >> 8), byte(i)})
	}
	if pass.pin(mustHost(t, "good.test"), many) || pass.pairs != mostPins {
		t.Errorf("%d answers are remembered", pass.pairs)
	}
}
