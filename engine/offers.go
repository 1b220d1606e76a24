package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/upstream"
	"github.com/writ-run/writ/wire"
)

// Methods are what servers have beside tools. Each is a tool all the same, of every
// server that has it, so that the gate decides about it like about any other.
type Method struct {
	tool, rpc, title string
	schema           string
	has              func(upstream.Offer) bool
}

// The methods, by what they are for.
var (
	ReadResource = Method{"read_resource", "resources/read", "Read a resource", `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`, hasResources}
	// WatchResource has the server tell when a resource changes.
	WatchResource   = Method{"watch_resource", "resources/subscribe", "Be told of a resource", `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`, hasResources}
	UnwatchResource = Method{"unwatch_resource", "resources/unsubscribe", "Be told of a resource no more", `{"type":"object","properties":{"uri":{"type":"string"}},"required":["uri"]}`, hasResources}
	GetPrompt       = Method{"get_prompt", "prompts/get", "Get a prompt", `{"type":"object","properties":{"name":{"type":"string"},"arguments":{"type":"object"}},"required":["name"]}`, hasPrompts}
	Complete        = Method{"complete", "completion/complete", "Complete an argument", `{"type":"object","properties":{"ref":{"type":"object"},"argument":{"type":"object"},"context":{"type":"object"}},"required":["ref","argument"]}`,
		func(o upstream.Offer) bool { return hasResources(o) || hasPrompts(o) }}
	methods = []Method{ReadResource, WatchResource, UnwatchResource, GetPrompt, Complete}
)

func hasResources(o upstream.Offer) bool { return len(o.Resources)+len(o.Templates) > 0 }
func hasPrompts(o upstream.Offer) bool   { return len(o.Prompts) > 0 }

// Of is the name of a method's tool at a server.
func (m Method) Of(server string) string { return upstream.Name(server, m.tool) }

// methodTool is the tool of a method. What it returns goes to MCP clients unchanged.
func (u *upstreams) methodTool(s *server, m Method) (*tool.Tool, error) {
	spec, err := wire.Marshal(map[string]any{"server": s.name, "method": m.rpc, "at": s.at()})
	if err != nil {
		return nil, err
	}
	return tool.New(tool.Definition{
		Name: m.Of(s.name), Title: m.title + " of " + s.name, Description: m.title + " of the MCP server " + s.name + ".", Category: action.MCP, Action: action.MCP.Default(),
		Class: writ.ClassReadOnly, Schema: json.RawMessage(m.schema), Runs: tool.InProcess, Runner: tool.Runner{Kind: tool.MCP, Spec: json.RawMessage(spec)}, Untrusted: true,
		Policy: policy.Policy{}, Hints: tool.Hints{ReadOnly: new(true)},
	}, func(ctx context.Context, w writ.Writ) (writ.Result, error) {
		var params map[string]json.RawMessage
		if err := json.Unmarshal([]byte(w.Call().Args), &params); err != nil {
			return writ.Result{}, err
		}
		raw, err := u.asks(ctx, s, m.rpc, params)
		if err != nil {
			return serverSaid(err)
		}
		if upstream.ResultType(raw) == "input_required" {
			return wantsInput(raw), nil
		}
		return writ.Result{Content: string(raw), Metadata: map[string]any{"mcp_result": raw}}, nil
	})
}

// Entry is a resource, a template or a prompt of a server.
type Entry struct {
	Key    string // a URI, a pattern of them, or a prompt's name as writ has it
	Server string
	Own    string // what the server calls it
	Raw    json.RawMessage
}

// Offered is what servers have beside tools, as far as an agent may use it.
type Offered struct{ Resources, Templates, Prompts []Entry }

// Offered lists it. What two servers both have under one name is left out: taking one
// of them would be choosing for the caller.
func (e *Engine) Offered(agent string) Offered {
	r := e.at()
	var out Offered
	servers := e.upstreams.names()
	for _, s := range e.upstreams.all() {
		offer, ok := s.Offer()
		if !ok {
			continue
		}
		if r.decider.Visible(agent, ReadResource.Of(s.name)) {
			for _, x := range offer.Resources {
				out.Resources = append(out.Resources, Entry{x.URI, s.name, x.URI, x.Shown})
			}
			for _, x := range offer.Templates {
				out.Templates = append(out.Templates, Entry{x.URI, s.name, x.URI, x.Shown})
			}
		}
		if r.decider.Visible(agent, GetPrompt.Of(s.name)) {
			for _, x := range offer.Prompts {
				name := upstream.Name(s.name, x.Name)
				if s.cfg.Prefix == "none" {
					name = x.Name
				}
				if (upstream.Origin{Server: s.name, Tool: name, Bare: s.cfg.Prefix == "none"}).Intrudes(servers) {
					continue
				}
				out.Prompts = append(out.Prompts, Entry{name, s.name, x.Name, renamed(x.Shown, name)})
			}
		}
	}
	for _, list := range []*[]Entry{&out.Resources, &out.Templates, &out.Prompts} {
		*list = single(*list)
	}
	return out
}

