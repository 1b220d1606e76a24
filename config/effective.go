package config

import (
	"encoding"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/wire"
)

// Value is one effective value and where it came from.
type Value struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Effective lists every value in force, written or built in, in order of keys.
// What is resolved (paths, agents, roles, levels, presets) is listed as resolved.
// What goes to an MCP server with every request, or into its environment, is hidden, and so
// is all but the host of a webhook.
func (c *Config) Effective() []Value {
	out := c.values()
	for i, v := range out {
		if strings.HasPrefix(v.Key, "upstreams.") && (strings.Contains(v.Key, ".headers.") && !strings.Contains(v.Key, ".auth.") || strings.Contains(v.Key, ".env.")) {
			out[i].Value = Hidden
		}
		if strings.HasPrefix(v.Key, "approvals.webhooks.") && strings.HasSuffix(v.Key, ".url") {
			out[i].Value = shownHook(v.Value)
		}
	}
	return out
}

// values is every value as it is.
func (c *Config) values() []Value {
	var out []Value
	say := func(key string, v any, at string) { out = append(out, Value{key, show(v), at}) }
	rest := *c.File // what is in force as it is written
	rest.Store, rest.Workspaces, rest.Agents, rest.Roles = Store{}, nil, nil, nil
	rest.ToolAccess.Levels, rest.Autonomy.Presets = nil, nil
	rest.Upstreams = maps.Clone(rest.Upstreams)
	for name, u := range rest.Upstreams {
		rest.Upstreams[name] = u.InForce()
	}
	rest.Connections = maps.Clone(rest.Connections)
	for name, n := range rest.Connections {
		rest.Connections[name] = n.InForce()
	}
	rest.Secrets.Store.KeyFile = c.SecretKeyFile()
	rest.Approvals.Webhooks = maps.Clone(rest.Approvals.Webhooks)
	for name, w := range rest.Approvals.Webhooks {
		rest.Approvals.Webhooks[name] = w.InForce()
	}
	flatten(reflect.ValueOf(rest), "", func(key string, v any) {
		if !strict.Within(key, "store") {
			say(key, v, c.At(key))
		}
	})
	say("store.path", c.StatePath, c.At("store.path"))
	say("store.witness", c.Witness, c.At("store.witness"))
	for name, w := range c.workspaces {
		k := strict.Member("workspaces", name)
		say(k+".path", w.Path, c.At(k+".path"))
		say(k+".project", w.Project, c.At(k+".project"))
	}
	for i := range c.Agents {
		c.sayAgent(&c.Agents[i], say)
	}
	for name, r := range c.roles {
		c.sayRole(strict.Member("roles", name)+".", r, say)
	}
	for l, v := range c.levels {
		k := "tool_access.levels." + l.String() + "."
		say(k+"description", c.File.ToolAccess.Levels[l].Description, c.At(k+"description"))
		say(k+"deployment", v.Deployment.V, v.Deployment.At)
		sayConstraints(k, v, say)
	}
	for a, p := range c.Presets {
		k := "autonomy.presets." + a.String() + "."
		say(k+"auto_approve", patternTexts(p.V.Auto), c.At(k+"auto_approve"))
		say(k+"human_approval", patternTexts(p.V.Human), c.At(k+"human_approval"))
	}
	slices.SortFunc(out, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// digest covers what is in force and not where it is written, so that a comment
// does not void the approvals that rest on it.
func (c *Config) digest() (writ.Digest, error) {
	values := map[string]string{}
	for _, v := range c.values() {
		values[v.Key] = v.Value
	}
	canonical, err := wire.Marshal(values)
	if err != nil {
		return writ.Digest{}, err
	}
	return wire.Digest(canonical), nil
}

func (c *Config) sayAgent(a *access.Agent, say func(string, any, string)) {
	k := strict.Member("agents", a.Name) + "."
	raw := c.File.Agents[a.Name]
	say(k+"workspace", a.Workspace.Name, c.At(k+"workspace"))
	say(k+"parent", a.Parent, c.At(k+"parent"))
	say(k+"profile", raw.Profile, c.At(k+"profile"))
	say(k+"person", a.Person, c.At(k+"person"))
	say(k+"role", raw.Role, c.At(k+"role"))
	say(k+"level", a.Level.V, a.Level.At)
	say(k+"autonomy", a.Autonomy.V, a.Autonomy.At)
	say(k+"enforce_tool_policies", a.GateArgs.V, a.GateArgs.At)
	say(k+"certificates", raw.Certificates, c.At(k+"certificates"))
	say(k+"users", raw.Users, c.At(k+"users"))
	say(k+"denied", entryTexts(a.Denied), c.At(k+"denied"))
	if a.Allowed != nil { // none is not the empty list
		say(k+"allowed", entryTexts(a.Allowed), c.At(k+"allowed"))
	}
	if raw.Profile != "" && a.Role != nil {
		say(k+"profile.denied", entryTexts(a.Role.Denied), listAt(a.Role.Denied, a.Role.At))
		if a.Role.Allowed != nil {
			say(k+"profile.allowed", entryTexts(a.Role.Allowed), listAt(a.Role.Allowed, a.Role.At))
		}
	}
	if a.Servers != nil {
		say(k+"profile.mcpServers", a.Servers.Names, a.Servers.At)
	}
	sayConstraints(k+"overrides.", a.Constraints, say)
}

func (c *Config) sayRole(k string, r access.Role, say func(string, any, string)) {
	say(k+"denied", entryTexts(r.Denied), c.At(k+"denied"))
	if r.Allowed != nil {
		say(k+"allowed", entryTexts(r.Allowed), c.At(k+"allowed"))
	}
	if r.Level != nil {
		say(k+"level", r.Level.V, r.Level.At)
	}
	if r.Autonomy != nil {
		say(k+"autonomy", r.Autonomy.V, r.Autonomy.At)
	}
	c.sayOverrides(k+"constraints.", c.File.Roles[r.Name].Constraints, say)
}

// listAt is where a list begins.
func listAt(l access.List, missing string) string {
	if len(l) == 0 {
		return missing
	}
	return l[0].At
}

// sayOverrides lists what is written of the six; the rest is the level's.
func (c *Config) sayOverrides(k string, o Overrides, say func(string, any, string)) {
	v := reflect.ValueOf(o)
	for i, name := range strict.Fields(v.Type()) {
		if f := v.Field(i); !f.IsNil() {
			say(k+name, f.Elem().Interface(), c.At(k+name))
		}
	}
}

func sayConstraints(k string, v access.Constraints, say func(string, any, string)) {
	hosts := make([]string, len(v.Allowlist.V))
	for i, p := range v.Allowlist.V {
		hosts[i] = p.String()
	}
	say(k+"file_system", v.FileSystem.V, v.FileSystem.At)
	say(k+"network", v.Network.V, v.Network.At)
	say(k+"network_allowlist", hosts, v.Allowlist.At)
	say(k+"git", v.Git.V, v.Git.At)
	say(k+"code_execution", v.CodeExecution.V, v.CodeExecution.At)
	say(k+"terminal", v.Terminal.V, v.Terminal.At)
	say(k+"requires_approval", patternTexts(v.RequiresApproval.V), v.RequiresApproval.At)
}

func patternTexts(ps []action.Pattern) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.Text
	}
	return out
}

