package egress

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
)

// http lets through requests that are to whom the connection is, each by itself: what a
// client sent is read to its end and written anew, so that the other side never reads two
// requests where one was decided on.
func (r *Relay) http(c *peeked, e Event, may []candidate) Event {
	in := newEnding(c)
	return r.requests(in, in, e, may, nil)
}

// requests serves those of one connection, whose end is seen by ends. With secure they
// came by TLS, and go on by it.
func (r *Relay) requests(c net.Conn, ends *ending, e Event, may []candidate, secure *tls.Config) Event {
	w := &web{relay: r, to: e, may: may, secure: secure != nil}
	transport := &http.Transport{
		DialContext:     func(context.Context, string, string) (net.Conn, error) { return w.dial() },
		TLSClientConfig: secure, TLSHandshakeTimeout: seenWithin, ForceAttemptHTTP2: secure != nil,
		DisableCompression: true, MaxConnsPerHost: requestsAtOnce, ResponseHeaderTimeout: r.pass.broker.o.Limits.Idle, MaxResponseHeaderBytes: 256 << 10,
	}
	defer transport.CloseIdleConnections()
	w.proxy = &httputil.ReverseProxy{Transport: transport, Rewrite: w.rewrite, ErrorHandler: w.failed, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0)}
	if over := may[0].rule.Over; over != nil && secure != nil {
		w.proxy.Transport = over(transport)
	}
	s := &http.Server{
		Handler: w, ReadHeaderTimeout: beginWithin, IdleTimeout: r.pass.broker.o.Limits.Idle, MaxHeaderBytes: 64 << 10,
		HTTP2:    &http.HTTP2Config{MaxConcurrentStreams: requestsAtOnce, MaxReceiveBufferPerConnection: 1 << 20},
		ErrorLog: log.New(io.Discard, "", 0), DisableGeneralOptionsHandler: true,
	}
	e.Host, e.Rule, e.Verdict = may[0].endpoint.String(), may[0].rule.At, Allowed
	if garbled(s, c, ends) {
		e.Verdict, e.Detail = Malformed, notRead
	}
	s.Shutdown(r.life)
	e.Sent, e.Got = w.out.Load(), w.got.Load()
	if r.pass.usedUp() {
		e.Verdict = TooMuch
	}
	return e
}

// requestsAtOnce is how many requests of one connection there are at a time, in HTTP/2: of
// each its headers are held while it waits.
const requestsAtOnce = 8

// web is the requests of one connection.
type web struct {
	relay    *Relay
	to       Event
	may      []candidate
	secure   bool // it is TLS
	proxy    *httputil.ReverseProxy
	open     atomic.Int64 // connections on
	out, got atomic.Int64
}

// dial makes a connection on. The first is one with that of the box; more, as for requests
// of HTTP/2 to a server that has none, are connections of the run like any other.
func (w *web) dial() (net.Conn, error) {
	first := w.open.Add(1) == 1
	if !first && w.relay.pass.enter() != Allowed {
		w.open.Add(-1)
		return nil, errTooMany
	}
	left := sync.OnceFunc(func() {
		w.open.Add(-1)
		if !first {
			w.relay.pass.leave()
		}
	})
	c, err := w.relay.dial(w.to.Address)
	if err != nil {
		left()
		return nil, err
	}
	stop := context.AfterFunc(w.relay.life, func() { c.Close() })
	return &counted{Conn: c, pass: w.relay.pass, got: &w.got, sent: &w.out, stop: func() bool { left(); return stop() }}, nil
}

// ServeHTTP decides one request.
func (w *web) ServeHTTP(rw http.ResponseWriter, req *http.Request) {
	if !w.relay.pass.mayLog() {
		panic(http.ErrAbortHandler)
	}
	m, verdict, why := w.decide(req)
	e := Event{At: time.Now(), Kind: "http", Host: m.endpoint.String(), Address: w.to.Address, Verdict: verdict, Rule: m.rule.At, Detail: method(req.Method)}
	defer func() { e.Took = time.Since(e.At); w.relay.pass.say(e) }()
	if verdict != Allowed {
		if req.ProtoMajor == 1 { // what follows on the connection is not read any more; in HTTP/2 each request stands alone
			rw.Header().Set("Connection", "close")
		} else { // some clients take an answer that comes before all was read for an error
			http.NewResponseController(rw).SetReadDeadline(time.Now().Add(2 * time.Second))
			io.CopyN(io.Discard, req.Body, 1<<16)
		}
		http.Error(rw, fmt.Sprintf("writ: %s: %s", verdict, why), http.StatusForbidden)
		return
	}
	w.proxy.ServeHTTP(rw, req.WithContext(context.WithValue(req.Context(), eventKey{}, &e)))
}

type eventKey struct{}

func method(s string) string {
	if len(s) > 20 {
		s = s[:20]
	}
	return s
}

func (w *web) decide(req *http.Request) (candidate, Verdict, string) {
	none := w.may[0]
	if req.URL.Host != "" && !strings.EqualFold(req.URL.Host, req.Host) || req.Method == http.MethodConnect {
		return none, Malformed, "the request names two hosts"
	}
	if !plainTarget(req) {
		return none, Malformed, "what the request is for is no path"
	}
	m, ok := w.whom(req.Host)
	if !ok {
		return none, OtherName, fmt.Sprintf("the request is for %s, and the connection is to %s", show(req.Host), none.endpoint)
	}
	verdict, why := mayDo(w.relay.pass.class(m), req)
	return m, verdict, why
}

