package divert

import (
	"bytes"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// Bounds are what a namespace can be denied besides. They are kept by rules of its own,
// which look at a packet before it is led anywhere.
type Bounds struct {
	NoNames    bool // nobody is asked about names
	NoLoopback bool // nothing in it reaches anything else in it
}

// add adds their rules, which are with both:
//
//	table inet writ-bounds {
//	  chain out {
//	    type filter hook output priority mangle;
//	    udp dport 53 drop
//	    tcp dport 53 drop
//	    ct direction reply accept (and without the two above: udp sport 53 accept)
//	    ip daddr 127.0.0.0/8 drop
//	    ip daddr 192.0.0.2 drop
//	    ip6 daddr ::1 drop
//	    meta l4proto tcp accept
//	    drop
//	  }
//	}
//
// Every address is one of the namespace's own, so that all but TCP, which is led out, would
// get from one process in it to another.
func (b Bounds) add(c *nftables.Conn) {
	if b == (Bounds{}) {
		return
	}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "writ-bounds"})
	chain := c.AddChain(&nftables.Chain{Name: "out", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityMangle})
	rule := func(e []expr.Any) { c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: e}) }
	drop, accept := &expr.Verdict{Kind: expr.VerdictDrop}, &expr.Verdict{Kind: expr.VerdictAccept}
	names := accept
	if b.NoNames {
		names = drop
	}
	rule(speaking(unix.IPPROTO_UDP, DNSPort, names))
	rule(speaking(unix.IPPROTO_TCP, DNSPort, names))
	if !b.NoLoopback {
		return
	}
	if !b.NoNames { // answers, which can come from another address than was asked: nobody else can have the port
		rule([]expr.Any{
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}},
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 2}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(DNSPort)}, accept,
		})
	}
	rule([]expr.Any{&expr.Ct{Key: expr.CtKeyDIRECTION, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{1}}, accept})
	six := netip.IPv6Loopback().As16()
	rule(of(unix.NFPROTO_IPV4, within(16, []byte{127, 0, 0, 0}, []byte{255, 0, 0, 0}, drop)))
	rule(of(unix.NFPROTO_IPV4, within(16, itself, bytes.Repeat([]byte{255}, 4), drop)))
	rule(of(unix.NFPROTO_IPV6, within(24, six[:], bytes.Repeat([]byte{255}, 16), drop)))
	rule(speaking(unix.IPPROTO_TCP, 0, accept))
	rule([]expr.Any{drop})
}

// of matches one of the two protocols, whose headers differ.
func of(protocol byte, then []expr.Any) []expr.Any {
	return append([]expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}}}, then...)
}
