package egress

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/writ-run/writ/host"
)

// needed is what an event says of rules: the one that named the host or, of an address that
// is not open, what would open it by each of the ports that the host may be reached at.
func (p *Pass) needed(e Event, at string, h host.Host, ports ...uint16) string {
	a, err := netip.ParseAddr(e.Detail)
	if e.Verdict != AddressNotOpen || err != nil {
		return at
	}
	var out []string
	for _, port := range ports {
		to := host.Endpoint{Host: h, Port: port}
		rule, ok := p.run.rule(to)
		if _, open := rule.Open(a); !ok || open {
			continue
		}
		if text := p.opens(to, a); text != "" && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, ", ")
}

func (p *Pass) opens(to host.Endpoint, a netip.Addr) string {
	if p.run.Opens == nil {
		return ""
	}
	return p.run.Opens(to, a)
}

// stranger says why a connection is to nobody, and which rule would change that.
func (p *Pass) stranger(to netip.AddrPort) Event {
	a := to.Addr()
	if names := p.pinned(a); len(names) > 0 {
		e := host.Endpoint{Host: names[0], Port: to.Port()}
		if _, named := p.run.rule(e); !named {
			return Event{Verdict: HostNotAllowed, Rule: e.String()}
		}
		return p.notOpen(e, a)
	}
	literal, err := host.FromAddr(a)
	if err != nil {
		return Event{Verdict: NobodysAddress}
	}
	e := host.Endpoint{Host: literal, Port: to.Port()}
	if _, named := p.run.rule(e); named {
		return p.notOpen(e, a)
	}
	rule := e.String()
	if open := p.opens(e, a); open != "" && !host.Classify(a).Public() {
		rule += " with " + open
	}
	return Event{Verdict: NobodysAddress, Rule: rule}
}

func (p *Pass) notOpen(e host.Endpoint, a netip.Addr) Event {
	return Event{Verdict: AddressNotOpen, Rule: p.opens(e, a), Class: string(host.Classify(a)), Detail: a.String()}
}
