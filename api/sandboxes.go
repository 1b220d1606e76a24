package api

import (
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

func sandboxes(x *exchange) []client.Sandbox {
	var views []client.Sandbox
	for _, b := range x.engine.Sandboxes() {
		views = append(views, client.Sandbox{ID: b.ID, Driver: b.Driver, Agent: b.Agent, Session: b.Session, Task: b.Task, Person: b.Person, Call: b.Call, Tool: b.Tool,
			Kept: b.Kept, Since: b.Since.UTC().Format(time.RFC3339Nano), Used: b.Used.UTC().Format(time.RFC3339Nano), Calls: b.Calls})
	}
	return views
}

func listSandboxes(x *exchange) (any, error) {
	return pageBy(x, "sandboxes", sandboxes(x), func(b client.Sandbox) string { return b.Since + b.ID })
}

func showSandbox(x *exchange) (any, error) {
	id := x.r.PathValue("id")
	for _, b := range sandboxes(x) {
		if b.ID == id {
			return b, nil
		}
	}
	return nil, writ.Fail(writ.NotFound, fmt.Sprintf("there is no sandbox %q any more; 'writ sandbox list' shows those there are", id), nil)
}

func killSandbox(x *exchange) (any, error) {
	return client.Status{Status: "killed"}, x.engine.KillSandbox(x.r.Context(), x.r.PathValue("id"))
}
