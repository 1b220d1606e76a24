package exec

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

var jobDefinition = tool.Definition{
	Name: "shell_job", Title: "Look after background jobs",
	Description: "Check, read, cancel or list the background jobs that shell_command started in this session. Output is stdout and stderr as they came; the last 1000000 bytes are kept, also after the job has ended.",
	Category:    action.Terminal, Action: "code:write", Class: writ.ClassNone, Tier: "cheap",
	ActionBy: &tool.ActionBy{Argument: "do", Types: map[string]action.Type{"check": "code:read", "output": "code:read", "list": "code:read", "cancel": "code:write"}},
	Policy:   policy.Policy{Risk: action.Low}, Runs: tool.InProcess, Runner: tool.Runner{Kind: tool.Builtin},
	Schema: json.RawMessage(`{"type":"object","additionalProperties":false,"required":["do"],"properties":{
		"do":{"type":"string","enum":["check","output","cancel","list"],"description":"check: how far it is. output: what it wrote. cancel: end it with all its processes. list: the jobs of this session, newest first."},
		"job":{"type":"string","minLength":1,"maxLength":64,"x-writ-text":true,"description":"The job's id; needed unless do is list."},
		"bytes":{"type":"integer","minimum":1,"maximum":1000000,"description":"With output: at most so many bytes; 1000000 when left out."},
		"from":{"type":"integer","minimum":0,"maximum":1000000000000000,"description":"With output: go on at this byte, counted from the start of the output; the end of the output when left out."}}}`),
	Examples: []tool.Example{
		{What: "is it done", Args: json.RawMessage(`{"do":"check","job":"job_k3x7q2m5n4p6r2st"}`)},
		{What: "what it wrote since", Args: json.RawMessage(`{"do":"output","job":"job_k3x7q2m5n4p6r2st","from":2048}`)},
	},
	Failures: []string{"there is no such job in this session (not_found); jobs do not survive the daemon, and of those that ended 64 are remembered", "from lies past the end of the output"},
}

type jobArgs struct {
	Do    string `json:"do"`
	Job   string `json:"job"`
	Bytes int64  `json:"bytes"`
	From  *int64 `json:"from"`
}

// fault says what does not go together, which the schema cannot say.
func (a jobArgs) fault() string {
	switch {
	case a.Do == "list" && a.Job != "":
		return "do: list takes no job; leave it out"
	case a.Do != "list" && a.Job == "":
		return "do: " + a.Do + " needs a job; do: list shows them"
	case a.Do != "output" && (a.Bytes != 0 || a.From != nil):
		return "bytes and from go with do: output only; leave them out"
	}
	return ""
}

func (r runner) job(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a jobArgs
	if err := json.Unmarshal([]byte(w.Call().Args), &a); err != nil {
		return writ.Result{}, writ.Fail(writ.Invalid, "the arguments do not fit the tool", err)
	}
	if fault := a.fault(); fault != "" {
		return writ.Result{}, writ.Fail(writ.Invalid, "shell_job: "+fault, nil)
	}
	if r.jobs == nil {
		return writ.Result{}, writ.Fail(writ.Internal, "background jobs are not set up here", nil)
	}
	if a.Do == "list" {
		return r.jobs.list(w.Call()), nil
	}
	j, err := r.jobs.find(w.Call(), a.Job)
	if err != nil {
		return writ.Result{}, err
	}
	switch a.Do {
	case "output":
		res, err := r.jobs.read(j, a)
		if err != nil {
			return res, err
		}
		end := r.jobs.view(j)
		res.Content += leftOut(j.listed, end.ExitCode)
		if j.outside {
			res.Content += r.outside(ctx, end.Call)
		}
		return res, err
	case "cancel":
		if err := r.jobs.kill(ctx, j); err != nil {
			return writ.Result{}, err
		}
	}
	e := r.jobs.view(j)
	return writ.Result{Content: fmt.Sprintf("[job %s %s]\n", e.Job, e), Metadata: e.metadata()}, nil
}

func (js *Jobs) list(c writ.Call) writ.Result {
	var b strings.Builder
	ids := []string{}
	for _, j := range js.mine(c) {
		e := js.view(j)
		fmt.Fprintf(&b, "%s %s: %q\n", e.Job, e, j.command)
		ids = append(ids, e.Job)
	}
	if len(ids) == 0 {
		b.WriteString("[no jobs in this session]\n")
	}
	return writ.Result{Content: b.String(), Metadata: map[string]any{"jobs": ids}}
}

// read is what a job wrote, with what is missing before it and where to go on.
func (js *Jobs) read(j *job, a jobArgs) (writ.Result, error) {
	e := js.view(j) // before the output, which is whole once a job has ended
	n := cmp.Or(a.Bytes, captureLimit)
	text, start, total := j.output.last(n)
	cut := ""
	if a.From != nil {
		text, start, total = j.output.after(*a.From, n)
		if *a.From > total {
			return writ.Result{}, writ.Fail(writ.Invalid, fmt.Sprintf("shell_job: from %d lies past the end; the job has written %d bytes", *a.From, total), nil)
		}
		if start > *a.From {
			cut = fmt.Sprintf("[cut: bytes %d to %d are not kept]\n", *a.From, start-1)
		}
	} else if start > 0 {
		cut = fmt.Sprintf("[cut: the last %d of %d bytes]\n", len(text), total)
	}
	e.Bytes = total
	next := start + int64(len(text))
	if e.live() || next < total {
		text = wholeRunes(text)
		next = start + int64(len(text))
	}
	more := ""
	if e.live() || next < total {
		more = fmt.Sprintf("; go on with from: %d", next)
	}
	m := e.metadata()
	m["from"], m["next"] = start, next
	return writ.Result{Content: fmt.Sprintf("%s%s[job %s %s%s]\n", cut, lines(text), e.Job, e, more), Metadata: m}, nil
}
