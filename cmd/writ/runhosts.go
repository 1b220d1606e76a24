package main

import (
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/sandbox"
)

// network is what a person lets a command reach, and the way there.
func (c *confined) network() (writ.Network, sandbox.Outlet, error) {
	if len(c.hosts)+len(c.reads) == 0 {
		if len(c.ranges) > 0 {
			return writ.Network{}, nil, usagef("--allow-range says which addresses the hosts of --allow-host and --read-host may have; name a host")
		}
		return writ.Network{}, nil, nil
	}
	var ranges []netip.Prefix
	for _, text := range c.ranges {
		p, err := netip.ParsePrefix(text)
		if err != nil || p != p.Masked() {
			return writ.Network{}, nil, usagef("--allow-range %q: write a range such as 10.0.0.0/8", text)
		}
		ranges = append(ranges, p)
	}
	net := writ.Network{Mode: writ.NetworkHosts, IPv6: c.six}
	var rules egress.Rules
	for i, text := range slices.Concat(c.hosts, c.reads) {
		flag, list, reads := "--allow-host", &net.Hosts, i >= len(c.hosts)
		if reads {
			flag, list = "--read-host", &net.Reads
		}
		p, err := host.ParsePattern(text)
		if err != nil {
			return writ.Network{}, nil, usagef("%s: %v", flag, err)
		}
		*list = append(*list, p.String())
		rules = append(rules, egress.Rule{Host: p, Reads: reads, IPv6: c.six, Ranges: ranges, At: flag + " " + p.String()})
	}
	told := &refusals{to: os.Stderr, seen: map[string]bool{}}
	broker := egress.New(egress.Options{})
	return net, func(w writ.Writ, m sandbox.Mouth) (io.Closer, error) {
		pass := broker.Open(egress.Run{Call: w.Call().ID, Agent: w.Call().Agent, Class: w.Decision().Class, Rules: rules, Log: told.tell})
		authority, err := pass.Authority()
		if err != nil {
			return nil, err
		}
		return outOf{pass.Serve(m), authority}, nil
	}, nil
}

// outOf is the way out of the box.
type outOf struct {
	io.Closer
	authority []byte
}

// Authority implements sandbox.Authority.
func (o outOf) Authority() []byte { return o.authority }

// refusals tells a person what a command was kept from, each once.
type refusals struct {
	to io.Writer

	mu   sync.Mutex
	seen map[string]bool
}

// mostRefusals is how many lines there may be: a command does not bury its own output.
const mostRefusals = 20

func (r *refusals) tell(e egress.Event) {
	if e.Verdict == egress.Allowed {
		return
	}
	line := fmt.Sprintf("writ run: %s %s: %s%s", e.Kind, visible(e.Host), e.Verdict, because(e))
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[line] || len(r.seen) > mostRefusals {
		return
	}
	r.seen[line] = true
	if len(r.seen) > mostRefusals {
		line = "writ run: and more that is not shown"
	}
	fmt.Fprintln(r.to, line+"\r")
}

// because is what more there is to say, and what would change it.
func because(e egress.Event) string {
	switch e.Verdict {
	case egress.HostNotAllowed, egress.NobodysAddress:
		return fmt.Sprintf(" (--allow-host %s would allow it)", visible(e.Rule))
	case egress.AddressNotOpen:
		return fmt.Sprintf(" (its address %s is %s; --allow-range would allow it)", e.Detail, e.Class)
	}
	if e.Detail != "" {
		return " (" + visible(e.Detail) + ")"
	}
	return ""
}
