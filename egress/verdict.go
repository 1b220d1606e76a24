package egress

import (
	"net/netip"
	"strings"
	"time"
)

// A Verdict is the named reason why something was let through or not. It is what people
// read in the log and the label of the metric, so the values are part of the contract.
type Verdict string

const (
	Allowed Verdict = "allowed"

	HostNotAllowed Verdict = "host_not_allowed" // no rule names it
	AddressNotOpen Verdict = "address_not_open" // its address is not public, and the rule does not say the range
	OwnLoopback    Verdict = "own_loopback"     // it is this machine's loopback, and a box has one of its own
	NobodysAddress Verdict = "nobodys_address"  // it is not an answer that this run got
	NoName         Verdict = "no_name"          // TLS that names nobody
	HiddenName     Verdict = "hidden_name"      // TLS whose name is encrypted
	OtherName      Verdict = "other_name"       // TLS or HTTP that names somebody else than was dialled
	NotSeen        Verdict = "not_seen"         // what it says cannot be seen, and would count as write
	MethodRefused  Verdict = "method_refused"   // it changes something there
	Malformed      Verdict = "malformed"        // not what it claims to be
	TooMany        Verdict = "too_many"         // connections of one run
	TooMuch        Verdict = "too_much"         // bytes of one run
	NotResolved    Verdict = "not_resolved"     // there is no such name, or nobody answers
	NotConnected   Verdict = "not_connected"    // the other side does not answer
	NotSigned      Verdict = "not_signed"       // the agent of ssh does not do that
)

// Unmet says whether the rule of an event is one that is missing, and would allow it.
func (v Verdict) Unmet() bool {
	return v == HostNotAllowed || v == NobodysAddress || v == AddressNotOpen
}

// OnlyIPv6 is the detail of a name that was not resolved since its rule does not have IPv6.
const OnlyIPv6 = "the name has addresses of IPv6 alone"

// Verdicts are all there are.
func Verdicts() []Verdict {
	return []Verdict{Allowed, HostNotAllowed, AddressNotOpen, OwnLoopback, NobodysAddress, NoName, HiddenName, OtherName, NotSeen, MethodRefused, Malformed, TooMany, TooMuch, NotResolved, NotConnected, NotSigned}
}

// An Event is one connection or one question, when it is over.
type Event struct {
	At      time.Time      `json:"at"`
	Call    string         `json:"call"`
	Agent   string         `json:"agent"`
	Kind    string         `json:"kind"` // connect, dns, http or ssh: what the agent of ssh was asked for
	Host    string         `json:"host"` // host:port, or the name that was asked about
	Address netip.AddrPort `json:"address,omitzero"`
	Verdict Verdict        `json:"verdict"`
	Class   string         `json:"address_class,omitempty"`
	Rule    string         `json:"rule,omitempty"` // by which, or, where the verdict is Unmet, which would allow it
	Detail  string         `json:"detail,omitempty"`
	Sent    int64          `json:"sent"`
	Got     int64          `json:"received"`
	Took    time.Duration  `json:"took"`
}

// kept is how long a text of the log may be, in bytes: programs choose some of them, names
// of hosts for example.
const kept = 290

// Kept is the event as a log keeps it.
func (e Event) Kept() Event {
	for _, text := range []*string{&e.Host, &e.Rule, &e.Detail} {
		if len(*text) > kept {
			*text = strings.ToValidUTF8((*text)[:kept], "") + "…"
		}
	}
	return e
}
