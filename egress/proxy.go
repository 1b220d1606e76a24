package egress

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"time"

	"github.com/writ-run/writ/host"
)

// ProxyAddress is where every box that has a network finds a proxy, of HTTP (with CONNECT)
// and of SOCKS5: an address that is nobody's (RFC 2544). Programs need none; some want one.
var ProxyAddress = netip.MustParseAddrPort("198.18.0.1:1080")

// proxy serves a program that asks for its connections instead of making them. Each is held
// to what it would be without.
func (r *Relay) proxy(c net.Conn, e Event) Event {
	in := &peeked{Conn: c, first: bufio.NewReaderSize(c, 4096)}
	e.Host, e.Detail = "proxy", "the proxy of the sandbox"
	in.SetReadDeadline(time.Now().Add(beginWithin))
	b, err := in.first.Peek(1)
	in.SetReadDeadline(time.Time{})
	switch {
	case err != nil || b[0] != 5 && !isText(b[0]):
		e.Verdict, e.Detail = Malformed, "the proxy speaks HTTP and SOCKS5"
		refuse(c)
		return e
	case b[0] == 5:
		return r.socks(in, e)
	}
	ends := newEnding(in)
	s := &http.Server{
		Handler: http.HandlerFunc(r.asked), ReadHeaderTimeout: beginWithin, IdleTimeout: r.pass.broker.o.Limits.Idle, MaxHeaderBytes: 64 << 10,
		ErrorLog: log.New(io.Discard, "", 0), DisableGeneralOptionsHandler: true,
	}
	bad := garbled(s, ends, ends)
	s.Shutdown(r.life)
	if bad {
		e.Verdict, e.Detail = Malformed, notRead
		return e
	}
	return Event{} // each request was said
}

// asked is one request to the proxy.
func (r *Relay) asked(rw http.ResponseWriter, req *http.Request) {
	e := Event{At: time.Now(), Kind: "connect", Host: req.Host}
	connect := req.Method == http.MethodConnect
	fail := func() {
		e.Took = time.Since(e.At)
		r.pass.say(e)
		rw.Header().Set("Connection", "close")
		http.Error(rw, fmt.Sprintf("writ: %s: %s", e.Verdict, e.told()), http.StatusForbidden)
	}
	if !r.pass.mayLog() {
		panic(http.ErrAbortHandler)
	}
	to, err := host.ParseEndpoint(req.Host)
	if !connect {
		to, err = host.ParseURL(req.URL.String())
	}
	if err != nil || !connect && (req.URL.Scheme != "http" || req.URL.Host != req.Host) {
		e.Verdict, e.Detail = Malformed, "write the address whole, with http:// and the Host that it has, or CONNECT host:port"
		fail()
		return
	}
	may, at, refused := r.meant(to)
	if refused != nil {
		e.Verdict, e.Class, e.Rule, e.Detail = refused.Verdict, refused.Class, refused.Rule, refused.Detail
		fail()
		return
	}
	e.Host, e.Rule, e.Address = may.endpoint.String(), may.rule.At, at
	if !connect && (may.rule.Via != nil || may.rule.Over != nil) { // somebody else speaks to it, and not so
		e.Verdict, e.Detail = NotSeen, "nothing goes there by requests to a proxy; CONNECT does"
		fail()
		return
	}
	if !connect {
		r.forward(rw, req, e, may)
		return
	}
	c, rest, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return
	}
	defer c.Close()
	c.SetDeadline(time.Time{})
	io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n")
	early, _ := rest.Peek(rest.Reader.Buffered()) // it is there
	bare := socket(c)
	r.pass.say(r.speaks(&peeked{Conn: bare, first: bufio.NewReaderSize(io.MultiReader(bytes.NewReader(early), bare), 4096)}, e, []candidate{may}))
}

// forward sends one request on; the next may be for somebody else.
func (r *Relay) forward(rw http.ResponseWriter, req *http.Request, e Event, may candidate) {
	w := &web{relay: r, to: e, may: []candidate{may}}
	t := &http.Transport{
		DialContext:        func(context.Context, string, string) (net.Conn, error) { return w.dial() },
		DisableCompression: true, DisableKeepAlives: true, ResponseHeaderTimeout: r.pass.broker.o.Limits.Idle, MaxResponseHeaderBytes: 256 << 10,
	}
	w.proxy = &httputil.ReverseProxy{Rewrite: w.rewrite, ErrorHandler: w.failed, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0), Transport: t}
	req.Header.Del("Proxy-Connection")
	req.Header.Del("Proxy-Authorization")
	w.ServeHTTP(rw, req)
	e.Verdict, e.Sent, e.Got, e.Took = Allowed, w.out.Load(), w.got.Load(), time.Since(e.At)
	r.pass.say(e)
}

