package divert

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The ports of the two sockets within a namespace. Connecting to them by these numbers
// leads to where a connection to anything else that nobody allowed does.
const (
	TCPPort = 1
	DNSPort = 53
)

// Sockets are what has to be opened in a namespace, not bound to anything yet.
type Sockets struct {
	Route  int // netlink, NETLINK_ROUTE
	Filter int // netlink, NETLINK_NETFILTER
	Listening
}

// Close closes the ones that are not needed any more when they are set.
func (s Sockets) Close() {
	unix.Close(s.Route)
	unix.Close(s.Filter)
}

// Set leads TCP and DNS of the namespace to the sockets, which are bound and listen
// afterwards. The netlink sockets are not needed any more then.
func (s Sockets) Set(b Bounds) error {
	any := &unix.SockaddrInet4{Port: TCPPort}
	names := &unix.SockaddrInet4{Port: DNSPort} // whichever address of its own a box asks
	if err := errors.Join(
		step("bind the socket for connections", unix.Bind(s.TCP, any)), step("listen", unix.Listen(s.TCP, backlog)),
		step("bind the socket for names", unix.Bind(s.DNS, names)),
		step("bind the stream for names", unix.Bind(s.DNSTCP, names)), step("listen", unix.Listen(s.DNSTCP, 16)),
	); err != nil {
		return err
	}
	if err := s.set6(); err != nil {
		return err
	}
	rules, err := rules(s.TCP6 >= 0, b)
	if err != nil {
		return err
	}
	return errors.Join(step("route", send(s.Route, append(everywhere(unix.AF_INET), own()...), 2)), step("redirect", send(s.Filter, rules.batch, rules.asked)))
}

// set6 does for IPv6 what is to be done before the rules.
func (s Sockets) set6() error {
	if s.TCP6 < 0 {
		return nil
	}
	return errors.Join(
		step("keep to IPv6", unix.SetsockoptInt(s.TCP6, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1)), step("keep to IPv6", unix.SetsockoptInt(s.DNS6, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1)),
		step("bind the socket for connections", unix.Bind(s.TCP6, &unix.SockaddrInet6{Port: TCPPort})), step("listen", unix.Listen(s.TCP6, backlog)),
		step("bind the socket for names", unix.Bind(s.DNS6, &unix.SockaddrInet6{Port: DNSPort})),
		step("route", send(s.Route, everywhere(unix.AF_INET6), 1)),
	)
}

const backlog = 128

func step(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// everywhere makes every address one of the namespace's own, which is what gets a packet
// to the rules below: there would be no way to it otherwise.
//
// Connections by it send as fast as the other side takes it. Both ends are on this machine,
// and what is usual on it may find out by timers how much a way bears (BBR), which takes
// half as long again as handing it over. Every kernel has this one.
func everywhere(family byte) []byte {
	body := make([]byte, unix.SizeofRtMsg)
	body[0] = family              // the destination has no bits: any
	body[4] = unix.RT_TABLE_LOCAL // table
	body[5] = unix.RTPROT_BOOT    // protocol
	body[6] = unix.RT_SCOPE_HOST  // scope
	body[7] = unix.RTN_LOCAL      // type
	return made(unix.RTM_NEWROUTE, body, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(unix.RTA_OIF, loopback)
		ae.Nested(unix.RTA_METRICS, func(of *netlink.AttributeEncoder) error { of.String(unix.RTAX_CC_ALGO, "reno"); return nil })
	})
}

// itself is an address that is nobody's (RFC 7335), and the namespace's own.
var itself = []byte{192, 0, 0, 2}

// own gives the namespace an address beside 127.0.0.1. Whoever asks for the addresses of a
// name "as far as this machine has such" (AI_ADDRCONFIG) is told of none otherwise.
func own() []byte {
	body := make([]byte, unix.SizeofIfAddrmsg)
	body[0] = unix.AF_INET // family
	body[1] = 32           // bits
	body[4] = loopback     // index; the scope is everywhere
	return made(unix.RTM_NEWADDR, body, func(ae *netlink.AttributeEncoder) {
		ae.Bytes(unix.IFA_LOCAL, itself)
		ae.Bytes(unix.IFA_ADDRESS, itself)
	})
}

// made is a message that makes something that is not there.
func made(kind netlink.HeaderType, body []byte, with func(*netlink.AttributeEncoder)) []byte {
	ae := netlink.NewAttributeEncoder()
	with(ae)
	attrs, _ := ae.Encode() // numbers and bytes always encode
	m := netlink.Message{Header: netlink.Header{
		Length: uint32(unix.NLMSG_HDRLEN + len(body) + len(attrs)), Type: kind, Sequence: 1,
		Flags: netlink.Request | netlink.Acknowledge | netlink.Create | netlink.Excl,
	}, Data: append(body, attrs...)}
	b, _ := m.MarshalBinary() // its length was set just now
	return b
}

