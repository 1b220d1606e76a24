package engine

import (
	"context"
	"fmt"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/tool/admin"
)

// upstreamOf is a server as an agent sees it. What it is started with, where it is and
// why it fails are the operator's: an error quotes what the server wrote.
type upstreamOf struct {
	Name  string         `json:"name"`
	Kind  string         `json:"kind"` // stdio, http
	State string         `json:"state"`
	Since string         `json:"since,omitempty"`
	Tools []serverToolOf `json:"tools"`
}

type serverToolOf struct {
	Name      string `json:"name"`
	Title     string `json:"title"`
	Class     string `json:"egress_class"`
	Dangerous bool   `json:"dangerous"`
	State     string `json:"state"` // accepted, new, changed, disabled
}

// upstreamsOf are the servers that have a tool which the lists of the caller, and of
// those it was delegated by, permit. Suspended tools count, so that an agent can tell
// what it waits for, and so does a server that has not said yet what it has.
func (a *administration) upstreamsOf(c writ.Call) []upstreamOf {
	out := []upstreamOf{}
	for _, u := range a.e.Upstreams() {
		v := upstreamOf{Name: u.Name, Kind: "stdio", State: u.State, Since: u.Since, Tools: []serverToolOf{}}
		if u.Server.URL != "" {
			v.Kind = "http"
		}
		for _, t := range u.Tools {
			if a.permits(c.Agent, t.Name) {
				v.Tools = append(v.Tools, serverToolOf{t.Name, t.Title, t.Class, t.Dangerous, t.State})
			}
		}
		if len(v.Tools) > 0 || len(u.Tools) == 0 && a.permits(c.Agent, ReadResource.Of(u.Name)) {
			out = append(out, v)
		}
	}
	return out
}

// permits reports whether the lists let an agent use a server's tool, accepted or not.
func (a *administration) permits(agent, name string) bool {
	r := a.e.at()
	chain := r.chain(agent)
	return len(chain) > 0 && !slices.ContainsFunc(chain, func(of string) bool {
		return r.agents[of].Permit(name, action.MCP).Effect != writ.Allow
	})
}

func (a *administration) upstream(c writ.Call, name string) (upstreamOf, error) {
	for _, u := range a.upstreamsOf(c) {
		if u.Name == name {
			return u, nil
		}
	}
	return upstreamOf{}, noServer(name)
}

// noServer suggests no name: the nearest may be somebody else's.
func noServer(name string) error {
	return writ.Fail(writ.NotFound, fmt.Sprintf("there is no server %q of yours; writ_upstreams_list shows them", clip(name)), nil)
}

func (a *administration) listUpstreams(_ context.Context, c writ.Call, args admin.Args) (any, error) {
	type row struct {
		Name  string `json:"name"`
		Kind  string `json:"kind"`
		State string `json:"state"`
		Tools int    `json:"tools"`
	}
	return paged(a.upstreamsOf(c), args, func(u upstreamOf) row { return row{u.Name, u.Kind, u.State, len(u.Tools)} }), nil
}

func (a *administration) showUpstream(_ context.Context, c writ.Call, args admin.Args) (any, error) {
	return a.upstream(c, args.Text("server"))
}

// testUpstream starts a program, or connects, for as long as it takes, so one is tested
// at a time.
func (a *administration) testUpstream(ctx context.Context, c writ.Call, args admin.Args) (any, error) {
	u, err := a.upstream(c, args.Text("server"))
	if err != nil {
		return nil, err
	}
	if !a.testing.TryLock() {
		return nil, writ.Fail(writ.Conflict, "a server is being tested; ask again in a moment", nil)
	}
	defer a.testing.Unlock()
	got, err := a.e.TestUpstream(ctx, u.Name)
	if writ.KindOf(err) == writ.NotFound { // it was removed a moment ago, and the engine would suggest others
		err = noServer(u.Name)
	}
	return map[string]any{"name": u.Name, "works": got.Failed == ""}, err
}
