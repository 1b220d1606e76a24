package api

import (
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
)

func listUpstreams(x *exchange) (any, error) {
	var views []client.Upstream
	for _, u := range x.engine.Upstreams() {
		views = append(views, upstreamView(u))
	}
	return pageBy(x, "upstreams", views, func(u client.Upstream) string { return u.Name })
}

func showUpstream(x *exchange) (any, error) {
	u, err := x.engine.Upstream(x.r.PathValue("name"))
	return upstreamView(u), err
}

func upstreamView(u engine.Upstream) client.Upstream {
	s := u.Server.InForce()
	v := client.Upstream{
		Name: u.Name, Kind: "stdio", Where: u.Where, Command: s.Command, Dir: s.Dir, Env: s.Env, Read: s.Read, Write: s.Write, Hosts: s.Hosts, Box: u.Box, URL: s.URL, Headers: s.Headers,
		Prefix: string(s.Prefix), Enabled: s.Enabled, Disabled: s.Disabled, ReadAction: string(s.ReadAction),
		Cacheable: s.Cacheable, CallTimeout: s.CallTimeout.String(), ConnectTimeout: s.ConnectTimeout.String(), Auth: u.Auth, SecretEnv: u.SecretEnv, Secrets: u.Secrets,
		State: u.State, Since: u.Since, Failed: u.Failed, Outside: u.Outside, Hints: u.Hints, Next: u.Next, Failures: u.Failures, Protocol: u.Version,
		Tools: []client.UpstreamTool{}, Resources: u.Resources, Prompts: u.Prompts, Remedy: u.Remedy,
	}
	if s.URL != "" {
		v.Kind, v.Box = "http", ""
	}
	for _, r := range s.Relay {
		v.Relay = append(v.Relay, string(r))
	}
	for _, t := range u.Tools {
		v.Tools = append(v.Tools, client.UpstreamTool(t))
	}
	for _, c := range u.Changes {
		v.Changes = append(v.Changes, client.Change(c))
	}
	for _, r := range u.Refused {
		v.Refused = append(v.Refused, client.UpstreamRefusal(r))
	}
	return v
}

func testUpstream(x *exchange) (any, error) {
	name := x.r.PathValue("name")
	t, err := x.engine.TestUpstream(x.r.Context(), name)
	return client.UpstreamTest{
		Name: name, OK: t.Failed == "", Steps: append([]string{}, t.Steps...), Failed: t.Failed, Outside: t.Outside, Hints: t.Hints,
		Tools: t.Tools, Accepted: t.Accepted, Changed: t.Changed, New: t.New, Gone: t.Gone,
	}, err
}

func restartUpstream(x *exchange) (any, error) {
	u, err := x.engine.RestartUpstream(x.r.Context(), x.r.PathValue("name"))
	return upstreamView(u), err
}

func acceptUpstream(x *exchange) (any, error) {
	in := body[client.UpstreamAcceptRequest](x)
	return client.Status{Status: "accepted"}, x.engine.AcceptUpstream(x.r.Context(), x.r.PathValue("name"), in.Digests, engine.Credentials(in.By))
}
