package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/miekg/dns"
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/sandbox"
)

// Relay serves what comes out of one box, for one run.
type Relay struct {
	pass   *Pass
	mouth  sandbox.Mouth
	life   context.Context
	end    context.CancelFunc
	work   sync.WaitGroup
	closed sync.Once
	told   sync.Once
	asking chan struct{} // a place for each question that is being answered
}

// Serve begins to serve.
func (p *Pass) Serve(m sandbox.Mouth) *Relay {
	r := &Relay{pass: p, mouth: m, asking: make(chan struct{}, 32)}
	r.life, r.end = context.WithCancel(context.Background())
	udp := &dns.Server{PacketConn: m.DNS, Handler: dns.HandlerFunc(r.answer)}
	tcp := &dns.Server{Listener: &entered{m.DNSTCP, r}, Handler: dns.HandlerFunc(r.answer), ReadTimeout: 5 * time.Second}
	r.work.Go(func() { udp.ActivateAndServe() })
	r.work.Go(func() { tcp.ActivateAndServe() })
	r.work.Go(func() { r.accept(m.TCP) })
	if m.TCP6 != nil {
		udp6 := &dns.Server{PacketConn: m.DNS6, Handler: dns.HandlerFunc(r.answer)}
		r.work.Go(func() { udp6.ActivateAndServe() })
		r.work.Go(func() { r.accept(m.TCP6) })
	}
	return r
}

// Close ends every connection and waits until nothing is left.
func (r *Relay) Close() error {
	r.closed.Do(func() {
		r.end()
		r.mouth.Close()
	})
	r.work.Wait()
	r.told.Do(r.pass.loopbacks)
	return nil
}

// answer answers a question, where there is room for it: a program asks again.
func (r *Relay) answer(w dns.ResponseWriter, q *dns.Msg) {
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	default:
		return
	}
	if r.life.Err() != nil || !r.pass.mayLog() {
		return
	}
	a := r.pass.answer(r.life, q)
	if _, udp := w.LocalAddr().(*net.UDPAddr); udp {
		a.Truncate(dns.MinMsgSize)
	}
	w.WriteMsg(a) // a box that does not listen to the answer goes without
}

// entered counts what is accepted among the connections of the run.
type entered struct {
	net.Listener
	r *Relay
}

func (l *entered) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil && (errors.Is(err, net.ErrClosed) || l.r.life.Err() != nil) {
			return nil, net.ErrClosed
		}
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if l.r.pass.enter() != Allowed {
			refuse(c)
			continue
		}
		left := sync.OnceFunc(l.r.pass.leave)
		return &leaving{Conn: c, left: left, stop: context.AfterFunc(l.r.life, func() { c.Close(); left() })}, nil
	}
}

// leaving is a connection that was entered, and is written to at once or not at all.
type leaving struct {
	net.Conn
	left func()
	stop func() bool
}

func (c *leaving) Write(b []byte) (int, error) {
	c.SetWriteDeadline(time.Now().Add(5 * time.Second))
	return c.Conn.Write(b)
}

func (c *leaving) Close() error {
	c.stop()
	defer c.left()
	return c.Conn.Close()
}

func (r *Relay) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if r.life.Err() != nil || errors.Is(err, net.ErrClosed) {
			if c != nil {
				c.Close()
			}
			return
		}
		if err != nil { // too many files are open: others end, and then there is room
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if !r.pass.mayLog() {
			refuse(c)
			continue
		}
		if v := r.pass.enter(); v != Allowed {
			e := Event{At: time.Now(), Kind: "connect", Verdict: v}
			if to, err := r.mouth.Original(c); err == nil {
				e.Host, e.Address = to.String(), to
			}
			refuse(c)
			r.pass.say(e)
			continue
		}
		r.work.Go(func() {
			defer r.pass.leave()
			stop := context.AfterFunc(r.life, func() { c.Close() })
			defer stop()
			defer c.Close()
			if e := r.connection(c); e.Verdict != "" {
				r.pass.say(e)
			}
		})
	}
}

// refuse resets a connection, so that a program knows at once.
func refuse(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		t.SetLinger(0)
	}
	c.Close()
}

