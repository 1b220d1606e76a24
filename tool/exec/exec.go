// Package exec is the families that run programs: shell_command, its background
// jobs, and code_runner. They run in a sandbox, always; without one that holds the
// whole confinement they do not run.
package exec

import (
	"context"

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

// Tools are the tools of the family. Without boxes and jobs they can be listed and
// not run.
func Tools(boxes Starter, jobs *Jobs) ([]*tool.Tool, error) {
	r := runner{boxes, jobs}
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
	boxes Starter
	jobs  *Jobs
}

// boxed is what a program of this family declares: files and programs as far as
// the agent's level opens them, no environment of its own, hosts only by name.
var boxed = policy.Policy{
	Risk:    action.Medium,
	Files:   policy.Files{Read: policy.Paths("/**"), Write: policy.Paths("/**")},
	Network: policy.Network{Stance: policy.All},
	Exec:    policy.All,
}
