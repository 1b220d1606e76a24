package api

import (
	"cmp"
	"strconv"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/store"
)

// egressFilters are how what left boxes is chosen.
var egressFilters = []param{
	{name: "call", about: "only what this call did"},
	{name: "agent", about: "only what this agent's calls did"},
	{name: "verdict", about: "refused: only what was not let through", among: []string{"refused"}},
	{name: "after", about: "a place, n: what came after it, the oldest first", number: true, most: maxSeq},
}

// listEgress goes back from the newest; with after it goes forward from that one. The
// cursor holds which.
func listEgress(x *exchange) (any, error) {
	of, err := x.egressOf()
	if err != nil {
		return nil, err
	}
	n, forward, err := x.placeIn("egress")
	if err != nil {
		return nil, err
	}
	direction, read := "back", x.engine.Store().EgressBefore
	if forward {
		direction, read = "forward", x.engine.Store().EgressAfter
	}
	rows, err := read(x.r.Context(), of, n, x.limit()+1)
	place := func(e store.Egress) string { return cursor("egress", direction, strconv.FormatInt(e.N, 10)) }
	return pageOf(rows, x.limit(), egressView, place), err
}

// egressOf is what the caller chose. An empty choice is none that was made: it comes from
// a variable that is not set, and must not list everything.
func (x *exchange) egressOf() (store.EgressOf, error) {
	for _, name := range []string{"call", "agent"} {
		if v, given := x.query[name]; given && v == "" {
			return store.EgressOf{}, writ.Fail(writ.Invalid, name+" is empty; name one, or leave it out to list all", nil)
		}
	}
	return store.EgressOf{Call: x.query["call"], Agent: x.query["agent"], Refused: x.query["verdict"] == "refused"}, nil
}

// reportEgress takes what a command did that a person ran beside the daemon.
func reportEgress(x *exchange) (any, error) {
	in := body[client.EgressReport](x)
	rows := make([]store.Egress, len(in.Events))
	for i, e := range in.Events {
		rows[i] = egressRow(e)
	}
	return client.Status{Status: "logged"}, x.engine.ReportEgress(x.r.Context(), rows)
}

// egressView is a row as people read it: a rule that decided apart from one that is missing.
func egressView(e store.Egress) client.Egress {
	out := client.Egress{
		N: e.N, At: e.At, Call: e.Call, Agent: e.Agent, Kind: e.Kind, Host: e.Host, Address: e.Address, Verdict: e.Verdict, Class: e.Class, Rule: e.Rule,
		Detail: e.Detail, Sent: e.Sent, Received: e.Received, Micros: e.Micros,
	}
	if engine.Unmet(e) {
		out.Rule, out.Needs = "", e.Rule
	}
	return out
}

func egressRow(e client.Egress) store.Egress {
	return store.Egress{
		N: e.N, At: e.At, Call: e.Call, Agent: e.Agent, Kind: e.Kind, Host: e.Host, Address: e.Address, Verdict: e.Verdict, Class: e.Class, Rule: cmp.Or(e.Needs, e.Rule),
		Detail: e.Detail, Sent: e.Sent, Received: e.Received, Micros: e.Micros,
	}
}
