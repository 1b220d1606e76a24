package egress

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/writ-run/writ/host"
)

// A Refusal is why a tool of this process was not let through.
type Refusal struct {
	Verdict Verdict
	Host    string
	Rule    string // of which the verdict is, or which would allow it (Unmet)
	Detail  string
}

func (r *Refusal) Error() string {
	text := string(r.Verdict) + ": " + r.Host
	if r.Detail != "" {
		text += ": " + r.Detail
	}
	if r.Verdict == HostNotAllowed {
		text += ": the hosts of this call are all that it reaches"
	}
	return text
}

func (e Event) refusal() *Refusal {
	return &Refusal{Verdict: e.Verdict, Host: e.Host, Rule: e.Rule, Detail: e.told()}
}

// told is what more may be said to whom it was refused: of an address its kind, since which
// one it is says something of the network here.
func (e Event) told() string {
	if e.Verdict == AddressNotOpen {
		return "its address is " + e.Class
	}
	return e.Detail
}

// Dial connects to a host and port that the run may reach, for what runs in this process:
// the name is resolved here, each address classified, and the one that was checked is
// dialled. It is what an http.Transport asks for.
func (p *Pass) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	e := Event{At: time.Now(), Kind: "connect", Host: address}
	c, err := p.dial(ctx, network, &e)
	if err != nil {
		e.Took = time.Since(e.At)
		p.say(e)
		return nil, err
	}
	return c, nil
}

// dial says in e what came of it; when it is a connection, that is said when it ends.
func (p *Pass) dial(ctx context.Context, network string, e *Event) (net.Conn, error) {
	to, err := host.ParseEndpoint(e.Host)
	if err != nil || network != "tcp" {
		e.Verdict, e.Detail = Malformed, "it is no host and port"
		return nil, e.refusal()
	}
	e.Host = to.String()
	rule, ok := p.run.rule(to)
	if !ok {
		e.Verdict, e.Rule = HostNotAllowed, e.Host
		return nil, e.refusal()
	}
	e.Rule = rule.At
	found, came := p.addresses(ctx, rule, "ip", to.Host)
	if e.Verdict, e.Class, e.Detail = came.Verdict, came.Class, came.Detail; e.Verdict != Allowed {
		e.Rule = p.needed(*e, rule.At, to.Host, to.Port)
		return nil, e.refusal()
	}
	if !p.mayLog() {
		e.Verdict = TooMany
		return nil, e.refusal()
	}
	if e.Verdict = p.enter(); e.Verdict != Allowed {
		return nil, e.refusal()
	}
	c, at, err := first(ctx, found, to.Port)
	if err != nil {
		p.leave()
		e.Verdict, e.Detail = NotConnected, "the other side did not answer"
		return nil, e.refusal()
	}
	e.Address = at
	o := p.own(c, *e)
	if o == nil {
		p.leave()
		c.Close()
		e.Verdict, e.Detail = NotConnected, "the call is over"
		return nil, e.refusal()
	}
	return o, nil
}

// addresses are those of a host, all of which may be dialled.
func (p *Pass) addresses(ctx context.Context, r Rule, network string, h host.Host) ([]netip.Addr, Event) {
	if a, ok := h.Addr(); ok {
		class, open := r.Open(a)
		if !open {
			return nil, Event{Verdict: AddressNotOpen, Class: string(class), Detail: a.String()}
		}
		return []netip.Addr{a}, Event{Verdict: Allowed, Class: string(class)}
	}
	return p.resolve(ctx, r, network, h.String())
}

// dialWithin is how long one address may take to answer.
const dialWithin = 10 * time.Second

// first connects to the first address that answers, those of IPv4 before those of IPv6,
// which many machines have no way to.
func first(ctx context.Context, found []netip.Addr, port uint16) (net.Conn, netip.AddrPort, error) {
	var problems []error
	for _, four := range []bool{true, false} {
		for _, a := range found {
			if a.Is4() != four {
				continue
			}
			at := netip.AddrPortFrom(a, port)
			c, err := (&net.Dialer{Timeout: dialWithin}).DialContext(ctx, "tcp", at.String())
			if err == nil {
				return c, at, nil
			}
			problems = append(problems, err)
		}
	}
	return nil, netip.AddrPort{}, errors.Join(problems...)
}

// own is a connection of a tool in this process.
type own struct {
	counted
	got, sent atomic.Int64
	closed    sync.Once
	event     Event
}

// own makes one of it, or nil where the run has ended meanwhile.
func (p *Pass) own(c net.Conn, e Event) *own {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life.Err() != nil {
		return nil
	}
	p.mine.Add(1)
	o := &own{event: e}
	o.counted = counted{Conn: c, pass: p, got: &o.got, sent: &o.sent, stop: context.AfterFunc(p.life, func() { o.Close() })}
	return o
}

// Close ends the connection, and says what it was.
func (o *own) Close() error {
	err := o.counted.Close()
	o.closed.Do(func() {
		p := o.pass
		defer p.mine.Done()
		p.leave()
		o.event.Sent, o.event.Got, o.event.Took = o.sent.Load(), o.got.Load(), time.Since(o.event.At)
		if p.usedUp() {
			o.event.Verdict = TooMuch
		}
		p.say(o.event)
	})
	return err
}

// SyscallConn is the socket's, for whoever wants to know whether it is still there.
func (o *own) SyscallConn() (syscall.RawConn, error) {
	c, ok := o.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return c.SyscallConn()
}
