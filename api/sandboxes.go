package api

import (
	"strconv"
	"time"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/store"
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

// wasSandbox is one that is over, as it is kept.
func wasSandbox(s store.Sandbox) client.Sandbox {
	return client.Sandbox{ID: s.ID, Driver: s.Driver, Agent: s.Agent, Session: s.Session, Task: s.Task, Person: s.Person, Kept: s.Kept, Since: s.Since, Used: s.Used,
		Calls: s.Calls, Container: s.Container, Sidecar: s.Sidecar, Image: s.Image, Ended: s.Ended, Lost: s.State == "lost"}
}

func listSandboxes(x *exchange) (any, error) {
	if x.query["state"] == "ended" {
		return endedSandboxes(x)
	}
	return pageBy(x, "sandboxes", sandboxes(x), func(b client.Sandbox) string { return b.Since + b.ID })
}

func endedSandboxes(x *exchange) (any, error) {
	n, _, err := x.placeIn("ended sandboxes")
	if err != nil {
		return nil, err
	}
	rows, err := x.engine.Store().EndedSandboxes(x.r.Context(), n, x.limit()+1)
	return pageOf(rows, x.limit(), wasSandbox, func(s store.Sandbox) string { return cursor("ended sandboxes", "back", strconv.FormatInt(s.N, 10)) }), err
}

func showSandbox(x *exchange) (any, error) {
	b, there := x.engine.Sandbox(x.r.PathValue("id"))
	if !there {
		was, err := x.engine.WasSandbox(x.r.Context(), x.r.PathValue("id"))
		return wasSandbox(was), err
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
