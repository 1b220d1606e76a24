package api

import (
	"time"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/sandbox"
)

func sandboxes(x *exchange) []client.Sandbox {
	var views []client.Sandbox
	for _, b := range x.engine.Sandboxes() {
		views = append(views, sandboxOf(b))
	}
	return views
}

func sandboxOf(b sandbox.Live) client.Sandbox {
	return client.Sandbox{ID: b.ID, Driver: b.Driver, Agent: b.Agent, Session: b.Session, Task: b.Task, Person: b.Person, Call: b.Call, Tool: b.Tool,
		Kept: b.Kept, Since: instant(b.Since), Used: instant(b.Used), Calls: b.Calls, Container: b.Container, Sidecar: b.Sidecar, Image: b.Image}
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

func listSandboxes(x *exchange) (any, error) {
	return pageBy(x, "sandboxes", sandboxes(x), func(b client.Sandbox) string { return b.Since + b.ID })
}

func showSandbox(x *exchange) (any, error) {
	b, err := x.engine.Sandbox(x.r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	v := sandboxOf(b.Live)
	v.Confine = &b.Confine
	if !b.Ended.IsZero() {
		v.Ended = instant(b.Ended)
	}
	for _, r := range b.Runs {
		run := client.SandboxRun{Call: r.Call, Tool: r.Tool, Began: instant(r.Began), ExitCode: r.Exit.Code, Limit: r.Exit.Limit,
			Millis: r.Exit.Elapsed.Milliseconds(), Stdout: r.Stdout, Stderr: r.Stderr}
		if c := r.Exit.Container; c != nil {
			run.Sidecar, run.Malformed = c.Lines.Parsed, c.Lines.Malformed
		}
		v.Runs = append(v.Runs, run)
	}
	return v, nil
}

func execSandbox(x *exchange) (any, error) {
	in := body[client.SandboxExecRequest](x)
	out, err := x.engine.ExecSandbox(x.r.Context(), x.r.PathValue("id"), in.Command, engine.Credentials(in.By))
	return client.CallReply{CallID: out.CallID, Content: out.Content, IsError: out.IsError, Metadata: out.Metadata}, err
}

func killSandbox(x *exchange) (any, error) {
	return client.Status{Status: "killed"}, x.engine.KillSandbox(x.r.Context(), x.r.PathValue("id"))
}
