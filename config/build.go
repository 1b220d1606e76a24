package config

import (
	"errors"
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
	d     *decoder
	tools []string
}

func (c *Config) build(d *decoder, tools []string) {
	b := &builder{Config: c, d: d, tools: tools}
	b.actions()
	b.presets()
	b.buildLevels()
	b.buildRoles()
	for _, name := range sorted(c.File.Agents) {
		b.agent(name, c.File.Agents[name])
	}
	for _, name := range sorted(c.File.Tools) {
		b.tool(member("tools", name), name)
	}
	for i, p := range c.File.ToolAccess.RestrictedCommands {
		if !program(p) {
			b.fail(fmt.Sprintf("tool_access.restricted_commands[%d]", i), "%q is not the name of a program; write it without directory or arguments", p)
		}
	}
}

func (b *builder) fail(key, format string, args ...any) { b.d.reject(key, format, args...) }

func (b *builder) warn(key, format string, args ...any) {
	b.Warnings = append(b.Warnings, fmt.Sprintf("%s: %s: %s", b.At(key), key, fmt.Sprintf(format, args...)))
}

func (b *builder) tool(key, name string) {
	switch {
	case slices.Contains(access.Discovery, name):
		b.fail(key, "discovery is always permitted; remove the rule")
	case !slices.Contains(b.tools, name):
		b.fail(key, "there is no such tool%s", hint(name, b.tools))
	}
}

// program takes what can be a file's name in a directory of programs. It must not
// take "..", which would open that directory's parent.
func program(s string) bool {
	return s == "[" || ValidName(strings.ReplaceAll(s, "+", "_"))
}

func set[T any](b *builder, key string, v T) access.Set[T] { return access.Set[T]{V: v, At: b.At(key)} }

func (b *builder) actions() {
	custom := map[action.Type]action.Risk{}
	for _, name := range sorted(b.File.Actions.Custom) {
		t, risk := action.Type(name), b.File.Actions.Custom[name]
		if _, err := action.NewRegistry(map[action.Type]action.Risk{t: risk}); err != nil {
			b.fail(member("actions.custom", name), "%v", err)
			continue
		}
		custom[t] = risk
	}
	b.Types, _ = action.NewRegistry(custom) // each was taken alone
}

