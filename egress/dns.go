package egress

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/miekg/dns"
	"github.com/writ-run/writ/host"
)

// answerFor is how long an answer may be remembered in a box; the pin lasts as long as
// the run.
const answerFor = 60

// answer answers one question of a box. Names that no rule has do not exist, whatever is
// asked of them: not even that somebody asked gets out. Of those that do, only addresses
// are told.
func (p *Pass) answer(ctx context.Context, q *dns.Msg) *dns.Msg {
	m := new(dns.Msg)
	m.SetReply(q)
	m.RecursionAvailable = true
	at, text := time.Now(), asksFor(q)
	say := func(e Event) { e.At, e.Kind, e.Host, e.Took = at, "dns", text, time.Since(at); p.say(e) }
	if q.Opcode != dns.OpcodeQuery || len(q.Question) != 1 || q.Question[0].Qclass != dns.ClassINET {
		say(Event{Verdict: Malformed, Detail: "it is not one question about a name of the internet"})
		return m.SetRcode(q, dns.RcodeRefused)
	}
	ask := q.Question[0]
	h, err := host.Parse(text)
	if _, isName := h.Name(); err != nil || !isName {
		say(Event{Verdict: Malformed})
		return m.SetRcode(q, dns.RcodeNameError)
	}
	rule, ok := p.ruleFor(h)
	if !ok {
		say(Event{Verdict: HostNotAllowed, Rule: h.String()}) // which port it wants is not known yet
		return m.SetRcode(q, dns.RcodeNameError)
	}
	network := "ip4"
	if rule.IPv6 {
		network = "ip"
	}
	if ask.Qtype != dns.TypeA && (ask.Qtype != dns.TypeAAAA || !rule.IPv6) {
		if ask.Qtype != dns.TypeAAAA { // which whoever asks for addresses asks as well
			say(Event{Verdict: Allowed, Rule: rule.At, Detail: "of a name only its addresses are told, so nobody was asked"})
		}
		return m // it exists, and has nothing of that kind
	}
	found, e := p.answerOf(ctx, rule, network, h)
	e = looped(found, e)
	e.Rule = p.needed(e, rule.At, h, p.ports...)
	say(e)
	switch e.Verdict {
	case Allowed:
		m.Answer = records(ask, found)
		return m
	case NotResolved:
		return m.SetRcode(q, dns.RcodeServerFailure)
	}
	return m.SetRcode(q, dns.RcodeNameError)
}

// asksFor is the name that a question is about, or the first of several.
func asksFor(q *dns.Msg) string {
	if len(q.Question) == 0 {
		return ""
	}
	return strings.ToLower(strings.TrimSuffix(q.Question[0].Name, "."))
}

// records are the addresses of the kind that was asked for.
func records(ask dns.Question, found []netip.Addr) []dns.RR {
	out := make([]dns.RR, 0, len(found))
	for _, a := range found {
		head := dns.RR_Header{Name: ask.Name, Rrtype: ask.Qtype, Class: dns.ClassINET, Ttl: answerFor}
		switch {
		case a.Is4() && ask.Qtype == dns.TypeA:
			out = append(out, &dns.A{Hdr: head, A: net.IP(a.AsSlice())})
		case a.Is6() && ask.Qtype == dns.TypeAAAA:
			out = append(out, &dns.AAAA{Hdr: head, AAAA: net.IP(a.AsSlice())})
		}
	}
	return out
}

// ruleFor is a rule that names a host, by whichever port.
func (p *Pass) ruleFor(h host.Host) (Rule, bool) {
	for _, port := range p.ports {
		if r, ok := p.run.rule(host.Endpoint{Host: h, Port: port}); ok {
			return r, true
		}
	}
	return Rule{}, false
}
