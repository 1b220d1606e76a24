package config

import (
	"slices"
	"strings"

	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/strict"
)

func (b *builder) buildRoles() {
	b.roles = access.Roles()
	for _, name := range sorted(b.File.Roles) {
		key := strict.Member("roles", name)
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
		b.roleConstraints(name, r)
		b.roles[name] = r
	}
}

// roleConstraints says what is wrong with a role's constraints, once; agents of the
// role lay them over their own level.
func (b *builder) roleConstraints(name string, r access.Role) {
	level := access.Standard
	if r.Level != nil {
		level = r.Level.V
	}
	c := b.levels[level]
	b.overlay(&c, strict.Member("roles", name)+".constraints", b.File.Roles[name].Constraints)
}

// quiet is a builder whose complaints go nowhere, since they were made before.
func (b *builder) quiet() *builder {
	q := *b
	q.d = source("")
	return &q
}

func (b *builder) agent(name string, raw Agent) {
	key := strict.Member("agents", name)
	if !ValidName(name) {
		b.fail(key, "an agent's name %s", nameRule)
		return
	}
	if raw.Person != "" && !ValidName(raw.Person) {
		b.fail(key+".person", "a person's name %s", nameRule)
	}
	a := access.Agent{
		Name: name, At: b.At(key), Person: raw.Person, Parent: raw.Parent,
		Level:    access.Set[access.Level]{V: access.Standard, At: access.BuiltIn},
		Autonomy: set(b, "autonomy.default", b.File.Autonomy.Default),
		GateArgs: access.Set[bool]{V: true, At: access.BuiltIn},
		Denied:   b.list(key+".denied", raw.Denied, true),
	}
	b.workspace(&a, key, raw)
	role := b.profile(&a, key, raw)
	b.role(&a, key, role)
	lay(b, key+".level", &a.Level, raw.Level)
	lay(b, key+".autonomy", &a.Autonomy, raw.Autonomy)
	lay(b, key+".enforce_tool_policies", &a.GateArgs, raw.Gate)
	if !a.GateArgs.V {
		b.warn(key+".enforce_tool_policies", "is false: the argument gate records and does not deny")
	}
	if raw.Allowed != nil {
		a.Allowed = b.list(key+".allowed", *raw.Allowed, false)
		if len(*raw.Allowed) == 0 && a.Level.V != access.Custom && !b.d.Unread(key+".level") {
			b.fail(key+".allowed", "is empty, which adds nothing to level %s; remove it, or set level: custom to allow nothing", a.Level.V)
		}
	}
	a.Constraints = b.levels[a.Level.V]
	if a.Role != nil {
		b.quiet().overlay(&a.Constraints, strict.Member("roles", role)+".constraints", b.File.Roles[role].Constraints)
	}
	b.overlay(&a.Constraints, key+".overrides", raw.Overrides)
	b.certificates(name, key, raw.Certificates)
	b.users(name, key, raw.Users)
	b.Agents = append(b.Agents, a)
}

func (b *builder) workspace(a *access.Agent, key string, raw Agent) {
	if raw.Workspace == "" {
		if raw.Parent == "" { // else it is the parent's
			b.fail(key+".workspace", "is missing; name one of workspaces")
		}
		return
	}
	a.Workspace = b.workspaces[raw.Workspace]
	if _, ok := b.File.Workspaces[raw.Workspace]; !ok && !b.d.Unread("workspaces") {
		b.fail(key+".workspace", "there is no workspace %q%s", raw.Workspace, strict.Hint(raw.Workspace, sorted(b.File.Workspaces)))
	}
}

func (b *builder) role(a *access.Agent, key, name string) {
	if name == "" {
		return
	}
	r, ok := b.roles[name]
	if !ok {
		if _, refused := b.File.Roles[name]; !refused && !b.d.Unread("roles") {
			b.fail(strings.TrimPrefix(key+".role", "."), "unknown role %q%s", name, strict.Hint(name, sorted(b.roles)))
		}
		return
	}
	if a.Role != nil { // the profile's own lists stand before the role's
		r.Allowed, r.Denied, r.Name = a.Role.Allowed, slices.Concat(a.Role.Denied, r.Denied), a.Role.Name
	}
	a.Role = &r
	if r.Level != nil {
		a.Level = *r.Level
	}
	if r.Autonomy != nil {
		a.Autonomy = *r.Autonomy
	}
}

// parents joins agents to the ones they were delegated by. What a child does not
// say of where and for whom it works is its parent's.
func (b *builder) parents() {
	byName := map[string]*access.Agent{}
	for i := range b.Agents {
		byName[b.Agents[i].Name] = &b.Agents[i]
	}
	for _, name := range sorted(byName) {
		b.inherit(byName[name], byName)
	}
}

// maxDepth is how many agents may stand above one.
const maxDepth = 8

func (b *builder) inherit(a *access.Agent, byName map[string]*access.Agent) {
	key := strict.Member("agents", a.Name) + ".parent"
	depth := 0
	for up := a; up.Parent != ""; depth++ {
		above, ok := byName[up.Parent]
		switch {
		case !ok && up == a && !slices.Contains(sorted(b.File.Agents), a.Parent):
			b.fail(key, "there is no agent %q%s", a.Parent, strict.Hint(a.Parent, sorted(b.File.Agents)))
			return
		case !ok:
			return // said elsewhere
		case above == a:
			b.fail(key, "agent %s would be its own ancestor", a.Name)
			return
		case depth == maxDepth:
			b.fail(key, "more than %d agents stand above %s", maxDepth, a.Name)
			return
		}
		if up = above; a.Workspace.Path == "" {
			a.Workspace = above.Workspace
		}
		if a.Person == "" {
			a.Person = above.Person
		}
	}
}
