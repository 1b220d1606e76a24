package cli

import (
	"context"
	"fmt"
	"io"
	"net/netip"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/egress/sshagent"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/sandbox"
)

// network is what a person lets a command reach, with the servers that it signs in at, by
// an agent or none, and the way there.
func (c *confined) network(told *refusals, to []writ.SignIn, signs *sshagent.Agent) (writ.Network, sandbox.Outlet, error) {
	if len(c.hosts)+len(c.reads)+len(to) == 0 {
		if len(c.ranges) > 0 {
			return writ.Network{}, nil, Usagef("--allow-range says which addresses the hosts of --allow-host, --read-host and --ssh may have; name a host")
		}
		if c.six {
			return writ.Network{}, nil, Usagef("--ipv6 says how the hosts of --allow-host, --read-host and --ssh may be reached; name a host")
		}
		return writ.Network{}, nil, nil
	}
	var ranges []netip.Prefix
	for _, text := range c.ranges {
		p, ok := parseRange(text)
		if !ok {
			return writ.Network{}, nil, Usagef("--allow-range %q is not a range; write %s", text, config.RangeLike(text))
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
			return writ.Network{}, nil, Usagef("%s: %v", flag, err)
		}
		if p.IPv6() && !c.six { // it would not be reached, and nobody outside would hear of it
			return writ.Network{}, nil, Usagef("%s %s is an address of IPv6, which nothing reaches without --ipv6; add that", flag, p)
		}
		*list = append(*list, p.String())
		rules = append(rules, egress.Rule{Host: p, Reads: reads, IPv6: c.six, Ranges: ranges, At: flag + " " + p.String()})
	}
	for _, s := range to {
		p, err := host.ParsePattern(s.Host)
		if err != nil {
			return writ.Network{}, nil, Usagef("--ssh: %v", err)
		}
		if p.IPv6() && !c.six {
			return writ.Network{}, nil, Usagef("--ssh %s is an address of IPv6, which nothing reaches without --ipv6; add that", p)
		}
		net.Hosts = append(net.Hosts, p.String())
		rules = append(rules, egress.Rule{Host: p, IPv6: c.six, Ranges: ranges, At: "--ssh " + s.User + "@" + s.Host})
	}
	told.rules = rules
	broker := egress.New(egress.Options{})
	return net, func(w writ.Writ, m sandbox.Mouth) (io.Closer, error) {
		pass := broker.Open(egress.Run{Call: w.Call().ID, Agent: w.Call().Agent, Class: w.Decision().Class, Rules: rules, Log: told.tell, Opens: opensRange})
		authority, err := pass.Authority()
		if err != nil {
			return nil, err
		}
		way := outOf{pass.Serve(m), authority}
		if signs == nil {
			return way, nil
		}
		return outSigning{way, signs}, nil
	}, nil
}

// parseRange reads a range of addresses, written as its first one.
func parseRange(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	return p, err == nil && p == p.Masked()
}

// outOf is the way out of the box.
type outOf struct {
	io.Closer
	authority []byte
}

// Authority implements sandbox.Authority.
func (o outOf) Authority() []byte { return o.authority }

// refusals tells a person what a command was kept from, each once, and keeps all that it
// did for the daemon's log.
type refusals struct {
	to    io.Writer
	rules egress.Rules

	mu   sync.Mutex
	seen map[string]bool
	all  []client.Egress
}

// mostKept is how much there is for the log; a command that does more is told of by its
// beginning.
const mostKept = 10000

// logRun adds what was kept to the log of the daemon, where writ is set up.
func (a *App) logRun(r *refusals) {
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return
	}
	if _, err := os.Stat(path); err != nil || len(r.all) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	daemon, err := a.connectQuietly(ctx)
	for part := range slices.Chunk(r.all, 500) {
		if err == nil {
			err = daemon.ReportEgress(ctx, client.EgressReport{Events: part})
		}
	}
	if err != nil {
		fmt.Fprintf(r.to, "writ run: what it did outside is not in the daemon's log: %s\n", Visible(err.Error()))
	}
}

func (r *refusals) keep(e egress.Event) {
	e = e.Kept() // one that the daemon does not take would keep out the others of its report
	row := client.Egress{
		At: e.At.UTC().Format(ledger.TimeFormat), Kind: e.Kind, Host: e.Host, Verdict: string(e.Verdict), Class: e.Class, Detail: e.Detail,
		Sent: e.Sent, Received: e.Got, Micros: e.Took.Microseconds(),
	}
	if e.Verdict.Unmet() {
		row.Needs = e.Rule
	} else {
		row.Rule = e.Rule
	}
	if e.Address.IsValid() {
		row.Address = e.Address.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.all) < mostKept {
		r.all = append(r.all, row)
	}
}

// mostRefusals is how many lines there may be: a command does not bury its own output.
const mostRefusals = 20

func (r *refusals) tell(e egress.Event) {
	r.keep(e)
	if e.Verdict == egress.Allowed {
		return
	}
	line := fmt.Sprintf("writ run: %s %s: %s%s", e.Kind, Visible(e.Host), e.Verdict, r.because(e))
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
