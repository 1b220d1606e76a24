// Package exec is the families that run programs: shell_command and code_runner.
// They run in a sandbox, always; without one that holds the whole confinement
// they do not run.
package exec

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

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

// outputLimit is what is kept of each stream; the tail, since errors come last.
const outputLimit = 1 << 20

// Tools are the tools of the family.
func Tools(boxes Starter) ([]*tool.Tool, error) {
	r := runner{boxes}
	shell, err := tool.New(shellDefinition, r.shell)
	if err != nil {
		return nil, err
	}
	code, err := tool.New(codeDefinition, r.code)
	return []*tool.Tool{shell, code}, err
}

type runner struct{ boxes Starter }

// boxed is what a program of this family declares: files and programs as far as
// the agent's level opens them, no environment of its own, hosts only by name.
var boxed = policy.Policy{
	Risk:    action.Medium,
	Files:   policy.Files{Read: policy.Paths("/**"), Write: policy.Paths("/**")},
	Network: policy.Network{Stance: policy.All},
	Exec:    policy.All,
}

var shellDefinition = tool.Definition{
	Name: "shell_command", Title: "Run a shell command",
	Description: "Run a command with bash -o pipefail -c in a sandbox and return its output. It has no network and writes only in the workspace; writable paths elsewhere are named, which asks a person. Hosts cannot be reached in this version.",
	Category:    action.Terminal, Action: "code:write", Class: writ.ClassNone, Tier: "medium", Policy: boxed, Runs: tool.InBox, Runner: tool.Runner{Kind: tool.Builtin},
	Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["command"],"properties":{
		"command":{"type":"string","minLength":1,"maxLength":100000,"x-writ-text":true,"description":"The command line."},
		"directory":{"type":"string","x-writ-path":"read","description":"Working directory; the workspace when left out."},
		"timeout_seconds":{"type":"integer","minimum":1,"maximum":600,"description":"Seconds before it is ended; 30 when left out."},
		"hosts":{"type":"array","maxItems":32,"items":{"type":"string","x-writ-host":true},"description":"Hosts it has to reach, as host or host:port. No sandbox of this version can hold that, so such a call is refused."},
		"writable":{"type":"array","maxItems":32,"items":{"type":"string","x-writ-path":"write"},"description":"Existing paths outside the workspace it has to change."}}}`),
	Examples: []tool.Example{{What: "count lines", Args: json.RawMessage(`{"command":"wc -l *.go | tail -1"}`)}},
	Failures: []string{"the command exits with another status than 0", "it runs into the time limit; what it wrote until then is kept", "no sandbox holds what the call may reach (sandbox_unavailable)"},
}

var codeDefinition = tool.Definition{
	Name: "code_runner", Title: "Run code",
	Description: "Run a program given as text, in a sandbox without network. Languages: python, javascript, bash, where the machine has them.",
	Category:    action.CodeExecution, Action: "code:write", Class: writ.ClassNone, Tier: "medium", Policy: boxed, Runs: tool.InBox, Runner: tool.Runner{Kind: tool.Builtin},
	Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["code","language"],"properties":{
		"code":{"type":"string","minLength":1,"maxLength":1000000,"x-writ-text":true,"description":"The program."},
		"language":{"type":"string","enum":["python","javascript","bash"]},
		"timeout_seconds":{"type":"integer","minimum":1,"maximum":600,"description":"Seconds before it is ended; 30 when left out."}}}`),
	Examples: []tool.Example{{What: "a sum", Args: json.RawMessage(`{"language":"python","code":"print(sum(range(10)))"}`)}},
	Failures: []string{"the program fails", "the interpreter is not installed", "the agent's level demands a container and there is none (sandbox_unavailable)"},
}

type shellArgs struct {
	Command   string   `json:"command"`
	Directory string   `json:"directory"`
	Timeout   int      `json:"timeout_seconds"`
	Hosts     []string `json:"hosts"`
	Writable  []string `json:"writable"`
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
	return r.run(ctx, w, spec)
}

type codeArgs struct {
	Code     string `json:"code"`
	Language string `json:"language"`
	Timeout  int    `json:"timeout_seconds"`
}

func (r runner) code(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a codeArgs
	if err := json.Unmarshal([]byte(w.Call().Args), &a); err != nil {
		return writ.Result{}, writ.Fail(writ.Invalid, "the arguments do not fit the tool", err)
	}
	if a.Language == "bash" && w.Confinement().Exec.Mode == writ.ExecNone {
		return writ.Result{}, writ.Fail(writ.Denied, "denied: with terminal: none there is no bash", nil)
	}
	argv := map[string][]string{"python": {"python3", "-"}, "javascript": {"node", "-"}, "bash": {"bash", "-o", "pipefail", "-s"}}[a.Language]
	return r.run(ctx, w, sandbox.Spec{Argv: argv, Stdin: strings.NewReader(a.Code), Timeout: time.Duration(a.Timeout) * time.Second})
}

// run starts the command, waits for it and tells what came of it.
func (r runner) run(ctx context.Context, w writ.Writ, spec sandbox.Spec) (writ.Result, error) {
	stdout, stderr := sandbox.NewTail(outputLimit), sandbox.NewTail(outputLimit)
	spec.Stdout, spec.Stderr = stdout, stderr
	box, driver, err := r.boxes.Start(ctx, w, spec)
	if err != nil {
		return writ.Result{}, err
	}
	exit, err := box.Wait(ctx)
	if err != nil {
		return writ.Result{}, err
	}
	return writ.Result{
		Content: render(exit, stdout, stderr),
		IsError: exit.Code != 0 || exit.Limit != "",
		Metadata: map[string]any{
			"driver": driver, "exit_code": exit.Code, "signal": exit.Signal, "limit": exit.Limit,
			"elapsed_ms": exit.Elapsed.Milliseconds(), "cpu_ms": exit.CPU.Milliseconds(),
			"stdout_bytes": stdout.Total(), "stderr_bytes": stderr.Total(),
		},
	}, nil
}

func render(exit sandbox.Exit, stdout, stderr *sandbox.Tail) string {
	var b strings.Builder
	stream(&b, "", stdout)
	stream(&b, "[stderr]\n", stderr)
	switch {
	case exit.Limit == "timeout":
		fmt.Fprintf(&b, "[ended after %s: the time limit; give timeout_seconds, at most 600, for more]\n", exit.Elapsed.Round(100*time.Millisecond))
	case exit.Limit != "":
		fmt.Fprintf(&b, "[ended: %s]\n", exit.Limit)
	case exit.Signal != "":
		fmt.Fprintf(&b, "[ended by signal: %s]\n", exit.Signal)
	case exit.Code != 0:
		fmt.Fprintf(&b, "[exit status %d]\n", exit.Code)
	}
	if b.Len() == 0 {
		return "[no output]\n"
	}
	return b.String()
}

func stream(b *strings.Builder, label string, t *sandbox.Tail) {
	if t.Total() == 0 {
		return
	}
	b.WriteString(label)
	if cut := t.Cut(); cut != "" {
		fmt.Fprintf(b, "[cut: %s]\n", cut)
	}
	text := strings.ToValidUTF8(t.String(), "\uFFFD")
	b.WriteString(text)
	if !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
}
