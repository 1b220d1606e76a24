package host

import (
	"net/netip"
	"strconv"
	"strings"

	"golang.org/x/net/publicsuffix"
)

// A Pattern is one line of an allowlist: an exact host, the names below a domain,
// a range of addresses, or any public host; always with exactly one port. The
// zero Pattern matches nothing. Patterns are comparable with ==.
type Pattern struct {
	kind   kind
	host   Host         // exact, below
	prefix netip.Prefix // within
	port   uint16
}

type kind uint8

const (
	_      kind = iota // the zero Pattern
	exact              // host:port
	below              // *.host:port
	within             // CIDR
	public             // *
)

// ParsePattern reads one of
//
//	example.com      192.0.2.1:8080   [2001:db8::1]:443
//	*.example.com    *.example.com:8443
//	10.0.0.0/8       10.0.0.0/8:8080  [2001:db8::/32]:443
//	*                *:8443
//
// No port means 443; there is no pattern for every port. A range is written with
// its host bits zero, and an IPv6 range in brackets. "*." takes a domain that one
// party holds: not a single label, not a public suffix of either section of the
// list (*.com, *.github.io), not the parent of suffixes that are wildcards there.
// IPv4-mapped addresses are refused, because the address dialled is the IPv4 one.
func ParsePattern(s string) (Pattern, error) {
	switch {
	case s == "":
		return Pattern{}, fail("pattern", s, "is empty; write host:port, *.host:port, a CIDR range or *")
	case s == "*" || strings.HasPrefix(s, "*:"):
		return parsePublic(s)
	case strings.HasPrefix(s, "*."):
		return parseBelow(s)
	case strings.Contains(s, "://"):
		return Pattern{}, fail("pattern", s, "is a URL; write its host alone, such as example.com or example.com:8080")
	case strings.Contains(s, "/"):
		return parseWithin(s)
	}
	e, err := parseEndpoint(s, DefaultPort)
	if err != nil {
		return Pattern{}, err
	}
	if e.Host.addr.Is4In6() {
		return Pattern{}, fail("pattern", s, "is an IPv4-mapped address; write the IPv4 address")
	}
	return Pattern{kind: exact, host: e.Host, port: e.Port}, nil
}

// IPv6 reports whether it is of addresses of IPv6, and of nothing else.
func (p Pattern) IPv6() bool {
	a, literal := p.host.Addr()
	return p.kind == within && p.prefix.Addr().Is6() || p.kind == exact && literal && a.Is6()
}

// Loopback reports whether what it matches is this machine itself, by its name or its
// addresses.
func (p Pattern) Loopback() bool {
	name, _ := p.host.Name()
	switch p.kind {
	case exact, below:
		return under(name, "localhost") || Classify(p.host.addr) == Loopback
	case within:
		return Classify(p.prefix.Addr()) == Loopback
	}
	return false
}

func parsePublic(s string) (Pattern, error) {
	port, err := portOr443(s[1:])
	if err != nil {
		return Pattern{}, err
	}
	return Pattern{kind: public, port: port}, nil
}

func parseBelow(s string) (Pattern, error) {
	e, err := parseEndpoint(s[2:], DefaultPort)
	if err != nil {
		return Pattern{}, err
	}
	name, ok := e.Host.Name()
	switch {
	case !ok:
		return Pattern{}, fail("pattern", s, `has an address after "*."; write a CIDR range, such as 10.0.0.0/8`)
	case !strings.Contains(name, "."):
		return Pattern{}, fail("pattern", s, `has a single label after "*."; name a domain, such as *.example.com`)
	case isSuffix(name) || isSuffix("x."+name):
		return Pattern{}, fail("pattern", s, `has a public suffix after "*."; anyone can register below it, so name one domain, such as *.example.com`)
	}
	return Pattern{kind: below, host: e.Host, port: e.Port}, nil
}

// isSuffix asks both sections of the list: whoever may register bucket.s3.amazonaws.com
// is as unknown as whoever may register example.com.
func isSuffix(name string) bool {
	suffix, _ := publicsuffix.PublicSuffix(name)
	return suffix == name
}

func parseWithin(s string) (Pattern, error) {
	const say = "is not a CIDR range; write one such as 10.0.0.0/8:8080 or [2001:db8::/32]:443"
	inner, rest, bracketed := s, "", strings.HasPrefix(s, "[")
	if bracketed {
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return Pattern{}, fail("pattern", s, say)
		}
		inner, rest = s[1:end], s[end+1:]
	} else if colon := strings.LastIndexByte(s, ':'); colon > strings.IndexByte(s, '/') {
		inner, rest = s[:colon], s[colon:]
	}
	prefix, err := netip.ParsePrefix(inner)
	name, _, _ := strings.Cut(s, "/")
	switch e, notHost := parseEndpoint(name, DefaultPort); {
	case err != nil && notHost == nil && !e.Host.addr.IsValid():
		return Pattern{}, fail("pattern", s, "has a path, and a host is reached whole; write "+e.Host.String())
	case err != nil || prefix.Addr().Is4() && bracketed || rest != "" && rest[0] != ':':
		return Pattern{}, fail("pattern", s, say)
	case prefix.Addr().Is4In6():
		return Pattern{}, fail("pattern", s, "is an IPv4-mapped range; write the IPv4 range")
	case prefix != prefix.Masked():
		return Pattern{}, fail("pattern", s, "has host bits set; write "+prefix.Masked().String())
	case prefix.Addr().Is6() && !bracketed:
		return Pattern{}, fail("pattern", s, "is an IPv6 range without brackets; write it as [2001:db8::/32]:443")
	}
	port, err := portOr443(rest)
	if err != nil {
		return Pattern{}, err
	}
	return Pattern{kind: within, prefix: prefix, port: port}, nil
}

// portOr443 reads ":port" or nothing.
func portOr443(s string) (uint16, error) {
	if s == "" {
		return DefaultPort, nil
	}
	return parsePort(s[1:])
}

// Port is the one that the pattern is about; 0 of the zero Pattern.
func (p Pattern) Port() uint16 { return p.port }

// String is the normal form, always with the port; ParsePattern reads it back to
// an equal Pattern. It is empty for the zero Pattern.
func (p Pattern) String() string {
	port := ":" + strconv.Itoa(int(p.port))
	switch p.kind {
	case exact:
		return withPort(p.host, p.port)
	case below:
		return "*." + p.host.name + port
	case within:
		if p.prefix.Addr().Is6() {
			return "[" + p.prefix.String() + "]" + port
		}
		return p.prefix.String() + port
	case public:
		return "*" + port
	}
	return ""
}

// MarshalText is the normal form, so that a digest over a pattern covers it.
func (p Pattern) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what ParsePattern reads.
func (p *Pattern) UnmarshalText(b []byte) error {
	v, err := ParsePattern(string(b))
	if err == nil {
		*p = v
	}
	return err
}
