package decide

import (
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/policy"
)

// Connection is a connection of the operator's, as a call over it is decided.
type Connection struct {
	Reach     writ.Connection
	Host      string // normal form host:port
	Posts     bool   // whatever goes over it goes by POST
	Lends     bool   // it adds credentials where the call goes anyway, and opens no host
	Sensitive access.Set[bool]
	// Agents may use it, with all below them; empty: everybody who may use a tool that
	// takes connections. An agent below another is never listed itself: it reaches no
	// further than the one above (I11).
	Agents access.Set[[]string]
}

// connection holds the connection that an argument names against the agent and those
// above it. The operator's connection is itself the permission for its host, so an
// allowlist need not name that; an agent without a network has no connections either.
func (d *Decider) connection(out *writ.Decision, chain []link, t *writ.Target) {
	c, ok := d.connections[t.Value]
	if !ok || c.Host != t.Host || out.Confine.Connection != nil {
		add(out, writ.Deny, "connection", access.BuiltIn, "argument %s: connection %q is not what it was when the call was made; make it again", policy.Shown(t.Pointer), clip(t.Value))
		return
	}
	top := chain[len(chain)-1].agent
	if len(c.Agents.V) > 0 && !slices.Contains(c.Agents.V, top.Name) {
		add(out, writ.Deny, "connection", c.Agents.At, "argument %s: connection %s is not for agent %s", policy.Shown(t.Pointer), t.Value, top.Name)
	}
	for i, l := range chain {
		if n := l.agent.Constraints.Network; n.V == access.NoNetwork {
			add(out, writ.Deny, "network", n.At, "argument %s: connection %s cannot be used with network: none", policy.Shown(t.Pointer), t.Value)
			if last := &out.Reasons[len(out.Reasons)-1]; i > 0 {
				last.Text = byParent(l.agent.Name, last.Text)
			}
		}
	}
	if c.Sensitive.V {
		add(out, writ.Ask, "connection", c.Sensitive.At, "connection %s is sensitive, so a person is asked each time", t.Value)
	}
	out.Class = min(out.Class, d.talking(c.Host, true)) // and what the method says, see below
	if c.Posts {
		out.Class = writ.ClassWrite
	}
	out.Confine.Connection = &c.Reach
	if c.Lends {
		return
	}
	n := &out.Confine.Network
	n.Mode, n.IPv6 = writ.NetworkHosts, n.IPv6 || d.six(c.Host)
	n.Hosts = append(n.Hosts[:len(n.Hosts):len(n.Hosts)], c.Host)
}

// method raises a call to what HTTP says of its method (RFC 9110, 9.2.1); one that is
// not known to be safe changes something.
func method(out *writ.Decision, name string) {
	if slices.Contains([]string{"GET", "HEAD", "OPTIONS"}, name) {
		out.Class = min(out.Class, writ.ClassReadOnly)
		return
	}
	out.Class = writ.ClassWrite
}
