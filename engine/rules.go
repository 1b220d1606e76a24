package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/sandbox/docker"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/define"
	"github.com/writ-run/writ/tool/external"
	"github.com/writ-run/writ/tool/web"
	"github.com/writ-run/writ/upstream"
)

// rules is everything that a lookup and a decision rest on, at one moment. A change
// (of the configuration, of what was accepted, registered or delegated) makes new
// ones and swaps them at once; calls in flight keep what they were decided under.
type rules struct {
	cfg         *config.Config
	catalog     *tool.Catalog
	decider     *decide.Decider
	agents      map[string]*access.Agent
	delegations map[string]store.Delegation // live ones, by the child's name
	loaded      []*define.Loaded            // definitions from files, as they were read
	defined     map[string]*tool.Tool       // and the tools made of them, by name
	files       map[string]string           // and where each was read
	accepted    map[string]store.Definition // what people accepted, by name
	held        map[string]string           // why a tool is suspended, by name
	registered  map[string]store.Registered // how tools count, by name
	waivers     map[string]store.Waiver     // live ones of the definitions there are, by name
	methods     map[string]bool             // tools that are methods of servers, by name
	refused     []upstream.Refusal          // what servers offer and is not taken
	offers      map[string]upstream.Offer   // what servers offered when these were made, by name
	indexes     sync.Map                    // from an agent's name to the *disclose.Index of what it may use
}

// at is the rules in force.
func (e *Engine) at() *rules { return e.rules.Load() }

// change makes new rules and swaps them in. One at a time: whoever holds e.changing.
func (e *Engine) change(ctx context.Context, cfg *config.Config, loaded []*define.Loaded) error {
	next, err := e.assemble(ctx, cfg, loaded)
	if err != nil {
		return err
	}
	e.swap(next)
	return nil
}

// swap puts new rules in force and tells those who watch. It returns the ones before.
func (e *Engine) swap(next *rules) (before *rules) {
	before = e.rules.Swap(next)
	e.prior.Store(before)
	if told := e.swapped.Swap(new(make(chan struct{}))); told != nil {
		close(*told)
	}
	return before
}

// RulesChanged is closed when the rules change after this.
func (e *Engine) RulesChanged() <-chan struct{} { return *e.swapped.Load() }

// refresh takes up what changed in the store, under the same configuration and
// definitions: a file that somebody is editing has no part in ending a delegation.
func (e *Engine) refresh(ctx context.Context) error {
	e.changing.Lock()
	defer e.changing.Unlock()
	return e.change(ctx, e.at().cfg, e.at().loaded)
}

// assemble works out the rules from a configuration, definitions, and the store, whose
// registry of tools it brings in step with them.
func (e *Engine) assemble(ctx context.Context, cfg *config.Config, loaded []*define.Loaded) (*rules, error) {
	r := &rules{
		cfg: cfg, loaded: loaded, agents: map[string]*access.Agent{}, delegations: map[string]store.Delegation{},
		defined: map[string]*tool.Tool{}, files: map[string]string{}, accepted: map[string]store.Definition{}, held: map[string]string{},
		registered: map[string]store.Registered{}, methods: map[string]bool{}, waivers: map[string]store.Waiver{},
	}
	if err := e.addTools(ctx, r); err != nil {
		return nil, err
	}
	if err := e.addAgents(ctx, r); err != nil {
		return nil, err
	}
	if err := e.enroll(ctx, r); err != nil {
		return nil, err
	}
	r.decider = decide.New(r.input())
	return r, nil
}

// addTools makes the catalog: built-in tools, those the program registered, and
// those in files, which are suspended until a person has accepted them as they are.
func (e *Engine) addTools(ctx context.Context, r *rules) error {
	tools := slices.Concat(e.builtins, e.registered)
	request, search := r.cfg.Requests(), r.cfg.Searches()
	tools = slices.DeleteFunc(tools, func(t *tool.Tool) bool {
		return t.Name == external.Name && !request || t.Name == web.SearchName && !search
	})
	accepted, err := e.store.Definitions(ctx)
	if err != nil {
		return err
	}
	for _, d := range accepted {
		r.accepted[d.Name] = d
	}
	for _, l := range r.loaded {
		t, err := l.Tool(e.boxes)
		if err != nil {
			return fmt.Errorf("%s: %w", l.File, err)
		}
		tools = append(tools, t)
		r.defined[t.Name], r.files[t.Name] = t, l.File
		if why := cmp.Or(held(t, r.accepted), led(t)); why != "" {
			r.held[t.Name] = why
		}
	}
	if tools, err = e.addUpstreams(r, tools); err != nil {
		return err
	}
	r.catalog, err = tool.NewCatalog(tools...)
	return err
}

// held is why a definition from a file is suspended, or "". A changed definition is
// a new tool (I8), and nobody has looked at a new one.
func held(t *tool.Tool, accepted map[string]store.Definition) string {
	was, known := accepted[t.Name]
	switch {
	case !known:
		return fmt.Sprintf("tool %s is new and suspended until a person accepts it: %s", t.Name, accepting(t, "accept"))
	case was.Digest != t.Digest.String():
		return fmt.Sprintf("tool %s changed and is suspended until a person accepts it: %s", t.Name, accepting(t, "diff"))
	}
	return ""
}