const loopback = 1 // the index of the first device of every namespace

type composed struct {
	batch []byte
	asked int // acknowledgements
}

// rules are the same for every box, and put together once:
//
//	table ip writ {
//	  chain out {
//	    type nat hook output priority dstnat;
//	    ip daddr 127.0.0.0/8 return
//	    ip daddr 192.0.0.2 return
//	    meta l4proto tcp tcp dport 53 redirect to :53
//	    meta l4proto udp udp dport 53 redirect to :53
//	    meta l4proto tcp redirect to :TCPPort
//	  }
//	}
//
// and with six the same for IPv6, whose own loopback is ::1 alone, and where names are
// asked about by datagrams alone.
func rules(six bool, b Bounds) (composed, error) {
	switch {
	case b != Bounds{}:
		return compose(six, b)
	case six:
		return both()
	}
	return four()
}

var (
	four = sync.OnceValues(func() (composed, error) { return compose(false, Bounds{}) })
	both = sync.OnceValues(func() (composed, error) { return compose(true, Bounds{}) })
)

func compose(six bool, b Bounds) (composed, error) {
	var out composed
	// The library knows how rules are written; they are sent by a socket of the box's own,
	// which it does not know.
	c, err := nftables.New(nftables.WithTestDial(func(all []netlink.Message) ([]netlink.Message, error) {
		for i := range all {
			all[i].Header.Sequence = uint32(i + 1)
			b, err := all[i].MarshalBinary()
			if err != nil {
				return nil, err
			}
			out.batch = append(out.batch, b...)
			if all[i].Header.Flags&netlink.Acknowledge != 0 {
				out.asked++
			}
		}
		return all, nil
	}))
	if err != nil {
		return out, err
	}
	lead := func(family nftables.TableFamily, rules ...[]expr.Any) {
		table := c.AddTable(&nftables.Table{Family: family, Name: "writ"})
		chain := c.AddChain(&nftables.Chain{Name: "out", Table: table, Type: nftables.ChainTypeNAT, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityNATDest})
		for _, e := range rules {
			c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: e})
		}
	}
	stay := &expr.Verdict{Kind: expr.VerdictReturn}
	lead(nftables.TableFamilyIPv4, within(16, []byte{127, 0, 0, 0}, []byte{255, 0, 0, 0}, stay), within(16, itself, []byte{255, 255, 255, 255}, stay),
		to(unix.IPPROTO_TCP, 53, DNSPort), to(unix.IPPROTO_UDP, 53, DNSPort), to(unix.IPPROTO_TCP, 0, TCPPort))
	if six {
		own := netip.IPv6Loopback().As16()
		lead(nftables.TableFamilyIPv6, within(24, own[:], bytes.Repeat([]byte{255}, 16), stay), to(unix.IPPROTO_UDP, 53, DNSPort), to(unix.IPPROTO_TCP, 0, TCPPort))
	}
	b.add(c)
	return out, c.Flush()
}

// within matches a destination, which is somewhere in the header.
func within(at uint32, address, mask []byte, then ...expr.Any) []expr.Any {
	size := uint32(len(mask))
	return append([]expr.Any{
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: at, Len: size},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: size, Mask: mask, Xor: make([]byte, size)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: address},
	}, then...)
}

// to leads a protocol, to a port or to all, to a port of ours.
func to(protocol byte, port, ours uint16) []expr.Any {
	return speaking(protocol, port, &expr.Immediate{Register: 1, Data: binaryutil.BigEndian.PutUint16(ours)}, &expr.Redir{RegisterProtoMin: 1})
}

// speaking matches a protocol, to a port or to all.
func speaking(protocol byte, port uint16, then ...expr.Any) []expr.Any {
	out := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{protocol}},
	}
	if port != 0 {
		out = append(out, &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
			&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: binaryutil.BigEndian.PutUint16(port)})
	}
	return append(out, then...)
}

// send sends messages, and reads as many acknowledgements as were asked for. The first
// refusal is the error.
func send(socket int, messages []byte, asked int) error {
	if err := unix.Sendto(socket, messages, 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	b := make([]byte, 8192)
	for asked > 0 {
		n, _, err := unix.Recvfrom(socket, b, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return err
		}
		for rest := b[:n]; len(rest) >= unix.NLMSG_HDRLEN+4; {
			size := binary.NativeEndian.Uint32(rest)
			if binary.NativeEndian.Uint16(rest[4:]) == unix.NLMSG_ERROR {
				asked--
				if errno := int32(binary.NativeEndian.Uint32(rest[unix.NLMSG_HDRLEN:])); errno != 0 {
					return unix.Errno(-errno)
				}
			}
			size = (size + 3) &^ 3
			if size < unix.NLMSG_HDRLEN || int(size) > len(rest) {
				break
			}
			rest = rest[size:]
		}
	}
	return nil
}