func (b *builder) patterns(key string, texts []string) []action.Pattern {
	var out []action.Pattern
	for i, text := range texts {
		p, err := b.Types.ParsePattern(text)
		if err != nil {
			if !b.d.unread("actions.custom") {
				b.fail(fmt.Sprintf("%s[%d]", key, i), "%s", describe(err))
			}
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
		if freed := b.freed(shipped[a], lists); len(freed) > 0 {
			b.warn(key, "runs by itself what the product's own preset asks for: %s", strings.Join(freed, ", "))
		}
	}
}

// freed lists the built-in types that ask under one preset and run under another.
// A human_approval list replaces the product's, so one that was meant to tighten
// can loosen; what loosens is said (I12).
func (b *builder) freed(before, after action.Lists) []string {
	var out []string
	for _, t := range b.Types.Types() {
		was, is := before.Of(t), after.Of(t)
		if _, custom := b.File.Actions.Custom[string(t)]; !custom && is.Named && !is.Human && (was.Human || !was.Named) {
			out = append(out, string(t))
		}
	}
	return out
}

func (b *builder) buildLevels() {
	b.levels = map[access.Level]access.Constraints{}
	for _, l := range access.Levels() {
		key := "tool_access.levels." + l.String()
		raw := b.File.ToolAccess.Levels[l]
		c := access.Defaults(l, b.Types)
		b.overlay(&c, key, Overrides{raw.FileSystem, raw.Network, raw.NetworkAllowlist, raw.Git, raw.CodeExecution, raw.Terminal, raw.RequiresApproval})
		if raw.Deployment != nil {
			if *raw.Deployment && l != access.Elevated {
				b.fail(key+".deployment", "can be true on elevated only; remove it, or name the tools in an agent's allowed list")
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
		if c.Network.V != access.AllowlistOnly && !b.d.unread(strings.TrimSuffix(key, "_allowlist")) {
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

func (b *builder) list(key string, texts []string, denies bool) access.List {
	out := access.List{} // not nil: an empty list is a list, and allows nothing
	for i, text := range texts {
		key := fmt.Sprintf("%s[%d]", key, i)
		e, err := access.ParseEntry(text)
		switch {
		case err != nil:
			var u *action.UnknownError
			if errors.As(err, &u) {
				u.Known = slices.Concat(u.Known, b.tools)
			}
			b.fail(key, "%s", describe(err))
		case denies && slices.ContainsFunc(access.Discovery, e.Match):
			b.fail(key, "%q denies discovery, which is always permitted; name the tools to deny", text)
		case denies && e.Literal() != "" && !slices.ContainsFunc(b.tools, e.Match):
			// A misspelt name in a list of what is denied would deny nothing.
			b.fail(key, "there is no tool %q to deny%s", text, spell.Hint(text, b.tools))
		case !slices.ContainsFunc(b.tools, e.Match) && !slices.ContainsFunc(access.Discovery, e.Match):
			b.warn(key, "%q matches no tool there is%s", text, spell.Hint(text, b.tools))
		}
		out = append(out, set(b, key, e))
	}
	return out
}

func (b *builder) buildRoles() {
	b.roles = access.Roles()
	for _, name := range sorted(b.File.Roles) {
		key := member("roles", name)
		if !ValidName(name) {
			b.fail(key, "a role's name %s", nameRule)
			continue
		}
		if _, taken := access.Roles()[strings.ToLower(name)]; taken {
			b.fail(key, "role %s is built in and cannot be redefined; choose another name", strings.ToLower(name))
			continue
		}
		raw := b.File.Roles[name]
		r := access.Role{Name: name, At: b.At(key), Denied: b.list(key+".denied", raw.Denied, true)}
		if raw.Allowed != nil {
			r.Allowed = b.list(key+".allowed", *raw.Allowed, false)
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
	key := member("agents", name)
	if !ValidName(name) {
		b.fail(key, "an agent's name %s", nameRule)
		return
	}
	if raw.Person != "" && !ValidName(raw.Person) {
		b.fail(key+".person", "a person's name %s", nameRule)
	}
	a := access.Agent{
		Name: name, At: b.At(key), Person: raw.Person,
		Level:    access.Set[access.Level]{V: access.Standard, At: access.BuiltIn},
		Autonomy: set(b, "autonomy.default", b.File.Autonomy.Default),
		GateArgs: access.Set[bool]{V: true, At: access.BuiltIn},
		Denied:   b.list(key+".denied", raw.Denied, true),
	}
	b.workspace(&a, key, raw)
	b.role(&a, key, raw)
	lay(b, key+".level", &a.Level, raw.Level)
	lay(b, key+".autonomy", &a.Autonomy, raw.Autonomy)
	lay(b, key+".enforce_tool_policies", &a.GateArgs, raw.Gate)
	if !a.GateArgs.V {
		b.warn(key+".enforce_tool_policies", "is false: the argument gate records and does not deny")
	}
	if raw.Allowed != nil {
		a.Allowed = b.list(key+".allowed", *raw.Allowed, false)
		if len(*raw.Allowed) == 0 && a.Level.V != access.Custom && !b.d.unread(key+".level") {
			b.fail(key+".allowed", "is empty, which adds nothing to level %s; remove it, or set level: custom to allow nothing", a.Level.V)
		}
	}
	a.Constraints = b.levels[a.Level.V]
	b.overlay(&a.Constraints, key+".overrides", raw.Overrides)
	b.Agents = append(b.Agents, a)
}

func (b *builder) workspace(a *access.Agent, key string, raw Agent) {
	if raw.Workspace == "" {
		b.fail(key+".workspace", "is missing; name one of workspaces")
		return
	}
	a.Workspace = b.workspaces[raw.Workspace]
	if _, ok := b.File.Workspaces[raw.Workspace]; !ok && !b.d.unread("workspaces") {
		b.fail(key+".workspace", "there is no workspace %q%s", raw.Workspace, hint(raw.Workspace, sorted(b.File.Workspaces)))
	}
}

func (b *builder) role(a *access.Agent, key string, raw Agent) {
	if raw.Role == "" {
		return
	}
	r, ok := b.roles[raw.Role]
	if !ok {
		if _, refused := b.File.Roles[raw.Role]; !refused && !b.d.unread("roles") {
			b.fail(key+".role", "unknown role %q%s", raw.Role, hint(raw.Role, sorted(b.roles)))
		}
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

const nameRule = "has letters, digits, _ . and -, at most 64, and begins with a letter or digit"

// ValidName reports whether s can name an agent, a person, a role or a workspace.
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
