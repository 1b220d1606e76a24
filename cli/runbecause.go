package cli

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/host"
)

// because is what more there is to say of a refusal, and what would change it.
func (r *refusals) because(e egress.Event) string {
	switch e.Verdict {
	case egress.NobodysAddress:
		if a := e.Address.Addr(); !host.Classify(a).Public() && rangeOf(a) == "" {
			return fmt.Sprintf(" (it is %s)", host.Classify(a))
		}
		if e.Address.Port() == 443 { // by a number, TLS would be refused there, too
			return fmt.Sprintf(" (TLS is allowed to names alone: --allow-host with the host's name, and use that; for anything else --allow-host %s)", Visible(e.Rule))
		}
		return fmt.Sprintf(" (--allow-host %s would allow it)", Visible(e.Rule))
	case egress.HostNotAllowed:
		if e.Kind == "dns" && r.signsIn() {
			return fmt.Sprintf(" (--ssh USER@%s would allow signing in there; %s %[1]s port 443 of it, %[1]s:PORT another)", Visible(e.Rule), r.flagFor(e.Rule+":443"))
		}
		if e.Kind == "dns" {
			return fmt.Sprintf(" (%s %s would allow port 443 of it; %[2]s:PORT another)", r.flagFor(e.Rule+":443"), Visible(e.Rule))
		}
		if strings.HasSuffix(e.Rule, ":22") || r.signsIn() {
			return fmt.Sprintf(" (--ssh USER@%s would allow it, and signing in there by your own agent of ssh; --allow-host %s no more than to reach it)", Visible(strings.TrimSuffix(e.Rule, ":22")), Visible(e.Rule))
		}
		return fmt.Sprintf(" (%s %s would allow it)", r.flagFor(e.Rule), Visible(e.Rule))
	case egress.AddressNotOpen:
		return notOpen(e)
	case egress.MethodRefused:
		if strings.HasPrefix(e.Rule, "--read-host") {
			return fmt.Sprintf(" (%s; --allow-host %s would let it change something)", Visible(e.Detail), Visible(e.Host))
		}
	case egress.NoName:
		if to, err := host.ParseEndpoint(e.Host); err == nil {
			if _, literal := to.Host.Addr(); literal {
				return " (TLS to an address names nobody; allow the host's name, and use that)"
			}
		}
		return " (TLS has to name the host)"
	}
	switch e.Detail {
	case "":
		return ""
	case egress.OnlyIPv6:
		return " (" + e.Detail + "; --ipv6 would reach it)"
	}
	return " (" + Visible(e.Detail) + ")"
}

// signsIn reports whether a person named servers of ssh: then others are probably that, too.
func (r *refusals) signsIn() bool {
	return slices.ContainsFunc(r.rules, func(had egress.Rule) bool { return strings.HasPrefix(had.At, "--ssh ") })
}

// flagFor is the flag to add a host by: that by which it was named with another port.
func (r *refusals) flagFor(rule string) string {
	to, err := host.ParseEndpoint(rule)
	if err != nil {
		return "--allow-host"
	}
	for _, had := range r.rules {
		if had.Host.Match(host.Endpoint{Host: to.Host, Port: had.Host.Port()}) {
			if had.Reads {
				return "--read-host"
			}
			break
		}
	}
	return "--allow-host"
}

func notOpen(e egress.Event) string {
	text := fmt.Sprintf("its address %s is %s", Visible(e.Detail), e.Class)
	if e.Rule != "" {
		text += "; " + e.Rule + " would allow it"
	}
	return " (" + text + ")"
}

// offered are the classes of addresses that servers of one's own have. To open another,
// such as this machine's own or the cloud's, is for whoever knows why without being told.
var offered = []host.Class{host.Private, host.CGNAT, host.UniqueLocal, host.SiteLocal, host.Benchmark, host.Documentation}

// opensRange is what a person adds to let a host have an address.
func opensRange(_ host.Endpoint, a netip.Addr) string { return rangeOf(a) }

// rangeOf is the flag that opens an address; empty: it is not one to offer.
func rangeOf(a netip.Addr) string {
	if !slices.Contains(offered, host.Classify(a)) {
		return ""
	}
	return "--allow-range " + netip.PrefixFrom(a, a.BitLen()).String()
}
