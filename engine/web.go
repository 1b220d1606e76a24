package engine

import (
	"context"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool/external"
	"github.com/writ-run/writ/tool/web"
)

// search asks a provider over the connection of a call.
func (e *Engine) search(ctx context.Context, w writ.Writ, ask func(string) (web.Asking, error)) (web.Answer, error) {
	c, err := outside{e}.Connection(w)
	if err != nil {
		return web.Answer{}, err
	}
	q, err := ask(c.Type)
	if err != nil {
		return web.Answer{}, err
	}
	said, err := e.external.Ask(ctx, w, c, external.Args{Connection: c.Name, Method: q.Method, Path: q.Path, Body: q.Body, Headers: map[string]string{"Accept": "application/json"}})
	return web.Answer{Provider: c.Type, Status: said.Status, Body: said.Body}, err
}
