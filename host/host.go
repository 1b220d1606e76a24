package host

import (
	"net/netip"
	"strings"
)

// A Host is one parsed host: a DNS name in lower-case A-labels, or an IP address
// without a zone. Hosts are comparable with ==. The zero Host names nothing and
// matches nothing.
type Host struct {
	name string
	addr netip.Addr
}

// maxInput bounds what is looked at: a name of 253 bytes in A-labels is never
// longer than this when written in Unicode.
const maxInput = 1024

// Parse reads a DNS name, an IPv4 address in four plain decimal numbers, or an
// IPv6 address, bare or in brackets.
//
// ASCII capitals are lowered and nothing else is repaired. A number in any other
// shape that some resolver takes for IPv4 (2130706433, 0177.0.0.1, 0x7f.1,
// 127.1) is an error and never a name. An IPv4-mapped address stays as it is, so
// that [Classify] can call it by its name.
func Parse(s string) (Host, error) {
	switch {
	case s == "":
		return Host{}, fail("host", s, "is empty; write a DNS name or an IP address")
	case len(s) > maxInput:
		return Host{}, fail("host", s, tooLong)
	case s[0] == '[':
		return parseBracketed(s)
	case strings.Contains(s, ":"):
		return parse6(s, s, "has a colon but is not an IPv6 address; write the host without a port")
	}
	// Cannot be IPv6 here; netip refuses leading zeros and missing parts itself.
	if addr, err := netip.ParseAddr(s); err == nil {
		return Host{addr: addr}, nil
	}
	name, err := parseName(s)
	if err != nil {
		return Host{}, err
	}
	return Host{name: name}, nil
}

// FromAddr is the host of an address that is already parsed, such as an answer
// of the resolver. It refuses the zero Addr and addresses with a zone.
func FromAddr(addr netip.Addr) (Host, error) {
	if !addr.IsValid() {
		return Host{}, fail("host", "", "is not an address; resolve the name first")
	}
	if addr.Zone() != "" {
		return Host{}, fail("host", addr.String(), hasZone)
	}
	return Host{addr: addr}, nil
}

const hasZone = "has a zone id; remove it"

// parseBracketed reads [address]. Brackets around a name or an IPv4 address are
// refused: some parsers drop them and some take them into the name.
func parseBracketed(s string) (Host, error) {
	if !strings.HasSuffix(s, "]") {
		return Host{}, fail("host", s, `starts with "[" but does not end with "]"; write an IPv6 address as [::1]`)
	}
	return parse6(s[1:len(s)-1], s, "has brackets around something that is not an IPv6 address; remove them")
}

// parse6 reads an IPv6 address; errors quote all and say problem. A zone chooses
// an interface of this machine, so a caller may not name one (%eth0, %25eth0).
func parse6(s, all, problem string) (Host, error) {
	addr, err := netip.ParseAddr(s)
	switch {
	case err == nil && addr.Zone() != "":
		return Host{}, fail("host", all, hasZone)
	case err != nil || !addr.Is6():
		return Host{}, fail("host", all, problem)
	}
	return Host{addr: addr}, nil
}

// Name is the DNS name in lower-case A-labels; false for an address and for the
// zero Host.
func (h Host) Name() (string, bool) { return h.name, h.name != "" }

// Addr is the address; false for a DNS name and for the zero Host.
func (h Host) Addr() (netip.Addr, bool) { return h.addr, h.addr.IsValid() }

// String is the normal form, IPv6 without brackets; Parse reads it back to an
// equal Host. It is empty for the zero Host.
func (h Host) String() string {
	if h.addr.IsValid() {
		return h.addr.String()
	}
	return h.name
}
