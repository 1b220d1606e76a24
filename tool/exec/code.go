package exec

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/tool"
)

var codeDefinition = tool.Definition{
	Name: "code_runner", Title: "Run code",
	Description: "Run a program given as text, in a sandbox. It has no network but the hosts that are named. Languages: python, javascript, bash, where the machine has them.",
	Category:    action.CodeExecution, Action: "code:write", Class: writ.ClassNone, Tier: "medium", Policy: boxed, Runs: tool.InBox, Runner: tool.Runner{Kind: tool.Builtin},
	Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["code","language"],"properties":{
		"code":{"type":"string","minLength":1,"maxLength":1000000,"x-writ-text":true,"description":"The program."},
		"language":{"type":"string","enum":["python","javascript","bash"]},
		"hosts":{"type":"array","maxItems":32,"items":{"type":"string","x-writ-host":true},"description":"Hosts it has to reach, as host or host:port; port 443 unless said. It reaches these by TCP and nothing else. A person is asked, unless one said before that they may be."},
		"reads":{"type":"array","maxItems":32,"items":{"type":"string","x-writ-host":"read"},"description":"Hosts it only reads from: requests of HTTP and HTTPS with GET, HEAD and OPTIONS get there, and nothing else. Reading asks less often than hosts."},
		"timeout_seconds":{"type":"integer","minimum":1,"maximum":600,"description":"Seconds before it is ended; when left out what the operator set (30, in containers 120)."}}}`),
	Examples: []tool.Example{{What: "a sum", Args: json.RawMessage(`{"language":"python","code":"print(sum(range(10)))"}`)}},
	Failures: []string{"the program fails", "the interpreter is not installed", "the agent's level demands a container and there is none (sandbox_unavailable)"},
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
