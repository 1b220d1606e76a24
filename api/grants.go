package api

import (
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/store"
)

func listGrants(x *exchange) (any, error) {
	all, err := x.engine.Store().Grants(x.r.Context())
	if err != nil {
		return nil, err
	}
	at, err := x.at("grants", 2)
	if err != nil {
		return nil, err
	}
	var rows []store.Grant
	for _, g := range all { // the newest first
		seen := at != nil && (g.Made > at[0] || g.Made == at[0] && g.ID <= at[1])
		if !seen && (x.operator || x.engine.Below(g.Agent, x.who.Agent)) && len(rows) <= x.limit() {
			rows = append(rows, g)
		}
	}
	return pageOf(rows, x.limit(), x.grantView, func(g store.Grant) string { return cursor("grants", g.Made, g.ID) }), nil
}

func (x *exchange) grantView(g store.Grant) client.Grant {
	now := x.engine.Ledger().Now()
	v := client.Grant{ID: g.ID, From: g.Invocation, Agent: g.Agent, Tool: g.Tool, Class: g.Class, Uses: g.Used, Max: g.Max, Made: g.Made, By: g.By,
		Expires: g.Expires, Revoked: g.Revoked, State: "live"}
	switch {
	case g.Revoked != "" && g.RevokedBy == "": // a stop or a reload ended it, and nobody by name
		v.State = "void"
	case g.Revoked != "":
		v.State = "revoked"
	case g.Expires <= now:
		v.State = "expired"
	case g.Used >= g.Max:
		v.State = "used_up"
	case !x.engine.Grantable(g):
		v.State = "void"
	}
	if p, err := x.engine.Desk().Pattern(g); err == nil {
		v.Args, v.Match = p.Args, p.Match
	} else {
		v.State = "void"
	}
	return v
}

// grantOf is the standing approval that was made from a request.
func (x *exchange) grantOf(request string) (string, error) {
	all, err := x.engine.Store().Grants(x.r.Context())
	for _, g := range all {
		if g.Invocation == request {
			return g.ID, err
		}
	}
	return "", err
}

func revokeGrant(x *exchange) (any, error) {
	id := x.r.PathValue("id")
	if !x.operator { // its own, and of agents below it
		all, err := x.engine.Store().Grants(x.r.Context())
		if err != nil {
			return nil, err
		}
		mine := false
		for _, g := range all {
			mine = mine || g.ID == id && x.engine.Below(g.Agent, x.who.Agent)
		}
		if !mine {
			return nil, writ.Fail(writ.NotFound, "there is no such grant of this agent; GET /v1/grants lists its own", nil)
		}
	}
	by := x.who.Agent
	if x.operator {
		by = "operator"
	}
	return client.Status{Status: "revoked"}, x.engine.Desk().Revoke(x.r.Context(), id, by)
}