// renamed is a definition under writ's name for it.
func renamed(raw json.RawMessage, name string) json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return raw
	}
	m["name"], _ = json.Marshal(name)
	b, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return b
}

// single sorts a list and leaves out what is in it more than once.
func single(list []Entry) []Entry {
	slices.SortStableFunc(list, func(a, b Entry) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Server, b.Server))
	})
	var out []Entry
	for i, x := range list {
		if i > 0 && list[i-1].Key == x.Key || i+1 < len(list) && list[i+1].Key == x.Key {
			continue
		}
		out = append(out, x)
	}
	return out
}

// WhoseResource is the server of a resource that an agent may read: one that lists it,
// or else the only one whose templates it fits. It makes no list of everything: servers
// can have it asked as often as they tell of a change.
func (e *Engine) WhoseResource(agent, uri string) (string, error) {
	r := e.at()
	var lists, fits []string
	hidden := false // one lists it that the agent may not read
	for _, s := range e.upstreams.all() {
		offer, ok := s.Offer()
		if !ok {
			continue
		}
		visible := r.decider.Visible(agent, ReadResource.Of(s.name))
		switch listed := slices.ContainsFunc(offer.Resources, func(x upstream.Resource) bool { return x.URI == uri }); {
		case listed && visible:
			lists = append(lists, s.name)
		case listed:
			hidden = true
		case visible && slices.ContainsFunc(offer.Templates, func(x upstream.Template) bool { return x.Fits(uri) }):
			fits = append(fits, s.name)
		}
	}
	switch { // one that several list is nobody's, and no template's either
	case len(lists) == 1:
		return lists[0], nil
	case len(lists) == 0 && !hidden && len(fits) == 1:
		return fits[0], nil
	}
	return "", writ.Fail(writ.NotFound, fmt.Sprintf("there is no resource %q", clip(uri)), nil)
}

// WhosePrompt is a prompt by writ's name for it.
func (e *Engine) WhosePrompt(agent, name string) (Entry, error) {
	for _, x := range e.Offered(agent).Prompts {
		if x.Key == name {
			return x, nil
		}
	}
	return Entry{}, writ.Fail(writ.NotFound, fmt.Sprintf("there is no prompt %q", clip(name)), nil)
}

// firstWait is how long a list waits for a server that is being connected with for the
// first time. Many clients read a list once, and would never see its tools.
const firstWait = 2 * time.Second

// Settled waits, within reason, until what servers offer that were just started is there.
func (e *Engine) Settled(ctx context.Context) {
	for _, s := range e.upstreams.all() {
		e.settled(ctx, s)
	}
}

func (e *Engine) settled(ctx context.Context, s *server) {
	ctx, cancel := context.WithDeadline(ctx, s.State().Since.Add(firstWait))
	defer cancel()
	for ctx.Err() == nil {
		changed := e.RulesChanged()
		if _, known := e.at().offers[s.name]; known {
			return
		}
		if _, read := s.Offer(); !read {
			if s.State().Failures > 0 || s.Ready(ctx) != nil {
				return
			}
			continue // it is ready, and so it was read
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// Absent is why a tool is not there that a person accepted and an agent may use: its
// server is being started, or cannot be reached. It is nil for every other name.
func (e *Engine) Absent(ctx context.Context, agent, name string) error {
	s := e.absent(agent, name)
	if s == nil {
		return nil
	}
	e.settled(ctx, s)
	if s = e.absent(agent, name); s == nil {
		return nil
	}
	is := "is not connected"
	if p := s.State(); p.Failures == 0 && p.Phase != upstream.Failed && p.Phase != upstream.Closed {
		is = "is starting"
	}
	return writ.Fail(writ.Conflict, fmt.Sprintf("server %s, whose tool %s is, %s; nothing was done, try again in a moment", s.name, name, is), nil)
}

// absent is the server of such a tool; nil: there is none.
func (e *Engine) absent(agent, name string) *server {
	r := e.at()
	if _, there := r.catalog.Lookup(name); there {
		return nil
	}
	s := e.serves(r, name)
	if s == nil {
		return nil
	}
	for _, a := range r.chain(agent) {
		if r.agents[a].Permit(name, action.MCP).Effect != writ.Allow {
			return nil
		}
	}
	if _, known := r.offers[s.name]; known { // it is there, and has no such tool any more
		return nil
	}
	return s
}

// serves is the server that a tool was of when a person accepted it; nil: none.
func (e *Engine) serves(r *rules, name string) *server {
	var was struct {
		Runner struct{ Spec struct{ Server string } }
	}
	if json.Unmarshal([]byte(r.accepted[name].Body), &was) != nil { // nobody accepted it
		return nil
	}
	return e.upstreams.find(was.Runner.Spec.Server)
}
