package egress

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
)

// Resolver finds the addresses of a name.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, name string) ([]netip.Addr, error)
}

// Limits are what one run may use. A zero field is its default.
type Limits struct {
	Connections int           // at once; 256
	Bytes       int64         // both ways together; 1 GiB
	Idle        time.Duration // without a byte either way; 5 minutes
}

// Options make a Broker. A nil Resolver is the system's.
type Options struct {
	Resolver Resolver
	Limits   Limits
	Log      func(Event) // told of everything, in any order; whoever tells waits for it
}

// Broker opens the way out for runs. It is safe for concurrent use.
type Broker struct{ o Options }

// New makes one.
func New(o Options) *Broker {
	if o.Resolver == nil {
		o.Resolver = net.DefaultResolver
	}
	if o.Log == nil {
		o.Log = func(Event) {}
	}
	if o.Limits.Connections == 0 {
		o.Limits.Connections = 256
	}
	if o.Limits.Bytes == 0 {
		o.Limits.Bytes = 1 << 30
	}
	if o.Limits.Idle == 0 {
		o.Limits.Idle = 5 * time.Minute
	}
	return &Broker{o}
}

// Run says for whom a Pass is.
type Run struct {
	Call, Agent string
	Class       writ.Class // of the call: what it may do where it may go
	Rules       Rules
}

// Open makes the pass of a run.
func (b *Broker) Open(r Run) *Pass {
	return &Pass{broker: b, run: r, ports: r.Rules.ports(), pins: map[netip.Addr][]host.Host{}}
}

// Pass is what one run may reach, and what it has used. It is safe for concurrent use.
type Pass struct {
	broker *Broker
	run    Run
	ports  []uint16

	mu    sync.Mutex
	pins  map[netip.Addr][]host.Host // answers that it got, and to which questions
	open  int
	bytes int64
}

// mostPins bounds what a run has asked about; the names are the rules', so few have many.
const mostPins = 4096

// resolve finds and checks the addresses that a name has for a rule. One that may not be
// dialled refuses the name: which of several is used would be chance.
func (p *Pass) resolve(ctx context.Context, r Rule, h host.Host) ([]netip.Addr, Event) {
	name, ok := h.Name()
	if !ok {
		a, _ := h.Addr()
		class, open := r.open(a)
		if !open {
			return nil, Event{Verdict: AddressNotOpen, Class: string(class), Detail: a.String()}
		}
		return []netip.Addr{a}, Event{Verdict: Allowed, Class: string(class)}
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	found, err := p.broker.o.Resolver.LookupNetIP(ctx, "ip4", name)
	if err != nil || len(found) == 0 {
		return nil, Event{Verdict: NotResolved, Detail: "the name has no address"}
	}
	out := make([]netip.Addr, 0, len(found))
	last := host.Class("")
	for _, a := range found {
		a = a.Unmap()
		class, open := r.open(a)
		if !open {
			return nil, Event{Verdict: AddressNotOpen, Class: string(class), Detail: a.String()}
		}
		out, last = append(out, a), class
	}
	return out, Event{Verdict: Allowed, Class: string(last)}
}

// pin remembers answers, so that a connection to one of them is to the name.
func (p *Pass) pin(h host.Host, found []netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range found {
		have := p.pins[a]
		known := false
		for _, n := range have {
			known = known || n == h
		}
		if !known {
			if len(p.pins) >= mostPins || len(have) >= mostPins {
				return false
			}
			p.pins[a] = append(have, h)
		}
	}
	return true
}

// pinned are the names that an address was the answer for.
func (p *Pass) pinned(a netip.Addr) []host.Host {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]host.Host(nil), p.pins[a]...)
}

// enter takes up a connection, while there may be more.
func (p *Pass) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open >= p.broker.o.Limits.Connections {
		return false
	}
	p.open++
	return true
}

func (p *Pass) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// use counts bytes, and says whether there may be so many.
func (p *Pass) use(n int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += n
	return p.bytes <= p.broker.o.Limits.Bytes
}

// say logs what came of something.
func (p *Pass) say(e Event) {
	e.Call, e.Agent = p.run.Call, p.run.Agent
	p.broker.o.Log(e)
}
