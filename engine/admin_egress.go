package engine

import (
	"context"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool/admin"
)

// left is what left a box, or was refused to, as an agent is told of it: where names lead
// to is the operator's.
type left struct {
	At       string `json:"at"`
	Call     string `json:"call,omitempty"`
	Agent    string `json:"agent"`
	Kind     string `json:"kind"`
	Host     string `json:"host"`
	Verdict  string `json:"verdict"`
	Needs    string `json:"needs,omitempty"` // what would allow it
	Sent     int64  `json:"sent"`
	Received int64  `json:"received"`
	Micros   int64  `json:"micros"`
}

func leftOf(e store.Egress) left {
	out := left{At: e.At, Call: e.Call, Agent: e.Agent, Kind: e.Kind, Host: e.Host, Verdict: e.Verdict, Sent: e.Sent, Received: e.Received, Micros: e.Micros}
	if Unmet(e) { // the key, without the addresses that the operator would write there
		out.Needs, _, _ = strings.Cut(e.Rule, ": [")
	}
	return out
}

func (a *administration) listEgress(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	mine, err := a.scope(c, args)
	if err != nil {
		return nil, err
	}
	of := store.EgressOf{Call: args.Text("call"), Agent: args.Text("agent"), Refused: args.Text("verdict") == "refused"}
	rows, err := gather("connections", args, func(last *store.Egress) ([]store.Egress, error) {
		var before int64
		if last != nil {
			before = last.N
		}
		return a.e.store.EgressBefore(ctx, of, before, seenPage)
	}, func(e store.Egress) string { return e.At }, func(e store.Egress) bool { return mine(e.Agent) })
	return paged(rows, args, leftOf), err
}

// connectedTo is a connection as an agent that may use it knows it: nothing of its
// credentials, not even where they are kept.
type connectedTo struct {
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Host        string   `json:"host"`
	Environment string   `json:"environment,omitempty"`
	Tools       []string `json:"tools"` // that take it
}

func (a *administration) listConnections(_ context.Context, c writ.Call, args admin.Args) (any, error) {
	r := a.e.at()
	var out []connectedTo
	for _, name := range sortedNames(r.cfg.Connections) {
		if is := r.cfg.Connections[name]; r.usedBy(name, c.Root()) {
			out = append(out, connectedTo{name, is.Type, is.Host, string(r.cfg.File.Connections[name].Environment), takers(is.Type)})
		}
	}
	return admin.Page(out, args), nil
}
