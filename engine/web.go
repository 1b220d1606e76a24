package engine

import (
	"context"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/tool/exec"
	"github.com/writ-run/writ/tool/external"
	"github.com/writ-run/writ/tool/git"
	"github.com/writ-run/writ/tool/web"
)

// sources are what the tools of this program work with.
func (e *Engine) sources() catalog.Sources {
	return catalog.Sources{
		Exec:      exec.Options{Boxes: e.boxes, Jobs: e.jobs, Refused: e.refusedHosts},
		Web:       web.Options{Reach: func(w writ.Writ) (web.Way, error) { return e.reach(w) }, Search: e.search},
		Git:       git.Options{Boxes: e.boxes, Refused: e.refusedOutside},
		Disclosed: &e.disclosed, External: e.external, Own: &administration{e: e},
	}
}

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
