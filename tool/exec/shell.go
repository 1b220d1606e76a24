package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/tool"
)

var shellDefinition = tool.Definition{
	Name: "shell_command", Title: "Run a shell command",
	Description: "Run a command with bash -o pipefail -c in a sandbox and return its output. It writes only in the workspace and has no network; writable paths elsewhere, hosts to reach and hosts to read from are named. With background it returns at once and the command runs on as a job, which shell_job reads and cancels.",
	Category:    action.Terminal, Action: "code:write", Class: writ.ClassNone, Tier: "medium", Policy: boxed, Runs: tool.InBox, Runner: tool.Runner{Kind: tool.Builtin},
	Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["command"],"properties":{
		"command":{"type":"string","minLength":1,"maxLength":100000,"x-writ-text":true,"description":"The command line."},
		"directory":{"type":"string","x-writ-path":"read","description":"Working directory; the workspace when left out."},
		"timeout_seconds":{"type":"integer","minimum":1,"maximum":600,"description":"Seconds before it is ended; when left out what the operator set (30, in containers 120), in the background 600."},
		"background":{"type":"boolean","description":"Start it and return its job's id without waiting. Jobs end with their task and session; an agent has at most 5 at a time."},
		"hosts":{"type":"array","maxItems":32,"items":{"type":"string","x-writ-host":true},"description":"Hosts it has to reach, as host or host:port; port 443 unless said. It reaches these by TCP and nothing else. A person is asked, unless one said before that they may be."},
		"reads":{"type":"array","maxItems":32,"items":{"type":"string","x-writ-host":"read"},"description":"Hosts it only reads from: requests of HTTP and HTTPS with GET, HEAD and OPTIONS get there, and nothing else. Reading asks less often than hosts."},
		"writable":{"type":"array","maxItems":32,"items":{"type":"string","x-writ-path":"write"},"description":"Existing paths outside the workspace it has to change."}}}`),
	Examples: []tool.Example{
		{What: "count lines", Args: json.RawMessage(`{"command":"wc -l *.go | tail -1"}`)},
		{What: "download something", Args: json.RawMessage(`{"command":"curl -sO https://example.com/data.json","reads":["example.com"]}`)},
		{What: "run the tests and go on meanwhile", Args: json.RawMessage(`{"command":"make test","background":true}`)},
	},
	Failures: []string{"the command exits with another status than 0", "it runs into the time limit; what it wrote until then is kept", "no sandbox holds what the call may reach (sandbox_unavailable)", "in the background: 5 jobs of the agent are running already (conflict)"},
}

type shellArgs struct {
	Command    string `json:"command"`
	Directory  string `json:"directory"`
	Timeout    int    `json:"timeout_seconds"`
	Background bool   `json:"background"`
}

func (r runner) shell(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a shellArgs
	if err := json.Unmarshal([]byte(w.Call().Args), &a); err != nil {
		return writ.Result{}, writ.Fail(writ.Invalid, "the arguments do not fit the tool", err)
	}
	spec := sandbox.Spec{Argv: []string{"bash", "-o", "pipefail", "-c", a.Command}, Timeout: time.Duration(a.Timeout) * time.Second}
	for _, t := range w.Call().Targets {
		if t.Pointer == "/directory" {
			spec.Dir = t.Path
		}
	}
	if !a.Background {
		res, err := r.run(ctx, w, spec)
		if code, ok := res.Metadata["exit_code"].(int); ok {
			res.Content += leftOut(w.Confinement().Exec.Mode == writ.ExecListed, code)
		}
		return res, err
	}
	spec.Timeout = cmp.Or(spec.Timeout, sandbox.MaxWall)
	id, driver, err := r.jobs.start(ctx, w, spec, a.Command)
	if err != nil {
		return writ.Result{}, err
	}
	return writ.Result{
		Content:  fmt.Sprintf("[job %s started; shell_job reads it]\n", id),
		Metadata: map[string]any{"job": id, "driver": driver},
	}, nil
}
