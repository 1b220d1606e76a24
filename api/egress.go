package api

import (
	"strconv"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
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
	view := func(e store.Egress) client.Egress { return client.Egress(e) }
	place := func(e store.Egress) string { return cursor("egress", direction, strconv.FormatInt(e.N, 10)) }
	return pageOf(rows, x.limit(), view, place), err
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
		rows[i] = store.Egress(e)
	}
	return client.Status{Status: "logged"}, x.engine.ReportEgress(x.r.Context(), rows)
}
