package host

import (
	"net/netip"
	"strconv"
	"strings"
)

// An Endpoint is a host and a TCP port: what a rule matches and egress dials. The
// zero Endpoint names nothing and matches nothing.
type Endpoint struct {
	Host Host
	Port uint16
}

// DefaultPort is the port of an endpoint or a pattern that names none.
const DefaultPort = 443

const sshPort = 22

// ParseEndpoint reads host, host:port, [v6] or [v6]:port. No port means 443. A
// bare IPv6 address is refused, because where its port begins is a guess.
func ParseEndpoint(s string) (Endpoint, error) {
	if strings.Contains(s, "/") {
		return Endpoint{}, fail("endpoint", s, "has a slash; write host:port without scheme or path")
	}
	return parseEndpoint(s, DefaultPort)
}

// ParseServer is ParseEndpoint for servers of ssh: no port means 22.
func ParseServer(s string) (Endpoint, error) {
	if strings.Contains(s, "/") {
		return Endpoint{}, fail("server", s, "has a slash; write host or host:port without scheme or path")
	}
	return parseEndpoint(s, sshPort)
}

func parseEndpoint(s string, port uint16) (Endpoint, error) {
	hostPart, portPart, err := splitPort(s)
	if err != nil {
		return Endpoint{}, err
	}
	h, err := Parse(hostPart)
	if err != nil {
		return Endpoint{}, err
	}
	if portPart != "" {
		if port, err = parsePort(portPart[1:]); err != nil {
			return Endpoint{}, err
		}
	}
	return Endpoint{Host: h, Port: port}, nil
}

// splitPort cuts s before the colon of its port. portPart keeps that colon, so
// that "host:" (an empty port, refused) is not "host" (the default port).
func splitPort(s string) (hostPart, portPart string, err error) {
	if strings.HasPrefix(s, "[") {
		end := strings.IndexByte(s, ']') + 1
		if end == 0 {
			return s, "", nil // Parse says which bracket is missing
		}
		if end < len(s) && s[end] != ':' {
			return "", "", fail("endpoint", s, "has text after the bracket; write [address]:port")
		}
		return s[:end], s[end:], nil
	}
	colon := strings.IndexByte(s, ':')
	if colon < 0 {
		return s, "", nil
	}
	if strings.Contains(s[colon+1:], ":") {
		return "", "", fail("endpoint", s, "has more than one colon; write an IPv6 address in brackets, such as [2001:db8::1]")
	}
	return s[:colon], s[colon:], nil
}

// parsePort is narrower than strconv, which takes 0443: one port has one spelling.
func parsePort(s string) (uint16, error) {
	port, err := strconv.ParseUint(s, 10, 16)
	if err != nil || port == 0 || s[0] == '0' {
		return 0, fail("port", s, "is not a decimal number from 1 to 65535; write it without sign or leading zeros, such as 443")
	}
	return uint16(port), nil
}

// String is the normal form host:port, IPv6 in brackets; ParseEndpoint reads it
// back to an equal Endpoint. It is empty for an endpoint without host or port.
func (e Endpoint) String() string {
	if e.Host == (Host{}) || e.Port == 0 {
		return ""
	}
	return withPort(e.Host, e.Port)
}

func withPort(h Host, port uint16) string {
	if addr, ok := h.Addr(); ok {
		return netip.AddrPortFrom(addr, port).String()
	}
	return h.name + ":" + strconv.Itoa(int(port))
}
