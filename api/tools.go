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
	var v client.Tool
	if err := json.Unmarshal([]byte(t.Canonical()), &v); err != nil {
		return client.Tool{}, err
	}
	v.Digest = t.Digest.String()
	if x.operator {
		v.State, v.Held = x.engine.ToolState(t)
	}
	if err := x.engine.Unavailable(x.r.Context(), x.who.Agent, t.Name); err != nil {
		_, v.Unavailable = writ.Public(err)
	}
	return v, nil
}

func diffTool(x *exchange) (any, error) {
	d, err := x.engine.DiffTool(x.r.PathValue("name"))
	v := client.ToolDiff{Name: d.Name, File: d.File, Digest: d.Digest, Accepted: d.Accepted, By: d.By, At: d.At}
	for _, c := range d.Changes {
		v.Changes = append(v.Changes, client.Change(c))
	}
	return v, err
}

func acceptTool(x *exchange) (any, error) {
	in := body[client.AcceptRequest](x)
	return client.Status{Status: "accepted"}, x.engine.AcceptTool(x.r.Context(), x.r.PathValue("name"), in.Digest, engine.Credentials(in.By))
}
