package config

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/strict"
)

// Egress is what an operator says of hosts. It lets nobody reach one: that is for tools
// and agents.
type Egress struct {
	Hosts map[string]EgressHost `yaml:"hosts"` // by pattern; the narrowest that names a host counts
	SSH   EgressSSH             `yaml:"ssh"`
}

// EgressHost is what is said of the hosts that a pattern names.
type EgressHost struct {
	Class   Class    `yaml:"class"`              // what talking to it counts as; write unless said
	Ranges  []string `yaml:"ranges"`             // addresses that are not public which it may have
	IPv6    bool     `yaml:"ipv6"`               // it is reached by IPv6 too
	Unnamed bool     `yaml:"unsafe_unnamed_tls"` // TLS that names nobody, or hides whom, is let through
}

// Said is an EgressHost that was read.
type Said struct {
	Host    host.Pattern
	Class   writ.Class
	Stated  bool // the class was written
	Ranges  []netip.Prefix
	IPv6    bool
	Unnamed bool
	At      string
}

// checkEgress reads what is said, the narrower before the wider.
func (c *Config) checkEgress(d *strict.File) {
	c.Egress = nil
	for _, text := range sorted(c.File.Egress.Hosts) {
		h, key := c.File.Egress.Hosts[text], strict.Member("egress.hosts", text)
		s := Said{Class: writ.ClassWrite, Stated: h.Class != "", IPv6: h.IPv6, Unnamed: h.Unnamed, At: c.At(key)}
		var err error
		if s.Host, err = host.ParsePattern(text); err != nil {
			d.Reject(key, "%v", err)
			continue
		}
		switch h.Class {
		case "read_only":
			s.Class = writ.ClassReadOnly
		case "none":
			d.Reject(key+".class", "none is no network at all; write read_only or write")
		}
		for i, r := range h.Ranges {
			p, err := netip.ParsePrefix(r)
			if err != nil || p != p.Masked() {
				d.Reject(fmt.Sprintf("%s.ranges[%d]", key, i), "%q is not a range; write %s", r, RangeLike(r))
			}
			s.Ranges = append(s.Ranges, p)
		}
		if s.Unnamed {
			c.Warnings = append(c.Warnings, fmt.Sprintf("%s: unsafe_unnamed_tls: TLS to %s is let through when it names nobody, or hides whom", s.At, s.Host))
		}
		wider := slices.IndexFunc(c.Egress, func(o Said) bool { return o.Host.Contains(s.Host) })
		if o := slices.IndexFunc(c.Egress, func(o Said) bool { return o.Host == s.Host }); o >= 0 {
			d.Reject(key, "says of %s what is said of it already; keep one", s.Host)
		}
		if wider < 0 {
			wider = len(c.Egress)
		}
		c.Egress = slices.Insert(c.Egress, wider, s)
	}
}

// RangeLike is what somebody probably meant by a text that is no range.
func RangeLike(text string) string {
	if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
		return netip.PrefixFrom(a, a.BitLen()).String() + " for that address alone"
	}
	return "one such as 10.0.0.0/8"
}
