package decide

import (
	"maps"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/tool"
)

// SignIn is a server of ssh at which commands sign in with a key of the operator's.
type SignIn struct {
	Reach writ.SignIn
	// Agents may, with all below them; nobody else does. An agent below another is never
	// listed itself: it reaches no further than the one above (I11).
	Agents access.Set[[]string]
}

// signIn has a call sign in at a server that was opened to it, where the operator lends its
// agent the key and its tool declares that it signs in. It opens nothing, and what may be done
// there is for the server to say: so the call counts as what talking to that host counts as.
func (d *Decider) signIn(out *writ.Decision, chain []link, normal string) {
	s, ok := d.signIns[normal]
	first, top := chain[0].tool, chain[len(chain)-1].agent
	if !ok {
		d.otherPort(out, first, top.Name, normal)
		return
	}
	if first.Runs != tool.InBox || !first.Policy.SignsIn(normal) || slices.Contains(out.Confine.SSH, s.Reach) {
		return
	}
	if !slices.Contains(s.Agents.V, top.Name) { // what ssh says then names nobody who could change it
		add(out, writ.Allow, "ssh", s.Agents.At, "it does not sign in at %s: the key there is not lent to commands of %s, which agents would have to name", s.Reach.Host, top.Name)
		return
	}
	add(out, writ.Allow, "ssh", s.Agents.At, "it signs in at %s as %s, with a key that stays outside of its box", s.Reach.Host, s.Reach.User)
	out.Confine.SSH = append(out.Confine.SSH[:len(out.Confine.SSH):len(out.Confine.SSH)], s.Reach)
}

// otherPort says that a key is lent for another port of a host: without one, 443 is meant.
func (d *Decider) otherPort(out *writ.Decision, first *tool.Tool, agent, normal string) {
	to, err := host.ParseEndpoint(normal)
	if err != nil || first.Runs != tool.InBox {
		return
	}
	for _, at := range slices.Sorted(maps.Keys(d.signIns)) {
		s := d.signIns[at]
		had, err := host.ParseEndpoint(s.Reach.Host)
		if err == nil && had.Host == to.Host && first.Policy.SignsIn(s.Reach.Host) && slices.Contains(s.Agents.V, agent) {
			add(out, writ.Allow, "ssh", s.Agents.At, "it does not sign in at %s: the key is lent for %s, which the call would have to name", normal, s.Reach.Host)
		}
	}
}