// connection takes one from its beginning to its end. An event without a verdict was said
// already.
func (r *Relay) connection(c net.Conn) (e Event) {
	e = Event{At: time.Now(), Kind: "connect"}
	defer func() { e.Took = time.Since(e.At) }()
	to, err := r.mouth.Original(c)
	if err != nil {
		e.Verdict, e.Detail = Malformed, "where it was meant to go is not known"
		refuse(c)
		return e
	}
	if to == ProxyAddress {
		return r.proxy(c, e)
	}
	e.Address = to
	may := r.pass.allowed(to)
	if len(may) == 0 {
		e.Host = to.String()
		why := r.pass.stranger(to)
		e.Verdict, e.Rule, e.Class, e.Detail = why.Verdict, why.Rule, why.Class, why.Detail
		refuse(c)
		return e
	}
	e.Host, e.Rule = may[0].endpoint.String(), may[0].rule.At
	return r.speaks(&peeked{Conn: c, first: r.pass.broker.reader(c)}, e, may)
}

// A candidate is a host that a connection may be to, and the rule that allows it.
type candidate struct {
	endpoint host.Endpoint
	rule     Rule
}

// allowed are the hosts that a connection to an address may be to: the names which it was
// the answer for, and the address itself where a rule has it.
func (p *Pass) allowed(to netip.AddrPort) []candidate {
	var out []candidate
	add := func(h host.Host) {
		e := host.Endpoint{Host: h, Port: to.Port()}
		if rule, ok := p.run.rule(e); ok {
			if _, open := rule.Open(to.Addr()); open {
				out = append(out, candidate{e, rule})
			}
		}
	}
	for _, h := range p.pinned(to.Addr()) {
		add(h)
	}
	if h, err := host.FromAddr(to.Addr()); err == nil {
		add(h)
	}
	return out
}

// tls lets through a connection whose name is one that was allowed for this address.
func (r *Relay) tls(c *peeked, e Event, may []candidate) Event {
	c.SetReadDeadline(time.Now().Add(beginWithin))
	h, err := hear(c.first)
	c.SetReadDeadline(time.Time{})
	if err != nil {
		e.Verdict, e.Detail = Malformed, "its beginning is not one of TLS"
		refuse(c.Conn)
		return e
	}
	chosen, verdict := named(h, may)
	e.Host, e.Rule = chosen.endpoint.String(), chosen.rule.At
	if verdict == OtherName {
		e.Detail = "it names " + show(h.name)
	}
	if verdict == Allowed && !chosen.rule.Reads && !r.pass.blindly(chosen) {
		verdict = NotSeen
	}
	if e.Verdict = verdict; verdict != Allowed {
		refuse(c.Conn)
		return e
	}
	if chosen.rule.seen() {
		return r.intercept(c, e, chosen, h.raw)
	}
	return r.through(c, e, h.raw, nil)
}

// named finds whom a hello wants among those it may.
func named(h hello, may []candidate) (candidate, Verdict) {
	for _, m := range may {
		if m.rule.Blind && !m.rule.Reads && (h.name == "" || h.hidden) {
			return m, Allowed
		}
	}
	switch {
	case h.hidden:
		return may[0], HiddenName
	case h.name == "":
		return may[0], NoName
	}
	want, err := host.Parse(h.name)
	for _, m := range may {
		if err == nil && m.endpoint.Host == want {
			return m, Allowed
		}
	}
	return may[0], OtherName
}

// class is what the run may do at a host, by the methods of requests. Where somebody else
// makes them that one decides, and a host that may not be talked to was refused before.
func (p *Pass) class(m candidate) writ.Class {
	switch {
	case m.rule.Reads:
		return max(p.run.Class, writ.ClassReadOnly)
	case m.rule.Over != nil:
		return writ.ClassWrite
	}
	return p.run.Class
}

// blindly says whether what nobody can see into may go to a host.
func (p *Pass) blindly(m candidate) bool {
	return !m.rule.Reads && (p.run.Class == writ.ClassWrite || m.rule.Class == writ.ClassReadOnly)
}

// dial is to an address that was checked, and to no other.
func (r *Relay) dial(to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(r.life, 20*time.Second)
	defer cancel()
	for {
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", to.String()) // not DialTCP, which binds first, to a port that no other connection has
		if !errors.Is(err, syscall.EMFILE) && !errors.Is(err, syscall.ENFILE) || ctx.Err() != nil {
			return c, err
		}
		time.Sleep(10 * time.Millisecond) // too many files are open: others end, and then there is room
	}
}

// show is a text of the box's as a log can carry it.
func show(s string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	return strconv.Quote(s)
}
