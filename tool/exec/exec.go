// Package exec is the families that run programs: shell_command, its background
// jobs, and code_runner. They run in a sandbox, always; without one that holds the
// whole confinement they do not run.
package exec

import (
	"context"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/tool"
)

// Starter starts a command in a box; sandbox.Set is one.
type Starter interface {
	Start(context.Context, writ.Writ, sandbox.Spec) (sandbox.Box, string, error)
}

// Options are what the tools need of an engine. Without boxes and jobs they can be listed
// and not run.
type Options struct {
	Boxes Starter
	Jobs  *Jobs
	// Refused says what a call was not let out to, and what would change that; nil:
	// nobody knows.
	Refused func(ctx context.Context, call string) []string
}

// Tools are the tools of the family.
func Tools(o Options) ([]*tool.Tool, error) {
	r := runner{boxes: o.Boxes, jobs: o.Jobs, refused: o.Refused}
	shell, err := tool.New(shellDefinition, r.shell)
	if err != nil {
		return nil, err
	}
	job, err := tool.New(jobDefinition, r.job)
	if err != nil {
		return nil, err
	}
	code, err := tool.New(codeDefinition, r.code)
	return []*tool.Tool{shell, job, code}, err
}

type runner struct {
	boxes   Starter
	jobs    *Jobs
	refused func(ctx context.Context, call string) []string
}

// run runs a command, and says what it was not let out to: the program itself knows only
// that nobody answered.
func (r runner) run(ctx context.Context, w writ.Writ, spec sandbox.Spec) (writ.Result, error) {
	res, err := Run(ctx, r.boxes, w, spec)
	if err == nil && w.Confinement().Network.Mode != writ.NetworkNone {
		res.Content += r.outside(ctx, w.Call().ID)
	}
	return res, err
}

// outside is one line of what a call was not let out to; empty: nothing.
func (r runner) outside(ctx context.Context, call string) string {
	if r.refused == nil {
		return ""
	}
	list := r.refused(ctx, call)
	if len(list) == 0 {
		return ""
	}
	return "[not let out: " + strings.Join(list, "; ") + "]\n"
}

// leftOut is one line where a command ended as shells do that find no program, or may not
// run it, and not all programs are there; empty: that is not the cause.
func leftOut(listed bool, code int) string {
	if !listed || code != 126 && code != 127 {
		return ""
	}
	return "[programs are left out: terminal: restricted_commands runs those of tool_access.restricted_commands alone; the operator can add one there, or give the agent terminal: full]\n"
}

// boxed is what a program of this family declares: files and programs as far as
// the agent's level opens them, no environment of its own, hosts only by name.
var boxed = policy.Policy{
	Risk:    action.Medium,
	Files:   policy.Files{Read: policy.Paths("/**"), Write: policy.Paths("/**")},
	Network: policy.Network{Stance: policy.All},
	Exec:    policy.All,
	Secrets: []string{"ssh"}, // where an operator lends the agent a key
}
