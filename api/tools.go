package api

import (
	"encoding/json"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/tool"
)

func listTools(x *exchange) (any, error) {
	var views []client.Tool
	for _, t := range x.engine.Tools(x.who.Agent) {
		v, err := x.toolView(t)
		if err != nil {
			return nil, err
		}
		views = append(views, v)
	}
	return pageBy(x, "tools", views, func(t client.Tool) string { return t.Name })
}

func showTool(x *exchange) (any, error) {
	t, err := x.engine.Tool(x.who.Agent, x.r.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return x.toolView(t)
}

// toolView is a tool as the caller sees it. A definition is made of types that say
// how they are written as JSON, so that is how it is turned into the client's twin.
func (x *exchange) toolView(t *tool.Tool) (client.Tool, error) {
	text, err := engine.ForAgents(t)
	if x.operator {
		text, err = []byte(t.Canonical()), nil
	}
	var v client.Tool
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	if err != nil {
		return client.Tool{}, err
	}
	v.Digest, v.Action = t.Digest.String(), string(t.Action) // which of a server's tools is the operator's word
	if x.operator {
		v.State, v.Held = x.engine.ToolState(t)
		v.Counts = x.standing(t.Name)
	}
	if err := x.engine.Unavailable(x.r.Context(), x.who.Agent, t.Name); err != nil {
		_, v.Unavailable = writ.Public(err)
	}
	return v, nil
}

func (x *exchange) standing(name string) *client.Standing {
	s, w := x.engine.Standing(name)
	v := &client.Standing{Class: s.Class.String(), Dangerous: s.Dangerous, Quorum: s.Quorum, Reasons: s.Reasons}
	if w.ID != "" {
		v.Waiver = new(client.Waiver(w))
	}
	return v
}

func diffTool(x *exchange) (any, error) {
	d, err := x.engine.DiffTool(x.r.PathValue("name"))
	v := client.ToolDiff{Name: d.Name, File: d.File, Digest: d.Digest, Accepted: d.Accepted, By: d.By, At: d.At, Stays: d.Stays}
	for _, c := range d.Changes {
		v.Changes = append(v.Changes, client.Change(c))
	}
	return v, err
}

func acceptTool(x *exchange) (any, error) {
	in := body[client.AcceptRequest](x)
	return client.Status{Status: "accepted"}, x.engine.AcceptTool(x.r.Context(), x.r.PathValue("name"), in.Digest, engine.Credentials(in.By))
}

func waiveTool(x *exchange) (any, error) {
	in := body[client.WaiveRequest](x)
	w := engine.Waiver{Class: in.Class, NotDangerous: in.NotDangerous, Reason: in.Reason, Digest: in.Digest}
	return client.Status{Status: "waived"}, x.engine.WaiveTool(x.r.Context(), x.r.PathValue("name"), w, engine.Credentials(in.By))
}

func endWaiver(x *exchange) (any, error) {
	return client.Status{Status: "ended"}, x.engine.EndWaiver(x.r.Context(), x.r.PathValue("name"))
}

func listWaivers(x *exchange) (any, error) {
	all, err := x.engine.Waivers(x.r.Context())
	if err != nil {
		return nil, err
	}
	views := make([]client.Waiver, len(all))
	for i, w := range all {
		views[i] = client.Waiver(w)
	}
	return pageBy(x, "waivers", views, func(w client.Waiver) string { return w.At + w.ID })
}
