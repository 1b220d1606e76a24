package api

import (
	"encoding/json"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
)

// Mode says what the set-up does and does not guarantee.
const Mode = "personal: what runs inside boxes is confined; a process of your own user outside a box is not held back by writ"

func health(x *exchange) (any, error) {
	return client.Health{Status: "ok", Version: writ.Version(), Policy: x.engine.Config().Digest.String()}, nil
}

func openAPI(x *exchange) (any, error) {
	spec, err := x.rt.spec()
	return json.RawMessage(spec), err
}

func explain(x *exchange) (any, error) {
	in := body[client.ExplainRequest](x)
	d, err := x.engine.Explain(x.r.Context(), engine.Call{Agent: in.Agent, Tool: in.Tool, Args: in.Args, Session: in.Session, Task: in.Task})
	return client.Explanation{Effect: d.Effect.String(), Action: d.Action, Risk: d.Risk, Class: d.Class.String(), Reasons: d.Reasons, Confine: d.Confine}, err
}

func listStops(x *exchange) (any, error) {
	all, err := x.engine.Store().Stops(x.r.Context())
	if err != nil {
		return nil, err
	}
	var views []client.Stop
	for _, s := range all {
		views = append(views, client.Stop(s))
	}
	return pageBy(x, "stops", views, func(s client.Stop) string { return s.Agent })
}

func stopAgent(x *exchange) (any, error) {
	in := body[client.StopRequest](x)
	return client.Status{Status: "stopped"}, x.engine.Stop(x.r.Context(), in.Agent, in.Reason)
}

func liftStop(x *exchange) (any, error) {
	by := engine.Credentials(body[client.PersonRequest](x).By)
	return client.Status{Status: "lifted"}, x.engine.Lift(x.r.Context(), x.r.PathValue("agent"), by)
}

func showConfig(x *exchange) (any, error) {
	var views []client.Value
	for _, v := range x.engine.Config().Effective() {
		views = append(views, client.Value(v))
	}
	return pageBy(x, "config", views, func(v client.Value) string { return v.Key })
}

func reloadConfig(x *exchange) (any, error) {
	c, err := x.engine.Reload(x.r.Context())
	if err != nil {
		return nil, err
	}
	return client.Reloaded{Path: c.Path, Policy: c.Digest.String(), Warnings: c.Warnings, Ended: c.Ended}, nil
}

func doctor(x *exchange) (any, error) {
	people, err := x.engine.People(x.r.Context())
	c := x.engine.Config()
	v := client.Doctor{Version: writ.Version(), Mode: Mode, Config: c.Path, State: c.StatePath, People: len(people), Warnings: slices.Concat(c.Warnings, webhookWarnings(x.engine.Webhooks()))}
	for _, d := range x.engine.Drivers(x.r.Context()) {
		v.Drivers = append(v.Drivers, DriverView(d))
	}
	return v, err
}

// DriverView is a report as clients get it.
func DriverView(d engine.DriverReport) client.DriverReport {
	v := client.DriverReport{Driver: d.Driver, Error: d.Error, Chosen: d.Chosen}
	for _, f := range d.Findings {
		v.Findings = append(v.Findings, client.Finding{Feature: string(f.Feature), Enforced: f.Enforced, Evidence: f.Evidence})
	}
	return v
}

func shutdown(x *exchange) (any, error) {
	x.stop()
	return client.Status{Status: "ending"}, nil
}
