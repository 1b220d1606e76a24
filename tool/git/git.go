// Package git is the tools of version control. Git runs in a sandbox, always: a
// repository says in many places what to run, and whoever wrote it is not trusted. What
// is known of those places is off besides, and the box executes git and nothing else.
//
// What goes to a server goes to the host of the URL in the call, which is what was
// decided about. Where a repository's own configuration says to go counts for nothing:
// the box has no other way out.
package git

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/exec"
)

// Options are what the tools need of an engine. Without boxes they can be listed and not
// run.
type Options struct {
	Boxes exec.Starter
	// Refused says what a call was not let out to, one line each; nil: nobody knows.
	Refused func(ctx context.Context, call string) []string
}

// Tools are the tools of the family.
func Tools(o Options) ([]*tool.Tool, error) {
	r := runner{o}
	var out []*tool.Tool
	for _, d := range []struct {
		tool.Definition
		run tool.Func
	}{
		{cloneDefinition, r.clone}, {fetchDefinition, r.fetch}, {pushDefinition, r.push},
		{statusDefinition, r.status}, {logDefinition, r.log}, {diffDefinition, r.diff}, {branchDefinition, r.branch}, {commitDefinition, r.commit},
	} {
		t, err := tool.New(d.Definition, d.run)
		if err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

type runner struct{ Options }

// Push is the tool that changes something on a server.
const Push = "git_push"

// Outward are the tools that talk to the host of a URL.
var Outward = []string{"git_clone", "git_fetch", Push}

// programs are all that a box of git executes: git starts its own parts, and env sets
// what a box takes from nobody else. There is no shell among them, which is what hooks,
// filters and the commands of a configuration would need.
var programs = []string{"env", "git"}

// boxed is what the tools declare: the workspace as a shell command has it, and no host
// but that of a URL.
func boxed(risk action.Risk, network policy.Stance) policy.Policy {
	return policy.Policy{
		Risk:    risk,
		Files:   policy.Files{Read: policy.Paths("/**"), Write: policy.Paths("/**")},
		Network: policy.Network{Stance: network},
		Exec:    policy.All,
	}
}

// define fills in what is the same for all of them.
func define(d tool.Definition, schema string) tool.Definition {
	d.Category, d.Runs, d.Runner, d.Programs = action.VersionControl, tool.InBox, tool.Runner{Kind: tool.Builtin}, programs
	d.Schema = json.RawMessage(schema)
	d.Untrusted = true // a repository's text is its author's
	return d
}

func example(what, args string) tool.Example {
	return tool.Example{What: what, Args: json.RawMessage(args)}
}

// decode reads arguments that the schema has already been held against.
func decode(w writ.Writ, into any) error {
	if err := json.Unmarshal([]byte(w.Call().Args), into); err != nil {
		return writ.Fail(writ.Invalid, "the arguments do not fit the tool", err)
	}
	return nil
}

// at is the path that an argument led to when the call was decided; empty: it has none.
func at(w writ.Writ, pointer string) string {
	for _, t := range w.Call().Targets {
		if t.Pointer == pointer {
			return t.Path
		}
	}
	return ""
}

// atAll are the paths that the elements of an array led to.
func atAll(w writ.Writ, pointer string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = at(w, pointer+"/"+strconv.Itoa(i))
	}
	return out
}
