package engine

import (
	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/web"
)

// webTools are the tools of the web; without an engine, to be looked at.
func webTools(e *Engine) ([]*tool.Tool, error) {
	var o web.Options
	if e != nil {
		o.Reach = func(w writ.Writ) (web.Way, error) { return e.reach(w) }
	}
	return web.Tools(o)
}
