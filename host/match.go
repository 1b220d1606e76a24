package host

import (
	"strings"

	"golang.org/x/net/publicsuffix"
)

// Patterns is an allowlist.
type Patterns []Pattern

// Match reports whether one of the patterns matches. An empty list matches
// nothing; that it meant "everything" was CVE-2025-66479.
func (ps Patterns) Match(e Endpoint) bool {
	for _, p := range ps {
		if p.Match(e) {
			return true
		}
	}
	return false
}

// Match reports whether the pattern allows the endpoint. Ports must be equal.
// Names match names and ranges match addresses, never one the other: what a name
// resolves to is for egress to check.
//
// "*.host" matches names of one or more labels more than host. It stops where
// the domain ends in the sense of ownership: *.amazonaws.com does not match
// b.s3.amazonaws.com, since s3.amazonaws.com is a public suffix, and it matches
// no special name unless host is itself special. "*" matches names that are not
// special and addresses that are public. A range matches what is in it, public or
// not, but never an IPv4-mapped address, which is dialled as IPv4.
func (p Pattern) Match(e Endpoint) bool {
	if e.Port != p.port {
		return false
	}
	switch p.kind {
	case exact:
		return e.Host == p.host
	case below:
		return isBelow(e.Host.name, p.host.name)
	case within:
		return !e.Host.addr.Is4In6() && p.prefix.Contains(e.Host.addr)
	case public:
		return isPublic(e.Host)
	}
	return false
}

func isPublic(h Host) bool {
	if addr, ok := h.Addr(); ok {
		return Classify(addr).Public()
	}
	_, special := SpecialName(h)
	return !special
}

// isBelow looks at whole labels, so that notexample.com and
// example.com.evil.com are not below example.com.
func isBelow(name, domain string) bool {
	if !strings.HasSuffix(name, domain) || len(name) < len(domain)+2 || name[len(name)-len(domain)-1] != '.' {
		return false
	}
	if suffix, _ := publicsuffix.PublicSuffix(name); len(suffix) > len(domain) {
		return false
	}
	return isPublic(Host{name: name}) || !isPublic(Host{name: domain})
}

// Contains reports whether p is provably at least as wide as q: every endpoint
// that q matches, p matches. False means narrower or not proved; a caller that
// looks for widening treats both as wider. The zero Pattern contains nothing and
// is contained in nothing.
func (p Pattern) Contains(q Pattern) bool {
	if p.kind == 0 || q.kind == 0 || p.port != q.port {
		return false
	}
	switch q.kind {
	case exact:
		return p.Match(Endpoint{Host: q.host, Port: q.port})
	case below:
		switch p.kind {
		case below:
			return p.host == q.host || isBelow(q.host.name, p.host.name)
		case public:
			return isPublic(q.host)
		}
	case within:
		switch p.kind {
		case exact:
			return q.prefix.IsSingleIP() && q.prefix.Addr() == p.host.addr
		case within:
			return p.prefix.Bits() <= q.prefix.Bits() && p.prefix.Contains(q.prefix.Addr())
		case public:
			return publicRange(q.prefix)
		}
	case public:
		return p.kind == public
	}
	return false
}