// meant finds the rule for whom a program asks a proxy for, and the address to dial.
func (r *Relay) meant(to host.Endpoint) (candidate, netip.AddrPort, *Event) {
	rule, ok := r.pass.run.rule(to)
	if !ok {
		return candidate{}, netip.AddrPort{}, &Event{Verdict: HostNotAllowed, Rule: to.String(), Detail: to.String() + " is not among the hosts of this call"}
	}
	network := "ip4"
	if rule.IPv6 {
		network = "ip"
	}
	found, came := r.pass.addresses(r.life, rule, network, to.Host)
	if came.Verdict != Allowed {
		came.Rule = r.pass.needed(came, rule.At, to.Host, to.Port)
		return candidate{}, netip.AddrPort{}, &came
	}
	at := found[0]
	if i := slices.IndexFunc(found, netip.Addr.Is4); i > 0 {
		at = found[i]
	}
	r.pass.asksProxy(to, at)
	return candidate{to, rule}, netip.AddrPortFrom(at, to.Port), nil
}

// socks speaks SOCKS5 (RFC 1928) as far as CONNECT.
func (r *Relay) socks(c *peeked, e Event) Event {
	c.SetReadDeadline(time.Now().Add(beginWithin))
	to, err := greeted(c)
	c.SetReadDeadline(time.Time{})
	if err != nil {
		e.Verdict, e.Detail = Malformed, err.Error()
		refuse(c.Conn)
		return e
	}
	e.Host = to.String()
	may, at, refused := r.meant(to)
	if refused != nil {
		e.Verdict, e.Class, e.Rule, e.Detail = refused.Verdict, refused.Class, refused.Rule, refused.Detail
		c.Write(socksReply(2)) // not allowed by the ruleset
		return e
	}
	e.Rule, e.Address, e.Detail = may.rule.At, at, ""
	if _, err := c.Write(socksReply(0)); err != nil {
		e.Verdict = Malformed
		return e
	}
	return r.speaks(c, e, []candidate{may})
}

func socksReply(code byte) []byte { return []byte{5, code, 0, 1, 0, 0, 0, 0, 0, 0} }

// greeted reads whom a program wants.
func greeted(c *peeked) (host.Endpoint, error) {
	none := host.Endpoint{}
	var head [2]byte
	if _, err := io.ReadFull(c.first, head[:]); err != nil {
		return none, errors.New("it ended within its greeting")
	}
	if _, err := io.CopyN(io.Discard, c.first, int64(head[1])); err != nil {
		return none, errors.New("it ended within its greeting")
	}
	if _, err := c.Write([]byte{5, 0}); err != nil { // nothing to prove: only this box gets here
		return none, err
	}
	var want [4]byte
	if _, err := io.ReadFull(c.first, want[:]); err != nil {
		return none, errors.New("it ended before it said what it wants")
	}
	if want[0] != 5 || want[1] != 1 {
		c.Write(socksReply(7)) // command not supported
		return none, errors.New("the proxy does CONNECT and nothing else")
	}
	size := map[byte]int{1: 4, 3: 0, 4: 16}
	n, known := size[want[3]]
	if want[3] == 3 {
		b, err := c.first.ReadByte()
		if n = int(b); err != nil || n == 0 {
			return none, errors.New("it names nobody")
		}
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(c.first, text); err != nil || !known {
		c.Write(socksReply(8)) // address type not supported
		return none, errors.New("it does not say whom it wants")
	}
	to := host.Endpoint{Port: uint16(text[n])<<8 | uint16(text[n+1])}
	var err error
	if a, ok := netip.AddrFromSlice(text[:n]); ok && want[3] != 3 {
		to.Host, err = host.FromAddr(a)
	} else {
		to.Host, err = host.Parse(string(text[:n]))
	}
	if err != nil || to.Port == 0 {
		c.Write(socksReply(1))
		return none, errors.New("what it names is no host")
	}
	return to, nil
}

// socket is the connection below those that a server had put around it.
func socket(c net.Conn) net.Conn {
	for {
		switch at := c.(type) {
		case *overheard:
			c = at.Conn
		case *ending:
			c = at.Conn
		case *peeked:
			c = at.Conn
		default:
			return c
		}
	}
}
