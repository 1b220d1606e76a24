package engine

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/git"
	"github.com/writ-run/writ/tool/web"
)

// prevent refuses what could not run whoever approves it, before a person is asked: a
// request that cannot be made, and addresses that the broker would not dial.
func (r *rules) prevent(call *writ.Call) {
	for i := range call.Targets {
		if t := &call.Targets[i]; t.Kind == writ.TargetHost && t.Problem == "" {
			t.Problem = r.unopened(call.Tool, t.Host)
		}
	}
	if call.Tool == web.RequestName {
		call.Targets = append(call.Targets, impossible(web.CheckRequest(call.Args))...)
	}
}

// impossible is a target that denies a call for a fault of one argument; nil for none.
func impossible(err error) []writ.Target {
	var at *tool.Impossible
	switch {
	case err == nil:
		return nil
	case errors.As(err, &at):
		return []writ.Target{{Pointer: "/" + at.Argument, Kind: writ.TargetMethod, Problem: at.Why}}
	}
	return []writ.Target{{Kind: writ.TargetMethod, Problem: err.Error()}}
}

// unopened is why an address cannot be dialled, by the broker's own rule. What addresses a
// name has is known only when it is dialled.
func (r *rules) unopened(toolName, normal string) string {
	e, err := host.ParseEndpoint(normal)
	if err != nil {
		return "" // deciding refuses it
	}
	a, ok := e.Host.Addr()
	if !ok {
		return ""
	}
	rule, _ := saidOf(r.cfg.Egress).For(e)
	rule.Inner = slices.Contains(git.Outward, toolName) && slices.Contains(r.cfg.Git.Inner, e.Host)
	class, open := rule.Open(a)
	if open {
		return ""
	}
	return fmt.Sprintf("%s is not a public address (class %s); an operator who means it writes %s", a, class, opening(e, a))
}

// opening is what an operator writes who means an address.
func opening(e host.Endpoint, a netip.Addr) string {
	return fmt.Sprintf("egress.hosts.%q.ranges: [%s]", e, netip.PrefixFrom(a, a.BitLen()))
}
