package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/spell"
)

// builder turns the decoded file into the values that deciding works with.
type builder struct {
	*Config
	d      *decoder
	tools  []string
	levels map[access.Level]access.Constraints
	roles  map[string]access.Role
}

func (c *Config) build(d *decoder, tools []string) {
	b := &builder{Config: c, d: d, tools: tools, levels: map[access.Level]access.Constraints{}, roles: access.Roles()}
	if !b.actions() {
		return
	}
	b.presets()
	b.buildLevels()
	b.buildRoles()
	for _, name := range sorted(c.File.Agents) {
		b.agent(name, c.File.Agents[name])
	}
	for _, name := range sorted(c.File.Tools) {
		if !slices.Contains(tools, name) {
			b.fail("tools."+name, "there is no such tool%s", spell.Hint(name, tools))
		}
	}
	for i, p := range c.File.ToolAccess.RestrictedCommands {
		key := fmt.Sprintf("tool_access.restricted_commands[%d]", i)
		if p == "" || strings.ContainsAny(p, "/ \x00") || strings.HasPrefix(p, "-") {
			b.fail(key, "%q is not the name of a program; write it without directory or arguments", p)
		}
	}
}

func (b *builder) fail(key, format string, args ...any) {
	b.d.fail(b.lines[key], key, format, args...)
}

func set[T any](b *builder, key string, v T) access.Set[T] { return access.Set[T]{V: v, At: b.At(key)} }

func (b *builder) actions() bool {
	custom := map[action.Type]action.Risk{}
	for name, risk := range b.File.Actions.Custom {
		custom[action.Type(name)] = risk
		if _, err := action.NewRegistry(map[action.Type]action.Risk{action.Type(name): risk}); err != nil {
			b.fail("actions.custom."+name, "%v", err)
		}
	}
	var err error
	b.Types, err = action.NewRegistry(custom)
	return err == nil
}

func (b *builder) patterns(key string, texts []string) []action.Pattern {
	var out []action.Pattern
	for i, text := range texts {
		p, err := b.Types.ParsePattern(text)
		if err != nil {
			b.fail(fmt.Sprintf("%s[%d]", key, i), "%s", describe(err))
			continue
		}
		out = append(out, p)
	}
	return out
}

func (b *builder) presets() {
	b.Presets = map[access.Autonomy]access.Set[action.Lists]{}
	shipped := access.Presets(b.Types)
	for _, a := range access.Autonomies() {
		key := "autonomy.presets." + a.String()
		lists := shipped[a]
		if p := b.File.Autonomy.Presets[a].AutoApprove; p != nil {
			lists.Auto = b.patterns(key+".auto_approve", *p)
		}
		if p := b.File.Autonomy.Presets[a].HumanApproval; p != nil {
			lists.Human = b.patterns(key+".human_approval", *p)
		}
		b.Presets[a] = set(b, key, lists)
	}
}

func (b *builder) buildLevels() {
	for _, l := range access.Levels() {
		key := "tool_access.levels." + l.String()
		raw := b.File.ToolAccess.Levels[l]
		c := access.Defaults(l, b.Types)
		b.overlay(&c, key, Overrides{raw.FileSystem, raw.Network, raw.NetworkAllowlist, raw.Git, raw.CodeExecution, raw.Terminal, raw.RequiresApproval})
		if raw.Deployment != nil {
			if *raw.Deployment && l != access.Elevated {
				b.fail(key+".deployment", "can be true on elevated only")
			}
			c.Deployment = set(b, key+".deployment", *raw.Deployment)
		}
		b.levels[l] = c
	}
}

// overlay lays what is written over what was there.
func (b *builder) overlay(c *access.Constraints, key string, o Overrides) {
	lay(b, key+".file_system", &c.FileSystem, o.FileSystem)
	lay(b, key+".network", &c.Network, o.Network)
	lay(b, key+".git", &c.Git, o.Git)
	lay(b, key+".code_execution", &c.CodeExecution, o.CodeExecution)
	lay(b, key+".terminal", &c.Terminal, o.Terminal)
	if o.NetworkAllowlist != nil {
		key := key + ".network_allowlist"
		c.Allowlist = set(b, key, b.hosts(key, *o.NetworkAllowlist))
		if c.Network.V != access.AllowlistOnly {
			b.fail(key, "has no effect with network: %s; set network: allowlist_only or remove the list", c.Network.V)
		}
	}
	if o.RequiresApproval != nil {
		key := key + ".requires_approval"
		c.RequiresApproval = set(b, key, b.patterns(key, *o.RequiresApproval))
	}
}

func lay[T any](b *builder, key string, dst *access.Set[T], v *T) {
	if v != nil {
		*dst = set(b, key, *v)
	}
}

func (b *builder) hosts(key string, texts []string) host.Patterns {
	var out host.Patterns
	for i, text := range texts {
		p, err := host.ParsePattern(text)
		if err != nil {
			b.fail(fmt.Sprintf("%s[%d]", key, i), "%v", err)
			continue
		}
		out = append(out, p)
	}
	return out
}