// accepting is what shows a person what a definition is, or what changed in it, and has it
// accepted.
func accepting(t *tool.Tool, verb string) string {
	if t.Server != nil {
		return "writ upstream accept " + t.Server.Name
	}
	return "writ tool " + verb + " " + t.Name
}

// addAgents adds the configured agents and the children they made since. A child
// that cannot be what it asked for any more is not there.
func (e *Engine) addAgents(ctx context.Context, r *rules) error {
	for i := range r.cfg.Agents {
		r.agents[r.cfg.Agents[i].Name] = &r.cfg.Agents[i]
	}
	live, err := e.store.Delegations(ctx)
	if err != nil {
		return err
	}
	for _, d := range live {
		parent, ok := r.agents[d.Parent]
		if !ok {
			continue
		}
		var req config.Request
		if err := json.Unmarshal([]byte(d.Request), &req); err != nil {
			e.log.Error("a delegation does not read, and is left out", "agent", d.Name, "err", err)
			continue
		}
		child, err := r.cfg.Delegate(parent, d.Name, req)
		if err != nil {
			e.log.Warn("a delegation does not hold under the configuration any more", "agent", d.Name, "err", err)
			continue
		}
		r.agents[d.Name], r.delegations[d.Name] = &child, d
	}
	return nil
}

func (r *rules) input() decide.Input {
	cfg, f := r.cfg, r.cfg.File
	in := decide.Input{
		Types: cfg.Types, Presets: cfg.Presets, Tools: r.catalog.All(), Rules: map[string]decide.Rule{}, Held: r.held, Registered: r.standings(),
		Commands: access.Set[[]string]{V: findPrograms(config.Programs(f.ToolAccess.RestrictedCommands), f.Sandboxing.Subprocess.ExtraSafePathPrefixes), At: cfg.At("tool_access.restricted_commands")},
		Programs: map[string][]string{}, Hide: cfg.Own(), Digest: cfg.Digest,
		Backends: decide.Backends{Default: string(f.Sandboxing.DefaultBackend), ByCategory: map[action.Category]string{},
			Wall:    map[string]time.Duration{docker.Name: time.Duration(f.Sandboxing.Docker.TimeoutSeconds) * time.Second},
			Outside: map[string]*decide.Outside{docker.Name: dockerOutside(cfg)}, ReadOnly: map[string]access.Set[bool]{docker.Name: dockerReadOnly(cfg)}},
		Limits: writ.Limits{
			Wall:  time.Duration(f.Sandboxing.Subprocess.TimeoutSeconds) * time.Second,
			Grace: time.Duration(f.Sandboxing.Subprocess.KillGraceSeconds) * time.Second,
		},
	}
	for _, a := range r.agents {
		in.Agents = append(in.Agents, *a)
	}
	for _, t := range in.Tools {
		if len(t.Programs) > 0 {
			in.Programs[t.Name] = findPrograms(t.Programs, nil)
		}
	}
	for _, h := range cfg.Egress {
		in.Hosts = append(in.Hosts, decide.HostClass{Host: h.Host, Class: h.Class, Stated: h.Stated, IPv6: h.IPv6})
	}
	in.Connections, in.SignIns = r.connections(), r.signIns()
	for c, b := range f.Sandboxing.Overrides {
		in.Backends.ByCategory[c] = string(b)
	}
	for name, t := range f.Tools {
		key := "tools." + name
		rule := decide.Rule{
			RequiresApproval: access.Set[bool]{V: t.RequiresApproval, At: cfg.At(key + ".requires_approval")},
			Disabled:         access.Set[bool]{V: t.Disabled, At: cfg.At(key + ".disabled")},
			Forbidden:        access.Set[bool]{V: t.Forbidden, At: cfg.At(key + ".forbidden")},
			Quotas:           cfg.Limits[name].Quotas, OnlyAfter: cfg.Limits[name].OnlyAfter,
			Dangerous: access.Set[bool]{V: t.Dangerous, At: cfg.At(key + ".dangerous")}, Quorum: t.Quorum,
		}
		if t.EgressClass != "" {
			rule.Class = &access.Set[writ.Class]{V: t.EgressClass.Least(), At: cfg.At(key + ".egress_class")}
		}
		in.Rules[name] = rule
	}
	return in
}

// chain is the names of an agent and its ancestors, nearest first.
func (r *rules) chain(agent string) []string {
	var out []string
	for agent != "" && len(out) < 32 {
		a, ok := r.agents[agent]
		if !ok {
			break
		}
		out = append(out, agent)
		agent = a.Parent
	}
	return out
}

// alive reports why an agent that was delegated is not there any more, or nil:
// its own time or an ancestor's is over.
func (r *rules) alive(agent string, now string) error {
	for _, name := range r.chain(agent) {
		if d, ok := r.delegations[name]; ok && d.Expires <= now {
			return writ.Fail(writ.Unauthenticated, fmt.Sprintf("the delegation of agent %s is over", name), nil)
		}
	}
	return nil
}
