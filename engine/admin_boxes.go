package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool/admin"
)

type box struct {
	ID      string `json:"id"`
	Driver  string `json:"driver"`
	Agent   string `json:"agent"`
	Session string `json:"session"`
	Task    string `json:"task"`
	Call    string `json:"call,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Kept    bool   `json:"kept"`
	Since   string `json:"since"`
	Calls   int    `json:"calls"`
}

// boxShown is one whole; the engine's names of a container are the operator's.
type boxShown struct {
	box
	Image string   `json:"image,omitempty"`
	Ended string   `json:"ended,omitempty"`
	Lost  bool     `json:"lost,omitempty"` // its daemon was gone before it
	Runs  []boxRun `json:"runs,omitempty"` // the last, the oldest first
}

type boxRun struct {
	Call   string `json:"call"`
	Tool   string `json:"tool"`
	Began  string `json:"began"`
	Code   int    `json:"exit_code"`
	Limit  string `json:"limit,omitempty"`
	Millis int64  `json:"execution_time_ms"`
	Stdout int64  `json:"stdout_bytes"`
	Stderr int64  `json:"stderr_bytes"`
}

func boxOf(b sandbox.Live) box {
	return box{b.ID, b.Driver, b.Agent, b.Session, b.Task, b.Call, b.Tool, b.Kept, b.Since.UTC().Format(time.RFC3339Nano), b.Calls}
}

func (a *administration) boxes(c writ.Call) []box {
	var out []box
	for _, b := range a.e.Sandboxes() {
		if a.e.Below(b.Agent, c.Agent) {
			out = append(out, boxOf(b))
		}
	}
	return out
}

func (a *administration) listSandboxes(_ context.Context, c writ.Call, args admin.Args) (any, error) {
	return admin.Page(a.boxes(c), args), nil
}

func (a *administration) showSandbox(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	id := args.Text("id")
	if b, there := a.e.Sandbox(id); there && a.e.Below(b.Agent, c.Agent) {
		out := boxShown{box: boxOf(b.Live), Image: b.Image, Ended: moment(b.Ended)}
		for _, r := range b.Runs {
			if a.e.Below(r.Agent, c.Agent) { // else an operator looked into it
				out.Runs = append(out.Runs, boxRun{r.Call, r.Tool, moment(r.Began), r.Exit.Code, r.Exit.Limit, r.Exit.Elapsed.Milliseconds(), r.Stdout, r.Stderr})
			}
		}
		return out, nil
	}
	was, ok, err := a.e.store.Sandbox(ctx, id)
	if err == nil && (!ok || !a.e.Below(was.Agent, c.Agent)) {
		err = writ.Fail(writ.NotFound, fmt.Sprintf("there is no sandbox %q of yours; writ_sandbox_list shows those there are", clip(id)), nil)
	}
	return boxWas(was), err
}

func boxWas(s store.Sandbox) boxShown {
	return boxShown{box: box{ID: s.ID, Driver: s.Driver, Agent: s.Agent, Session: s.Session, Task: s.Task, Kept: s.Kept, Since: s.Since, Calls: s.Calls},
		Image: s.Image, Ended: s.Ended, Lost: s.State == "lost"}
}
