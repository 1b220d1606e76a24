package host

// Class is the named reason why an address is or is not reachable. It is what
// people read in a refusal and the label of the metric, so the values are part of
// the contract. The zero Class is not public.
type Class string

const (
	Public  Class = "public"  // the only class that needs no rule for its range
	Invalid Class = "invalid" // the zero netip.Addr

	Unspecified   Class = "unspecified"   // 0.0.0.0 and ::, which many kernels dial as loopback
	ThisNetwork   Class = "this_network"  // 0.0.0.0/8
	Loopback      Class = "loopback"      // 127.0.0.0/8, ::1
	Private       Class = "private"       // RFC 1918
	CGNAT         Class = "cgnat"         // 100.64.0.0/10
	LinkLocal     Class = "link_local"    // 169.254.0.0/16, fe80::/10
	UniqueLocal   Class = "unique_local"  // fc00::/7
	SiteLocal     Class = "site_local"    // fec0::/10
	Metadata      Class = "metadata"      // the cloud's credential and configuration services
	Protocol      Class = "protocol"      // 192.0.0.0/24, 2001::/23
	Documentation Class = "documentation" // RFC 5737, RFC 3849, RFC 9637
	Benchmark     Class = "benchmark"     // 198.18.0.0/15, 2001:2::/48
	Multicast     Class = "multicast"     // 224.0.0.0/4, ff00::/8
	Broadcast     Class = "broadcast"     // 255.255.255.255
	Reserved      Class = "reserved"      // 240.0.0.0/4, all beyond 2000::/3, and what IANA lists without a name here
	Discard       Class = "discard"       // 100::/64
	Orchid        Class = "orchid"        // 2001:10::/28, 2001:20::/28: identities, not locations
	SRv6          Class = "srv6"          // 5f00::/16
	Zoned         Class = "zoned"         // any address with a zone id

	// Addresses that carry an IPv4 address to somewhere else: the filter sees one
	// address and the packet reaches another.

	Mapped     Class = "mapped"      // ::ffff:0:0/96
	Compatible Class = "compatible"  // ::/96
	Translated Class = "translated"  // ::ffff:0:0:0/96
	NAT64      Class = "nat64"       // 64:ff9b::/96, 64:ff9b:1::/48
	SixToFour  Class = "six_to_four" // 2002::/16
	Teredo     Class = "teredo"      // 2001::/32
	ISATAP     Class = "isatap"      // interface id 0000:5efe or 0200:5efe and an IPv4 address
)

// Public reports whether the address may be dialled without a rule that says its
// range.
func (c Class) Public() bool { return c == Public }
