package decide

import (
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// unwritten is why a call of a tool changes no files, where its driver lets nothing do so;
// else the zero Reason.
func (b Backends) unwritten(t *tool.Tool, driver string) writ.Reason {
	set := b.ReadOnly[driver]
	if !set.V || t.Policy.Files.Write.Stance <= policy.None {
		return writ.Reason{}
	}
	return writ.Reason{Effect: writ.Allow, Source: "sandboxing", Where: set.At,
		Text: fmt.Sprintf("files can be read alone on driver %s with mount_mode: ro; an operator opens them: sandboxing.%s.mount_mode: rw, and a new start of the daemon", driver, driver)}
}

// served is what a server reaches whose box changes no files.
func (b Backends) served(s *writ.Server) *writ.Server {
	if s == nil || !s.Box || !b.ReadOnly[b.For(action.MCP)].V {
		return s
	}
	out := *s
	out.Read, out.Write = union(s.Read, s.Write), nil
	return &out
}