// plainTarget says whether a request is for a path of its host and nothing else. What is
// neither a path nor an address with a host would be written on as it came, and another
// server could read a host out of it.
func plainTarget(req *http.Request) bool {
	path := req.URL.EscapedPath()
	switch {
	case req.URL.Opaque != "" || req.URL.User != nil:
		return false
	case path == "*":
		return req.Method == http.MethodOptions
	}
	return strings.HasPrefix(path, "/") || path == "" && req.URL.Host != ""
}

// mayDo says whether a request is one that a class may send.
func mayDo(class writ.Class, req *http.Request) (Verdict, string) {
	upgrades := req.Header.Values("Upgrade")
	if len(upgrades) > 0 && (len(upgrades) > 1 || !strings.EqualFold(upgrades[0], "websocket")) { // to what would have to be looked at anew
		return MethodRefused, "only websocket can follow"
	}
	if class == writ.ClassWrite {
		return Allowed, ""
	}
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
	default:
		return MethodRefused, "a call that only reads sends GET, HEAD and OPTIONS"
	}
	if len(upgrades) > 0 {
		return MethodRefused, "a call that only reads does not change the protocol"
	}
	if req.ContentLength != 0 || len(req.TransferEncoding) > 0 {
		return MethodRefused, "a call that only reads sends no body"
	}
	for h := range req.Header {
		if Overrides(h) {
			return MethodRefused, "a call that only reads does not send " + h
		}
	}
	return Allowed, ""
}

// whom finds the host of a request among those that the connection may be to.
func (w *web) whom(text string) (candidate, bool) {
	name, port := text, w.to.Address.Port()
	if h, p, err := net.SplitHostPort(text); err == nil {
		if p != strconv.Itoa(int(port)) {
			return candidate{}, false
		}
		name = h
	} else if port != w.usual() {
		return candidate{}, false
	}
	want, err := host.Parse(name)
	for _, m := range w.may {
		if err == nil && m.endpoint.Host == want {
			return m, true
		}
	}
	return candidate{}, false
}

// usual is the port that goes without saying.
func (w *web) usual() uint16 {
	if w.secure {
		return 443
	}
	return 80
}

func (w *web) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Scheme, p.Out.URL.Host = "http", w.to.Address.String()
	if w.secure {
		p.Out.URL.Scheme = "https"
	}
	p.Out.Host, p.Out.URL.RawQuery = p.In.Host, p.In.URL.RawQuery
}

func (w *web) failed(rw http.ResponseWriter, req *http.Request, err error) {
	e, _ := req.Context().Value(eventKey{}).(*Event)
	if errors.Is(err, ErrRefused) {
		if e != nil {
			e.Verdict, e.Detail = MethodRefused, err.Error()
		}
		http.Error(rw, fmt.Sprintf("writ: %s: %v", MethodRefused, err), http.StatusForbidden)
		return
	}
	if e != nil {
		e.Verdict = NotConnected
		if w.relay.pass.usedUp() {
			e.Verdict = TooMuch
		}
	}
	why := "the other side did not answer"
	if errors.Is(err, errTooMany) {
		why = errTooMany.Error()
		if e != nil {
			e.Verdict = TooMany
		}
	}
	if Untrusted(err) != "" {
		why = "the certificate of the other side is not one to trust"
	}
	if e != nil && e.Verdict == NotConnected {
		e.Detail += ": " + cmp.Or(Untrusted(err), why)
	}
	http.Error(rw, "writ: "+string(NotConnected)+": "+why, http.StatusBadGateway)
}

// single is a listener that has one connection.
type single struct {
	conn net.Conn
	ends *ending // below it
	took atomic.Bool
}

func (s *single) Accept() (net.Conn, error) {
	if s.took.CompareAndSwap(false, true) {
		return s.conn, nil
	}
	<-s.ends.done
	return nil, net.ErrClosed
}

func (s *single) Close() error   { s.ends.end(); return nil }
func (s *single) Addr() net.Addr { return s.conn.LocalAddr() }

// ending is a connection that tells when it is closed, by whomever.
type ending struct {
	net.Conn
	done chan struct{}
	once sync.Once
}

func newEnding(c net.Conn) *ending { return &ending{Conn: c, done: make(chan struct{})} }

func (c *ending) end() { c.once.Do(func() { close(c.done) }) }

func (c *ending) Close() error {
	defer c.end()
	return c.Conn.Close()
}

// counted is a connection whose bytes are the run's.
type counted struct {
	net.Conn
	pass      *Pass
	got, sent *atomic.Int64
	stop      func() bool
}

var (
	errTooMuch = errors.New("the run may not send and receive more")
	errTooMany = errors.New("the run has as many connections as it may")
)

func (c *counted) Read(b []byte) (int, error) {
	may := c.pass.take(int64(len(b)))
	if may == 0 && len(b) > 0 {
		return 0, errTooMuch
	}
	c.used()
	n, err := c.Conn.Read(b[:may])
	c.pass.giveBack(may - int64(n))
	c.got.Add(int64(n))
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	if may := c.pass.take(int64(len(b))); may < int64(len(b)) {
		c.pass.takeAll()
		return 0, errTooMuch
	}
	c.used()
	n, err := c.Conn.Write(b)
	c.pass.giveBack(int64(len(b) - n))
	c.sent.Add(int64(n))
	return n, err
}

// used puts off the end of a connection that is not: also one on which a long request is
// written, and whoever reads waits for the answer all the while.
func (c *counted) used() {
	if idle := c.pass.broker.o.Limits.Idle; idle > 0 {
		c.SetReadDeadline(time.Now().Add(idle))
	}
}

func (c *counted) Close() error {
	c.stop()
	return c.Conn.Close()
}
