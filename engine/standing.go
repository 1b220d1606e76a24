package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/writ-run/writ/tool"
)

// ToolState says whether a tool can be used at all, and why not where a person has
// to look at it first: builtin, library, accepted, suspended or disabled.
func (e *Engine) ToolState(t *tool.Tool) (state, held string) {
	r := e.at()
	switch _, fromFile := r.defined[t.Name]; {
	case r.held[t.Name] != "":
		return "suspended", r.held[t.Name]
	case r.cfg.File.Tools[t.Name].Disabled:
		return "disabled", ""
	case fromFile:
		return "accepted", ""
	}
	return string(t.Runner.Kind), ""
}

// Root is the agent at the top of an agent's chain; empty for nobody.
func (e *Engine) Root(agent string) string {
	chain := e.at().chain(agent)
	if len(chain) == 0 {
		return agent
	}
	return chain[len(chain)-1]
}

// Unavailable is why no sandbox of this machine could run a tool for an agent that may
// use it, or nil.
func (e *Engine) Unavailable(ctx context.Context, agent, name string) error {
	r := e.at()
	reach, ok := r.decider.Reach(agent, name)
	if !ok {
		return nil
	}
	return e.holds(ctx, r, name, reach)
}

// Below reports whether an agent is another one or stands below it. A child that
// has ended is still below whoever made it: its name begins with theirs.
func (e *Engine) Below(name, agent string) bool {
	if agent == "" {
		return false
	}
	r := e.at()
	for {
		if name == agent || slices.Contains(r.chain(name), agent) {
			return true
		}
		cut := strings.LastIndexByte(name, '/')
		if cut < 0 {
			return false
		}
		name = name[:cut]
	}
}
