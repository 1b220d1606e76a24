package egress

import (
	"net/netip"
	"slices"
	"time"

	"github.com/writ-run/writ/host"
)

// byProxy is what to do about a loopback: a program that connects to one has reached that of
// its box before anybody outside hears of it, and only whom it asks for is told to a proxy.
var byProxy = "loopback is the box's own; the proxy http://" + ProxyAddress.String() + " leads to this machine's, where a range opens it"

// looped says that a name leads to this machine's loopback: the answer would be taken for
// the box's own.
func looped(found []netip.Addr, e Event) Event {
	if e.Verdict == Allowed && slices.ContainsFunc(found, func(a netip.Addr) bool { return host.Classify(a) == host.Loopback }) {
		e.Verdict, e.Detail = OwnLoopback, byProxy
	}
	return e
}

// loopbacks says of each rule for a loopback by which nobody came that it needs the proxy:
// what was tried without it is not seen.
func (p *Pass) loopbacks() {
	for _, r := range p.run.Rules {
		p.mu.Lock()
		came := slices.ContainsFunc(p.proxied, r.Host.Match)
		p.mu.Unlock()
		if r.Host.Loopback() && !came {
			p.say(Event{At: time.Now(), Kind: "connect", Host: r.Host.String(), Verdict: OwnLoopback, Rule: r.At, Class: string(host.Loopback), Detail: byProxy})
		}
	}
}

// asksProxy remembers whom a program asked the proxy for, where that is the way to a loopback.
func (p *Pass) asksProxy(to host.Endpoint, at netip.Addr) {
	if host.Classify(at) != host.Loopback {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.proxied) < few && !slices.Contains(p.proxied, to) {
		p.proxied = append(p.proxied, to)
	}
}
