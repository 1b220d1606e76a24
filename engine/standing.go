package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/upstream"
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

// Blocked is why a call of a tool that waits for an answer would not run now: somebody has
// to look at the tool first, or its server is not there. Empty: it would, for all that can
// be known before.
func (e *Engine) Blocked(name string) string {
	r := e.at()
	if why := r.held[name]; why != "" {
		return why
	}
	if s := e.serves(r, name); s != nil && s.State().Phase == upstream.Failed {
		return fmt.Sprintf("the server %s is not connected; see why: writ upstream show %s", s.name, s.name)
	}
	return ""
}

// mayBlock reports whether there is any tool that Blocked could say something of.
func (e *Engine) mayBlock() bool { return len(e.at().held) > 0 || len(e.upstreams.all()) > 0 }

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
