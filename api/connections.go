package api

import (
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
)

func listConnections(x *exchange) (any, error) {
	var views []client.Connection
	for _, c := range x.engine.Connections() {
		views = append(views, connectionView(c))
	}
	return pageBy(x, "connections", views, func(c client.Connection) string { return c.Name })
}

func showConnection(x *exchange) (any, error) {
	c, err := x.engine.Connection(x.r.PathValue("name"))
	return connectionView(c), err
}

func connectionView(c engine.Connection) client.Connection {
	v := client.Connection{
		Name: c.Name, Type: string(c.Type), BaseURL: c.BaseURL, AuthType: string(c.Connection.Auth.Type), Auth: c.Auth, Secrets: append([]string{}, c.Refs...), Sensitive: c.Sensitive,
		RateLimit: c.RateLimit, Paths: c.Paths, Methods: []string{}, Environment: string(c.Environment), Agents: c.Agents, Where: c.Where, Digest: c.Digest.String(),
	}
	for _, m := range c.Methods {
		v.Methods = append(v.Methods, string(m))
	}
	return v
}

func testConnection(x *exchange) (any, error) {
	name := x.r.PathValue("name")
	t, err := x.engine.TestConnection(x.r.Context(), name)
	return client.ConnectionTest{Name: name, OK: t.Failed == "", Steps: append([]string{}, t.Steps...), Status: t.Status, Failed: t.Failed}, err
}