func entryTexts(l access.List) []string {
	out := make([]string, len(l))
	for i, e := range l {
		out[i] = e.V.Text
	}
	return out
}

// show prints a value so that two values never look alike: ["a b"] is not ["a", "b"].
func show(v any) string {
	list, ok := v.([]string)
	if !ok {
		return fmt.Sprint(v)
	}
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = strconv.Quote(s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// flatten visits every leaf, keyed as it would be written.
func flatten(v reflect.Value, key string, visit func(key string, v any)) {
	if _, ok := v.Interface().(fmt.Stringer); ok {
		visit(key, v.Interface())
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			flatten(v.Elem(), key, visit)
		}
	case reflect.Struct:
		for i, name := range strict.Fields(v.Type()) {
			flatten(v.Field(i), strict.Member(key, name), visit)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			flatten(v.MapIndex(k), strict.Member(key, fmt.Sprint(k.Interface())), visit)
		}
	default:
		visit(key, v.Interface())
	}
}

// Keys lists every key a file may hold, with * for names the operator chooses.
func Keys() []string {
	var out []string
	keysOf(reflect.TypeFor[File](), "", &out)
	slices.Sort(out)
	return out
}

func keysOf(t reflect.Type, key string, out *[]string) {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		*out = append(*out, key) // written as a word, whatever it is made of
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		keysOf(t.Elem(), key, out)
	case reflect.Struct:
		for i, name := range strict.Fields(t) {
			keysOf(t.Field(i).Type, strict.Member(key, name), out)
		}
	case reflect.Map:
		keysOf(t.Elem(), key+".*", out)
	default:
		*out = append(*out, key)
	}
}