func (b *builder) list(key string, texts []string) access.List {
	out := access.List{} // not nil: an empty list is a list, and allows nothing
	for i, text := range texts {
		key := fmt.Sprintf("%s[%d]", key, i)
		e, err := access.ParseEntry(text)
		if err != nil {
			b.fail(key, "%s", describe(err))
			continue
		}
		if !slices.ContainsFunc(b.tools, e.Match) && !slices.Contains(access.Words(), strings.ToLower(text)) {
			b.Warnings = append(b.Warnings, fmt.Sprintf("%s: %s: %q matches no tool there is%s", b.At(key), key, text, spell.Hint(text, b.tools)))
		}
		out = append(out, set(b, key, e))
	}
	return out
}

func (b *builder) denied(key string, texts []string) access.List {
	l := b.list(key, texts)
	for i, e := range l {
		if slices.ContainsFunc(access.Discovery, e.V.Match) {
			b.fail(fmt.Sprintf("%s[%d]", key, i), "%q denies discovery, which is always permitted; name the tools to deny", e.V.Text)
		}
	}
	return l
}

func (b *builder) buildRoles() {
	for _, name := range sorted(b.File.Roles) {
		key := "roles." + name
		if _, taken := b.roles[name]; taken {
			b.fail(key, "role %s is built in and cannot be redefined; choose another name", name)
			continue
		}
		raw := b.File.Roles[name]
		r := access.Role{Name: name, At: b.At(key), Denied: b.denied(key+".denied", raw.Denied)}
		if raw.Allowed != nil {
			r.Allowed = b.list(key+".allowed", *raw.Allowed)
		}
		if raw.Level != nil {
			s := set(b, key+".level", *raw.Level)
			r.Level = &s
		}
		if raw.Autonomy != nil {
			s := set(b, key+".autonomy", *raw.Autonomy)
			r.Autonomy = &s
		}
		b.roles[name] = r
	}
}

func (b *builder) agent(name string, raw Agent) {
	key := "agents." + name
	if !ValidName(name) {
		b.fail(key, "an agent's name has letters, digits, _ . and -, at most 64, and begins with a letter or digit")
		return
	}
	a := access.Agent{
		Name: name, At: b.At(key), Person: raw.Person,
		Level:    access.Set[access.Level]{V: access.Standard, At: access.BuiltIn},
		Autonomy: set(b, "autonomy.default", b.File.Autonomy.Default),
		GateArgs: access.Set[bool]{V: true, At: access.BuiltIn},
		Denied:   b.denied(key+".denied", raw.Denied),
	}
	b.workspace(&a, key, raw)
	b.role(&a, key, raw)
	lay(b, key+".level", &a.Level, raw.Level)
	lay(b, key+".autonomy", &a.Autonomy, raw.Autonomy)
	lay(b, key+".enforce_tool_policies", &a.GateArgs, raw.Gate)
	if !a.GateArgs.V {
		b.Warnings = append(b.Warnings, fmt.Sprintf("%s: agent %s: enforce_tool_policies is false: the argument gate records and does not deny", a.GateArgs.At, name))
	}
	if raw.Allowed != nil {
		a.Allowed = b.list(key+".allowed", *raw.Allowed)
		if len(*raw.Allowed) == 0 && a.Level.V != access.Custom {
			b.fail(key+".allowed", "is empty, which adds nothing to level %s; remove it, or set level: custom to allow nothing", a.Level.V)
		}
	}
	a.Constraints = b.levels[a.Level.V]
	b.overlay(&a.Constraints, key+".overrides", raw.Overrides)
	b.Agents = append(b.Agents, a)
}

func (b *builder) workspace(a *access.Agent, key string, raw Agent) {
	if raw.Workspace == "" {
		b.fail(key, "has no workspace; name one of workspaces")
		return
	}
	w, ok := b.workspaces[raw.Workspace]
	if !ok {
		b.fail(key+".workspace", "there is no workspace %q%s", raw.Workspace, hint(raw.Workspace, sorted(b.workspaces)))
	}
	a.Workspace = w
}

func (b *builder) role(a *access.Agent, key string, raw Agent) {
	if raw.Role == "" {
		return
	}
	r, ok := b.roles[raw.Role]
	if !ok {
		b.fail(key+".role", "unknown role %q%s", raw.Role, hint(raw.Role, sorted(b.roles)))
		return
	}
	a.Role = &r
	if r.Level != nil {
		a.Level = *r.Level
	}
	if r.Autonomy != nil {
		a.Autonomy = *r.Autonomy
	}
}

// ValidName reports whether s can name an agent or a person.
func ValidName(s string) bool {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return s != "" && len(s) <= 64 && strings.Trim(s[:1], letters) == "" && strings.Trim(s, letters+"_.-") == ""
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
