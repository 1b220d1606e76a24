package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/tool/define"
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
	defined     map[string]*tool.Tool       // tools from files, by name
	files       map[string]string           // and where each was read
	accepted    map[string]store.Definition // what people accepted, by name
	held        map[string]string           // why a tool is suspended, by name
}

// at is the rules in force.
func (e *Engine) at() *rules { return e.rules.Load() }

// change makes new rules under the configuration and swaps them in. One at a time:
// whoever holds e.changing.
func (e *Engine) change(ctx context.Context, cfg *config.Config) error {
	next, err := e.assemble(ctx, cfg)
	if err != nil {
		return err
	}
	e.prior.Store(e.rules.Swap(next))
	return nil
}

// refresh takes up what changed in the store, under the same configuration.
func (e *Engine) refresh(ctx context.Context) error {
	e.changing.Lock()
	defer e.changing.Unlock()
	return e.change(ctx, e.at().cfg)
}

// assemble works out the rules from a configuration, the definitions beside it, and
// the store.
func (e *Engine) assemble(ctx context.Context, cfg *config.Config) (*rules, error) {
	r := &rules{
		cfg: cfg, agents: map[string]*access.Agent{}, delegations: map[string]store.Delegation{},
		defined: map[string]*tool.Tool{}, files: map[string]string{}, accepted: map[string]store.Definition{}, held: map[string]string{},
	}
	if err := e.addTools(ctx, r); err != nil {
		return nil, err
	}
	if err := e.addAgents(ctx, r); err != nil {
		return nil, err
	}
	in := r.input()
	if err := orderly(in); err != nil {
		return nil, err
	}
	r.decider = decide.New(in)
	return r, nil
}

// addTools makes the catalog: built-in tools, those the program registered, and
// those in files, which are suspended until a person has accepted them as they are.
func (e *Engine) addTools(ctx context.Context, r *rules) error {
	tools := slices.Concat(e.builtins, e.registered)
	accepted, err := e.store.Definitions(ctx)
	if err != nil {
		return err
	}
	for _, d := range accepted {
		r.accepted[d.Name] = d
	}
	loaded, err := definitions(r.cfg.Path, r.cfg.Types)
	if err != nil {
		return err
	}
	for _, l := range loaded {
		t, err := l.Tool(e.drivers)
		if err != nil {
			return fmt.Errorf("%s: %w", l.File, err)
		}
		t.Policy.Files = resolvedGlobs(t.Policy.Files)
		tools = append(tools, t)
		r.defined[t.Name], r.files[t.Name] = t, l.File
		if why := held(t, r.accepted); why != "" {
			r.held[t.Name] = why
		}
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
		return fmt.Sprintf("tool %s is new and suspended until a person accepts it: writ tool accept %s", t.Name, t.Name)
	case was.Digest != t.Digest.String():
		return fmt.Sprintf("tool %s changed and is suspended until a person accepts it: writ tool diff %s", t.Name, t.Name)
	}
	return ""
}

// definitions reads those beside a configuration, in tools, where no agent can
// write. Nobody has to have any.
func definitions(configPath string, types *action.Registry) ([]*define.Loaded, error) {
	dir := filepath.Join(filepath.Dir(configPath), "tools")
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return define.Dir(dir, types)
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
		Types: cfg.Types, Presets: cfg.Presets, Tools: r.catalog.All(), Rules: map[string]decide.Rule{}, Held: r.held,
		Commands: access.Set[[]string]{V: findPrograms(config.Programs(f.ToolAccess.RestrictedCommands), f.Sandboxing.Subprocess.ExtraSafePathPrefixes), At: cfg.At("tool_access.restricted_commands")},
		Hide:     hidden(cfg), Digest: cfg.Digest,
		Backends: decide.Backends{Default: string(f.Sandboxing.DefaultBackend), ByCategory: map[action.Category]string{}},
		Limits: writ.Limits{
			Wall:  time.Duration(f.Sandboxing.Subprocess.TimeoutSeconds) * time.Second,
			Grace: time.Duration(f.Sandboxing.Subprocess.KillGraceSeconds) * time.Second,
		},
	}
	for _, a := range r.agents {
		in.Agents = append(in.Agents, *a)
	}
	for c, b := range f.Sandboxing.Overrides {
		in.Backends.ByCategory[c] = string(b)
	}
	for name, t := range f.Tools {
		key := "tools." + name
		in.Rules[name] = decide.Rule{
			RequiresApproval: access.Set[bool]{V: t.RequiresApproval, At: cfg.At(key + ".requires_approval")},
			Disabled:         access.Set[bool]{V: t.Disabled, At: cfg.At(key + ".disabled")},
			Forbidden:        access.Set[bool]{V: t.Forbidden, At: cfg.At(key + ".forbidden")},
			Quotas:           cfg.Limits[name].Quotas, OnlyAfter: cfg.Limits[name].OnlyAfter,
		}
	}
	return in
}

// orderly refuses tools that could never run: after one that is not there, or
// after each other.
func orderly(in decide.Input) error {
	after := map[string][]string{}
	for _, t := range in.Tools {
		after[t.Name] = slices.Concat(t.Constraints.OnlyAfter, in.Rules[t.Name].OnlyAfter)
	}
	var walk func(name string, path []string) error
	walk = func(name string, path []string) error {
		next, ok := after[name]
		if !ok {
			return fmt.Errorf("tool %s: only_after names %q, and there is no such tool", path[len(path)-1], name)
		}
		if slices.Contains(path, name) {
			return fmt.Errorf("tools %s: each runs only after the next, so none could ever run; remove one from only_after", strings.Join(append(path, name), " → "))
		}
		for _, n := range next {
			if err := walk(n, append(path[:len(path):len(path)], name)); err != nil {
				return err
			}
		}
		return nil
	}
	for _, t := range in.Tools {
		if err := walk(t.Name, nil); err != nil {
			return err
		}
	}
	return nil
}

// hidden is writ's own: store, keys, socket, witness, configuration, and the
// definitions and profiles beside it, as they resolve. A configuration directory of
// writ's own is hidden whole, so that nothing can be put beside the file either.
func hidden(cfg *config.Config) []string {
	path := cfg.Path
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	dir := filepath.Dir(path)
	own := []string{path, filepath.Join(dir, "tools"), filepath.Join(dir, "profiles")}
	if filepath.Base(dir) == "writ" {
		own = []string{dir}
	}
	if l := cfg.File.Listen; l.Key != "" && !policy.Below(l.Key, own[0]) {
		own = append(own, l.Key)
	}
	hide := []string{cfg.StatePath}
	if !policy.Below(cfg.Witness, cfg.StatePath) {
		hide = append(hide, cfg.Witness)
	}
	return append(hide, own...)
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
