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
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool"
)

// builder turns the decoded file into the values that deciding works with.
type builder struct {
	*Config
	d     *strict.File
	tools []string
	at    string // where everything was written, when it was not in the file
	place string // goes before what is said, where that is about another file
}

func (b *builder) build(tools Tools) {
	c, err := b.Config, error(nil)
	if b.tools, err = tools(b.Types); err != nil {
		c.toolsErr = err // and what the file says of tools cannot be judged
		return
	}
	c.tools = b.tools
	b.presets()
	b.buildLevels()
	b.buildRoles()
	for _, name := range sorted(c.File.Agents) {
		b.agent(name, c.File.Agents[name])
	}
	b.parents()
	b.Limits = map[string]Limits{}
	for _, name := range sorted(c.File.Tools) {
		b.tool(strict.Member("tools", name), name, c.File.Tools[name])
	}
	for i, p := range c.File.ToolAccess.RestrictedCommands {
		if !program(p) {
			b.fail(fmt.Sprintf("tool_access.restricted_commands[%d]", i), "%q is not the name of a program; write it without directory or arguments", p)
		} else if _, written := c.lines["tool_access.restricted_commands"]; written && !c.hasProgram(p) {
			b.warn(fmt.Sprintf("tool_access.restricted_commands[%d]", i), "there is no program %q in %s", p, strings.Join(c.programPath(), ", "))
		}
	}
}

func (b *builder) fail(key, format string, args ...any) {
	b.d.Reject(key, "%s", b.place+fmt.Sprintf(format, args...))
}

func (b *builder) warn(key, format string, args ...any) {
	if b.at != "" {
		return // a request warns nobody; what it names and is not there, it does not get
	}
	b.Warnings = append(b.Warnings, fmt.Sprintf("%s: %s: %s", b.At(key), key, b.place+fmt.Sprintf(format, args...)))
}

func (b *builder) tool(key, name string, raw ToolRule) {
	switch {
	case slices.Contains(access.Discovery, name):
		b.fail(key, "discovery is always permitted; remove the rule")
	case !slices.Contains(b.tools, name) && !b.ofUpstream(name):
		b.fail(key, "there is no such tool%s", strict.Hint(name, b.tools))
	}
	b.git(key, name, raw)
	var l Limits
	if raw.MaxInvocations != "" {
		qs, err := tool.ParseQuotas(raw.MaxInvocations)
		if err != nil {
			b.fail(key+".max_invocations", "%v", err)
		}
		l.Quotas = qs
	}
	if raw.Rate != "" {
		q, err := tool.ParseRate(raw.Rate)
		if err != nil {
			b.fail(key+".rate", "%v", err)
		}
		l.Quotas = append(l.Quotas, q)
	}
	for i, after := range raw.OnlyAfter {
		key := fmt.Sprintf("%s.only_after[%d]", key, i)
		switch {
		case after == name:
			b.fail(key, "names the tool itself, which could then never run")
		case !slices.Contains(b.tools, after) && !b.ofUpstream(after):
			b.fail(key, "there is no tool %q%s", after, strict.Hint(after, b.tools))
		}
	}
	l.OnlyAfter = raw.OnlyAfter
	b.Limits[name] = l
	if _, given := b.lines[key+".dangerous"]; given && !raw.Dangerous {
		b.fail(key+".dangerous", "false lowers nothing here; remove it, and a person waives it for the definition there is: writ tool waive %s --not-dangerous", name)
	}
	if _, given := b.lines[key+".quorum"]; given && (raw.Quorum < 1 || raw.Quorum > maxQuorum) {
		b.fail(key+".quorum", "must be 1 to %d people", maxQuorum)
	}
}

// ofUpstream reports whether a name, or a pattern, is of a tool that an upstream server
// may have.
func (b *builder) ofUpstream(text string) bool {
	for name, u := range b.File.Upstreams {
		if u.Prefix == "none" && slices.Contains(u.Enabled, text) || u.Prefix != "none" && strings.HasPrefix(text, name+"__") ||
			text == "@"+name || strings.HasPrefix(text, "@"+name+":") {
			return true
		}
	}
	return false
}

// program takes what can be a file's name in a directory of programs. It must not
// take "..", which would open that directory's parent.
func program(s string) bool {
	return s == "[" || ValidName(strings.ReplaceAll(s, "+", "_"))
}

func set[T any](b *builder, key string, v T) access.Set[T] {
	if b.at != "" {
		return access.Set[T]{V: v, At: b.at}
	}
	return access.Set[T]{V: v, At: b.At(key)}
}

func (b *builder) actions() {
	custom := map[action.Type]action.Risk{}
	for _, name := range sorted(b.File.Actions.Custom) {
		t, risk := action.Type(name), b.File.Actions.Custom[name]
		if _, err := action.NewRegistry(map[action.Type]action.Risk{t: risk}); err != nil {
			b.fail(strict.Member("actions.custom", name), "%v", err)
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
			if !b.d.Unread("actions.custom") {
				b.fail(fmt.Sprintf("%s[%d]", key, i), "%s", strict.Describe(err))
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
		if c.Network.V != access.AllowlistOnly && !b.d.Unread(strings.TrimSuffix(key, "_allowlist")) {
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
		out = append(out, set(b, key, b.entry(key, text, denies)))
	}
	return out
}

// entry reads one entry of a list, and says what is wrong with it at the key.
func (b *builder) entry(key, text string, denies bool) access.Entry {
	e, err := access.ParseEntry(text)
	switch {
	case err != nil:
		var u *action.UnknownError
		if errors.As(err, &u) {
			u.Known = slices.Concat(u.Known, b.tools)
		}
		b.fail(key, "%s", strict.Describe(err))
	case denies && slices.ContainsFunc(access.Discovery, e.Match):
		b.fail(key, "%q denies discovery, which is always permitted; name the tools to deny", text)
	case b.ofUpstream(text): // which tools it has shows when it is connected
	case denies && e.Literal() != "" && !slices.ContainsFunc(b.tools, e.Match):
		// A misspelt name in a list of what is denied would deny nothing.
		b.fail(key, "there is no tool %q to deny%s", text, spell.Hint(text, b.tools))
	case b.at != "" && e.Literal() != "" && !slices.ContainsFunc(b.tools, e.Match):
		// Nobody reads warnings of a request.
		b.fail(key, "there is no tool %q%s", text, spell.Hint(text, slices.Concat(access.Words(), b.tools)))
	case !slices.ContainsFunc(b.tools, e.Match) && !slices.ContainsFunc(access.Discovery, e.Match):
		b.warn(key, "%q matches no tool there is%s", text, spell.Hint(text, b.tools))
	}
	return e
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
