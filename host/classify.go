package host

import (
	"bytes"
	"net/netip"
)

// A block is one row of the tables below. An IPv4 base is in the first four
// bytes. The tables are constant data, laid out by the compiler; nothing writes
// to them.
type block struct {
	base  [16]byte
	bits  int
	class Class
}

// The first row that holds an address names it, so the narrow rows come first
// and metadata comes before the range it sits in.
var blocks4 = [...]block{
	{[16]byte{169, 254, 169, 254}, 32, Metadata}, // EC2, GCE, Azure, OpenStack, DigitalOcean
	{[16]byte{169, 254, 170, 2}, 32, Metadata},   // ECS task credentials
	{[16]byte{169, 254, 170, 23}, 32, Metadata},  // EKS pod identity
	{[16]byte{100, 100, 100, 200}, 32, Metadata}, // Alibaba
	{[16]byte{168, 63, 129, 16}, 32, Metadata},   // Azure wire server, in the middle of public space
	{[16]byte{192, 0, 0, 192}, 32, Metadata},     // Oracle
	{[16]byte{0, 0, 0, 0}, 32, Unspecified},
	{[16]byte{0}, 8, ThisNetwork},
	{[16]byte{10}, 8, Private},
	{[16]byte{100, 64}, 10, CGNAT},
	{[16]byte{127}, 8, Loopback},
	{[16]byte{169, 254}, 16, LinkLocal},
	{[16]byte{172, 16}, 12, Private},
	{[16]byte{192, 0, 0}, 24, Protocol},
	{[16]byte{192, 0, 2}, 24, Documentation},
	{[16]byte{192, 31, 196}, 24, Reserved}, // AS112
	{[16]byte{192, 52, 193}, 24, Reserved}, // AMT
	{[16]byte{192, 88, 99}, 24, Reserved},  // 6to4 relays, withdrawn
	{[16]byte{192, 168}, 16, Private},
	{[16]byte{192, 175, 48}, 24, Reserved}, // AS112
	{[16]byte{198, 18}, 15, Benchmark},
	{[16]byte{198, 51, 100}, 24, Documentation},
	{[16]byte{203, 0, 113}, 24, Documentation},
	{[16]byte{224}, 4, Multicast},
	{[16]byte{255, 255, 255, 255}, 32, Broadcast},
	{[16]byte{240}, 4, Reserved},
}

var blocks6 = [...]block{
	{[16]byte{0xfd, 0, 0x0e, 0xc2, 14: 0x02, 15: 0x54}, 128, Metadata}, // fd00:ec2::254, EC2
	{[16]byte{0xfd, 0, 0x0e, 0xc2, 15: 0x23}, 128, Metadata},           // fd00:ec2::23, EKS pod identity
	{[16]byte{}, 128, Unspecified},
	{[16]byte{15: 1}, 128, Loopback},
	{[16]byte{}, 96, Compatible},
	{[16]byte{10: 0xff, 11: 0xff}, 96, Mapped},
	{[16]byte{8: 0xff, 9: 0xff}, 96, Translated},
	{[16]byte{0, 0x64, 0xff, 0x9b}, 96, NAT64},
	{[16]byte{0, 0x64, 0xff, 0x9b, 0, 1}, 48, NAT64},
	{[16]byte{1}, 64, Discard},
	{[16]byte{0x20, 0x01}, 32, Teredo},
	{[16]byte{0x20, 0x01, 0, 2}, 48, Benchmark},
	{[16]byte{0x20, 0x01, 0, 3}, 32, Reserved},             // AMT
	{[16]byte{0x20, 0x01, 0, 4, 0x01, 0x12}, 48, Reserved}, // AS112
	{[16]byte{0x20, 0x01, 0, 0x10}, 28, Orchid},
	{[16]byte{0x20, 0x01, 0, 0x20}, 28, Orchid},
	{[16]byte{0x20, 0x01, 0, 0x30}, 28, Reserved}, // drone remote identification
	{[16]byte{0x20, 0x01}, 23, Protocol},
	{[16]byte{0x20, 0x01, 0x0d, 0xb8}, 32, Documentation},
	{[16]byte{0x20, 0x02}, 16, SixToFour},
	{[16]byte{0x26, 0x20, 0, 0x4f, 0x80}, 48, Reserved}, // AS112
	{[16]byte{0x3f, 0xff}, 20, Documentation},
	{[16]byte{0x5f}, 16, SRv6},
	{[16]byte{0xfc}, 7, UniqueLocal},
	{[16]byte{0xfe, 0x80}, 10, LinkLocal},
	{[16]byte{0xfe, 0xc0}, 10, SiteLocal},
	{[16]byte{0xff}, 8, Multicast},
}

// Classify names the class of an address, after the IANA special-purpose
// registries. It is a pure function: egress asks it of every answer before it
// dials that same answer (I6).
//
// Mapped and other embedding addresses are not unwrapped: whatever they carry,
// nobody needs them to reach a public host. What is not known to be global
// unicast is reserved, so a block that IANA assigns tomorrow is closed today.
func Classify(addr netip.Addr) Class {
	switch {
	case !addr.IsValid():
		return Invalid
	case addr.Zone() != "":
		return Zoned
	case addr.Is4():
		if class, ok := find(blocks4[:], bytes4(addr), 32); ok {
			return class
		}
		return Public
	}
	a := addr.As16()
	class, ok := find(blocks6[:], a, 128)
	if !ok {
		class = Reserved
		if a[0]>>5 == 1 { // 2000::/3
			class = Public
		}
	}
	// ISATAP can hide in any prefix that a host can have an interface id in.
	switch class {
	case Public, LinkLocal, UniqueLocal, SiteLocal:
		if a[8]&^2 == 0 && a[9] == 0 && a[10] == 0x5e && a[11] == 0xfe {
			return ISATAP
		}
	}
	return class
}

// publicRange reports whether every address of the range is provably public. For
// IPv6 it asks for the interface id to be fixed, since any wider range holds
// ISATAP addresses.
func publicRange(p netip.Prefix) bool {
	if p.Addr().Is4() {
		_, special := find(blocks4[:], bytes4(p.Addr()), p.Bits())
		return !special
	}
	_, special := find(blocks6[:], p.Addr().As16(), p.Bits())
	return !special && p.Bits() >= 96 && Classify(p.Addr()).Public()
}

func bytes4(addr netip.Addr) (a [16]byte) {
	four := addr.As4()
	copy(a[:], four[:])
	return a
}

// find is the first block that shares an address with the range a/bits.
func find(blocks []block, a [16]byte, bits int) (Class, bool) {
	for i := range blocks {
		b := &blocks[i]
		n := min(bits, b.bits)
		whole := n / 8
		if !bytes.Equal(a[:whole], b.base[:whole]) {
			continue
		}
		if n%8 == 0 || (a[whole]^b.base[whole])>>(8-n%8) == 0 {
			return b.class, true
		}
	}
	return "", false
}
