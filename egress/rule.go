package egress

import (
	"net/netip"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
)

// A Rule is one line of what may be reached, or of what is said of hosts. The zero Rule
// matches nothing.
type Rule struct {
	Host   host.Pattern
	Class  writ.Class     // what talking to it counts as where nobody sees what is said; write unless said
	Ranges []netip.Prefix // which addresses it may have that are not public
	Reads  bool           // nothing but requests that only read goes there, whatever the run may
	IPv6   bool           // its addresses of IPv6 are told, too
	Blind  bool           // TLS that names nobody, or hides whom, and what cannot be told from it, is let through
	Inner  bool           // its addresses may be private ones, by their class
	Steady bool           // its name is asked about once: the addresses of the first answer are all that it has for the run
	Via    Via            // who speaks to it for the box; nil: the box does
	Over   Over           // by whom requests to it are made; then nothing but TLS goes there, and it is looked into. Nil: by the box
	At     string         // where it is written
}

// seen says whether TLS to it is looked into.
func (r Rule) seen() bool { return r.Reads || r.Over != nil }

// inner are the classes of addresses that servers of an organisation have. Those of this
// machine, of its link and of the cloud around it are none of them.
var inner = []host.Class{host.Private, host.CGNAT, host.UniqueLocal}

// Rules is an allowlist. An empty one allows nothing.
type Rules []Rule

// For is the rule that is about an endpoint: the first that names it.
func (rs Rules) For(e host.Endpoint) (Rule, bool) {
	for _, r := range rs {
		if r.Host.Match(e) {
			return r, true
		}
	}
	return Rule{}, false
}

// ports are all that the rules name.
func (rs Rules) ports() []uint16 {
	var out []uint16
	for _, r := range rs {
		if !slices.Contains(out, r.Host.Port()) {
			out = append(out, r.Host.Port())
		}
	}
	return out
}

// Open says whether an address may be dialled, by its class.
func (r Rule) Open(a netip.Addr) (host.Class, bool) {
	class := host.Classify(a)
	return class, class.Public() || r.Inner && slices.Contains(inner, class) || slices.ContainsFunc(r.Ranges, func(p netip.Prefix) bool { return p.Contains(a) })
}
