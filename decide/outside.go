package decide

import (
	"fmt"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
)

// Outside is what the operator lets calls on one driver reach of hosts, whatever their
// agents may. It opens nothing. A nil one says nothing.
type Outside struct {
	Driver     string
	Open       access.Set[bool] // calls on it reach hosts
	ByCategory map[action.Category]access.Set[bool]
	Hosts      access.Set[host.Patterns] // and no others, where there are any
}

// Refuses is why a call of a category does not reach a host, or a pattern of hosts; the
// zero Reason where it may.
func (o *Outside) Refuses(c action.Category, normal string) writ.Reason {
	if o == nil {
		return writ.Reason{}
	}
	open, ok := o.ByCategory[c]
	if !ok {
		open = o.Open
	}
	why := writ.Reason{Effect: writ.Deny, Source: "network", Where: open.At}
	if !open.V {
		why.Text = fmt.Sprintf("host %q cannot be reached: category %s runs on %s with network: none; an operator opens it: sandboxing.%s.network_overrides: {%s: bridge}", clip(normal), c, o.Driver, o.Driver, c)
		return why
	}
	p, err := host.ParsePattern(normal)
	if err != nil || len(o.Hosts.V) > 0 && !slices.ContainsFunc(o.Hosts.V, func(h host.Pattern) bool { return h.Contains(p) }) {
		why.Where = o.Hosts.At
		why.Text = fmt.Sprintf("host %q is not among sandboxing.%s.allowed_hosts", clip(normal), o.Driver)
		return why
	}
	return writ.Reason{}
}
