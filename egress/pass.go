package egress

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ/host"
)

// Pass is what one run may reach, and what it has used. It is safe for concurrent use.
type Pass struct {
	broker *Broker
	run    Run
	ports  []uint16

	authority *authority // which the box trusts; nil: its TLS is not looked into

	life      context.Context // of what runs in this process
	end       context.CancelFunc
	transport *http.Transport
	mine      sync.WaitGroup // connections of it

	mu      sync.Mutex
	pins    map[netip.Addr][]host.Host // answers that it got, and to which questions
	steady  map[host.Host][]netip.Addr // the first answer to each
	proxied []host.Endpoint            // at a loopback, which a program asked the proxy for
	pairs   int                        // how many that are
	open    int
	bytes   int64
	over    bool    // more bytes were wanted than there are
	tokens  float64 // how much more may be logged now
	filled  time.Time
	told    time.Time // that too much was
}

// Bounds of a run, besides its limits.
const (
	mostPins      = 4096 // answers; the names are the rules', so few have many
	mostAddresses = 64   // of one name
	few           = 8    // connections, which hardly any run does without
	logBurst      = 5000
	logRate       = 200 // a second
)

// Open makes the pass of a run.
func (b *Broker) Open(r Run) *Pass {
	if r.Log == nil {
		r.Log = func(Event) {}
	}
	p := &Pass{broker: b, run: r, ports: r.Rules.ports(), pins: map[netip.Addr][]host.Host{}, steady: map[host.Host][]netip.Addr{}, tokens: logBurst, filled: time.Now()}
	p.life, p.end = context.WithCancel(context.Background())
	p.transport = p.client()
	return p
}

// Authority is the certificate, in PEM, that programs in the box have to trust for the
// hosts whose TLS is looked into; nil: there are none. Whoever serves a box calls it before.
func (p *Pass) Authority() ([]byte, error) {
	if !slices.ContainsFunc(p.run.Rules, Rule.seen) {
		return nil, nil
	}
	var err error
	if p.authority, err = newAuthority(); err != nil {
		return nil, err
	}
	return p.authority.pem, nil
}

// resolve finds and checks the addresses that a name has for a rule. One that may not be
// dialled refuses the name: which of several is used would be chance.
func (p *Pass) resolve(ctx context.Context, r Rule, network, name string) ([]netip.Addr, Event) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	found, err := p.lookup(ctx, network, name)
	if err != nil || len(found) == 0 {
		why := "the name has no address"
		if !strings.Contains(name, ".") {
			why = "a name without a dot is not looked for in this machine's files and domains; write the whole name, or its address"
		}
		if network == "ip4" && p.hasIPv6(ctx, name) {
			why = OnlyIPv6
		}
		return nil, Event{Verdict: NotResolved, Detail: why}
	}
	if len(found) > mostAddresses {
		return nil, Event{Verdict: TooMany, Detail: "the name has too many addresses"}
	}
	out := make([]netip.Addr, 0, len(found))
	last := host.Class("")
	for _, a := range found {
		a = a.Unmap()
		class, open := r.Open(a)
		if !open {
			return nil, Event{Verdict: AddressNotOpen, Class: string(class), Detail: a.String()}
		}
		out, last = append(out, a), class
	}
	return out, Event{Verdict: Allowed, Class: string(last)}
}

// lookup asks for a name as it is, not below a domain of this machine. Whoever asks for
// localhost means this machine (RFC 6761), whatever a server says of it.
func (p *Pass) lookup(ctx context.Context, network, name string) ([]netip.Addr, error) {
	if name == "localhost" {
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}, nil
	}
	return p.broker.o.Resolver.LookupNetIP(ctx, network, name+".")
}

// hasIPv6 reports whether a name that has no address of IPv4 has one of IPv6, for whoever
// asks why it was not reached.
func (p *Pass) hasIPv6(ctx context.Context, name string) bool {
	found, err := p.broker.o.Resolver.LookupNetIP(ctx, "ip6", name+".")
	return err == nil && len(found) > 0
}

// answerOf is the addresses of a name for a rule. Where they are to stay the same for the
// time of a run, the name is asked about once.
func (p *Pass) answerOf(ctx context.Context, r Rule, network string, h host.Host) ([]netip.Addr, Event) {
	p.mu.Lock()
	had := p.steady[h]
	p.mu.Unlock()
	if r.Steady && had != nil {
		return had, Event{Verdict: Allowed, Class: string(host.Classify(had[0])), Detail: "as it was answered before"}
	}
	found, e := p.resolve(ctx, r, network, h.String())
	if e.Verdict == Allowed && !p.pin(h, found) {
		e.Verdict = TooMany
	}
	return found, e
}

// pin remembers answers, so that a connection to one of them is to the name.
func (p *Pass) pin(h host.Host, found []netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.steady[h] == nil {
		p.steady[h] = found
	}
	for _, a := range found {
		if slices.Contains(p.pins[a], h) {
			continue
		}
		if p.pairs >= mostPins {
			return false
		}
		p.pairs++
		p.pins[a] = append(p.pins[a], h)
	}
	return true
}

// pinned are the names that an address was the answer for.
func (p *Pass) pinned(a netip.Addr) []host.Host {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.pins[a])
}

// enter takes up a connection, while there may be more; else it says why not. The last
// quarter of what all runs may have together is for those that have few, so that some
// which take all they can leave something to the rest.
func (p *Pass) enter() Verdict {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return TooMuch
	}
	most := int64(p.broker.o.Most)
	if p.open >= few {
		most -= most / 4
	}
	if p.open >= p.broker.o.Limits.Connections {
		return TooMany
	}
	if p.broker.open.Add(1) > most {
		p.broker.open.Add(-1)
		return TooMany
	}
	p.open++
	return Allowed
}

func (p *Pass) leave() {
	p.broker.open.Add(-1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
}

// take is how many bytes of n may go through now; what was not needed is given back.
func (p *Pass) take(n int64) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	may := max(0, min(n, p.broker.o.Limits.Bytes-p.bytes))
	p.over = p.over || may == 0 && n > 0
	p.bytes += may
	return may
}

// takeAll is where more is needed at once than there is: nothing goes through any more.
func (p *Pass) takeAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
}

func (p *Pass) giveBack(n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes -= n
}

// usedUp reports whether nothing more may go through.
func (p *Pass) usedUp() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.over
}

// mayLog takes what one line of the log needs. Where there is none left, the run is refused
// whatever it wants, which once a second is a line itself: a box does not fill the disk.
func (p *Pass) mayLog() bool {
	p.mu.Lock()
	now := time.Now()
	p.tokens = min(logBurst, p.tokens+now.Sub(p.filled).Seconds()*logRate)
	p.filled = now
	ok := p.tokens >= 1
	tell := !ok && now.Sub(p.told) >= time.Second
	if ok {
		p.tokens--
	}
	if tell {
		p.told = now
	}
	p.mu.Unlock()
	if tell {
		p.say(Event{At: now, Kind: "connect", Host: "every host", Verdict: TooMany, Detail: "more than can be logged"})
	}
	return ok
}

// say logs what came of something.
func (p *Pass) say(e Event) {
	e.Call, e.Agent = p.run.Call, p.run.Agent
	p.run.Log(e.Kept())
}
