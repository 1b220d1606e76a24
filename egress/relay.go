package egress

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
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
	udp    *dns.Server
	tcp    *dns.Server
	closed sync.Once
}

// Serve begins to serve.
func (p *Pass) Serve(m sandbox.Mouth) *Relay {
	r := &Relay{pass: p, mouth: m}
	r.life, r.end = context.WithCancel(context.Background())
	answer := dns.HandlerFunc(func(w dns.ResponseWriter, q *dns.Msg) {
		a := p.answer(r.life, q)
		if _, udp := w.LocalAddr().(*net.UDPAddr); udp {
			a.Truncate(dns.MinMsgSize)
		}
		w.WriteMsg(a) // a box that does not listen to the answer goes without
	})
	r.udp = &dns.Server{PacketConn: m.DNS, Handler: answer}
	r.tcp = &dns.Server{Listener: m.DNSTCP, Handler: answer, ReadTimeout: 5 * time.Second}
	r.work.Go(func() { r.udp.ActivateAndServe() })
	r.work.Go(func() { r.tcp.ActivateAndServe() })
	r.work.Go(r.accept)
	return r
}

// Close ends every connection and waits until nothing is left.
func (r *Relay) Close() error {
	r.closed.Do(func() {
		r.end()
		r.mouth.TCP.Close()
		r.mouth.DNS.Close()
		r.mouth.DNSTCP.Close()
	})
	r.work.Wait()
	return nil
}

func (r *Relay) accept() {
	for {
		c, err := r.mouth.TCP.Accept()
		if errors.Is(err, net.ErrClosed) || r.life.Err() != nil {
			return
		}
		if err != nil { // too many files are open: others end, and then there is room
			time.Sleep(10 * time.Millisecond)
			continue
		}
		if !r.pass.enter() {
			refuse(c)
			r.pass.say(Event{At: time.Now(), Kind: "connect", Verdict: TooMany})
			continue
		}
		r.work.Go(func() {
			defer r.pass.leave()
			stop := context.AfterFunc(r.life, func() { c.Close() })
			defer stop()
			defer c.Close()
			r.pass.say(r.connection(c))
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

// beginWithin is how long a client may take to say what it wants.
const beginWithin = 15 * time.Second

// connection takes one from its beginning to its end.
func (r *Relay) connection(c net.Conn) (e Event) {
	e = Event{At: time.Now(), Kind: "connect"}
	defer func() { e.Took = time.Since(e.At) }()
	to, err := r.mouth.Original(c)
	if err != nil {
		e.Verdict, e.Detail = Malformed, "where it was meant to go is not known"
		refuse(c)
		return e
	}
	e.Address, e.Host = to, to.String()
	candidates := r.pass.allowed(to)
	if len(candidates) == 0 {
		e.Verdict, e.Rule = r.pass.stranger(to)
		refuse(c)
		return e
	}
	c.SetReadDeadline(time.Now().Add(beginWithin))
	first := bufio.NewReaderSize(c, 4096)
	b, err := first.Peek(1)
	c.SetReadDeadline(time.Time{})
	in := &peeked{Conn: c, first: first}
	switch {
	case err != nil && !isTimeout(err):
		e.Verdict, e.Detail = Malformed, "it ended before it said anything"
		return e
	case err == nil && b[0] == 22:
		return r.tls(in, e, candidates)
	case err == nil && 'A' <= b[0] && b[0] <= 'Z' && to.Port() != 22:
		return r.http(in, e, candidates)
	}
	return r.opaque(in, e, candidates)
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
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
		if rule, ok := p.run.Rules.For(e); ok {
			if _, open := rule.open(to.Addr()); open {
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

// stranger says why a connection is to nobody, and which rule would change that.
func (p *Pass) stranger(to netip.AddrPort) (Verdict, string) {
	for _, h := range p.pinned(to.Addr()) {
		return HostNotAllowed, host.Endpoint{Host: h, Port: to.Port()}.String()
	}
	return NobodysAddress, to.String()
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
	if verdict == Allowed && r.pass.run.Class != writ.ClassWrite && chosen.rule.Class != writ.ClassReadOnly {
		verdict = NotSeen
	}
	if e.Verdict = verdict; verdict != Allowed {
		refuse(c.Conn)
		return e
	}
	return r.through(c, e, h.raw)
}

// named finds whom a hello wants among those it may.
func named(h hello, may []candidate) (candidate, Verdict) {
	for _, m := range may {
		if m.rule.Blind && (h.name == "" || h.hidden) {
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

// opaque lets through what nobody can see into, where that counts as no more than the
// call may.
func (r *Relay) opaque(c *peeked, e Event, may []candidate) Event {
	m := may[0]
	e.Host, e.Rule, e.Verdict = m.endpoint.String(), m.rule.At, Allowed
	if r.pass.run.Class != writ.ClassWrite && m.rule.Class != writ.ClassReadOnly {
		e.Verdict = NotSeen
		refuse(c.Conn)
		return e
	}
	return r.through(c, e, nil)
}

// through connects to the address that was decided on, and hands over both ways.
func (r *Relay) through(c *peeked, e Event, said []byte) Event {
	out, err := r.dial(e.Address)
	if err != nil {
		e.Verdict, e.Detail = NotConnected, "the other side did not answer"
		refuse(c.Conn)
		return e
	}
	defer out.Close()
	stop := context.AfterFunc(r.life, func() { out.Close() })
	defer stop()
	n, err := out.Write(said)
	e.Sent = int64(n)
	if err != nil {
		return e
	}
	both := make(chan struct{})
	go func() {
		defer close(both)
		n, over := r.copy(c, out, c.Conn)
		e.Got = n
		end(c.Conn, over)
	}()
	sent, over := r.copy(out, c, c.Conn)
	e.Sent += sent
	end(out, over)
	<-both
	if !r.pass.use(0) {
		e.Verdict = TooMuch
	}
	return e
}

// dial is to an address that was checked, and to no other.
func (r *Relay) dial(to netip.AddrPort) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(r.life, 20*time.Second)
	defer cancel()
	return (&net.Dialer{KeepAlive: -1}).DialContext(ctx, "tcp", to.String())
}

// copy hands over until the end of what is read, in pieces that are counted. over is that
// a limit ended it.
func (r *Relay) copy(to io.Writer, from io.Reader, client net.Conn) (sum int64, over bool) {
	for {
		n, err := io.CopyN(to, from, piece)
		sum += n
		if !r.pass.use(n) {
			return sum, true
		}
		if err != nil {
			return sum, false
		}
	}
}

// piece is how much is handed over before it is counted.
const piece = 1 << 20

// end tells one side that nothing more comes; where a limit ended it, both are cut.
func end(c net.Conn, over bool) {
	if t, ok := c.(*net.TCPConn); ok && !over {
		t.CloseWrite()
		return
	}
	c.Close()
}

// peeked is a connection of which something was looked at.
type peeked struct {
	net.Conn
	first *bufio.Reader
}

func (p *peeked) Read(b []byte) (int, error) {
	if p.first.Buffered() > 0 {
		return p.first.Read(b)
	}
	return p.Conn.Read(b)
}

// show is a name as a log can carry it.
func show(s string) string {
	if len(s) > 100 {
		s = s[:100]
	}
	return s
}
