package engine

import (
	"context"
	"regexp"
	"strings"
	"sync"

	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/store"
)

// mostRefused is how much of what a call was not let out to is told to whoever made it.
const mostRefused = 10

// refusedOutside says what a call was not let out to, for whoever made it: the host is
// the call's own, and of an address no more than its kind is said.
func (e *Engine) refusedOutside(ctx context.Context, call string) []string {
	return e.refused(ctx, call, func(store.Egress) string { return "" })
}

// refusedHosts says the same to a call that takes hosts and reads, with what to name there.
func (e *Engine) refusedHosts(ctx context.Context, call string) []string {
	return e.refused(ctx, call, toName)
}

func (e *Engine) refused(ctx context.Context, call string, more func(store.Egress) string) []string {
	rows, err := e.store.EgressAfter(ctx, store.EgressOf{Call: call, Refused: true}, 0, mostRefused)
	if err != nil {
		return nil
	}
	var out []string
	said := map[string]bool{}
	for _, r := range rows {
		line := r.Verdict
		if r.Host != "" { // else it was refused before it was known where to
			line = display.Preview(r.Host, 300) + ": " + line
		}
		if r.Class != "" && r.Verdict == string(egress.AddressNotOpen) {
			line += ", its address is " + r.Class
		}
		if v := egress.Verdict(r.Verdict); v == egress.OwnLoopback || v == egress.NotSigned {
			line += " (" + r.Detail + ")"
		}
		line += forOperator(r) + more(r)
		if !said[line] {
			out, said[line] = append(out, line), true
		}
	}
	return out
}

// toName is what a call would have to name to be let out.
func toName(r store.Egress) string {
	switch egress.Verdict(r.Verdict) {
	case egress.HostNotAllowed:
		if r.Kind == "dns" {
			return " (" + r.Rule + " in hosts, or in reads to read only, would ask for port 443 of it; " + r.Rule + ":PORT for another)"
		}
		return " (" + r.Rule + " in hosts, or in reads to read only, would ask for it)"
	case egress.NobodysAddress, egress.NoName:
		return " (use the host's name, not its address)"
	case egress.MethodRefused, egress.NotSeen:
		return " (only reading gets there; what is named in hosts may do more, unless the operator says that it is read_only)"
	}
	return ""
}

// forOperator is where an operator opens an address. Which one it is, is not said.
func forOperator(r store.Egress) string {
	var keys []string
	if egress.Verdict(r.Verdict) != egress.AddressNotOpen {
		return ""
	}
	for _, m := range openingKey().FindAllString(r.Rule, -1) {
		keys = append(keys, strings.TrimSuffix(m, ":"))
	}
	if keys == nil {
		return ""
	}
	return " (an operator who means it says the range in " + strings.Join(keys, " and ") + ")"
}

var openingKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`egress\.hosts\."[^"]*"\.ranges:`) })
