package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/writ-run/writ/access"
	"github.com/writ-run/writ/action"
)

// Value is one effective value and where it came from.
type Value struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

// Effective lists every value in force, written or built in, in order of keys.
func (c *Config) Effective() []Value {
	var out []Value
	flatten(reflect.ValueOf(*c.File), "", func(key, value string) {
		out = append(out, Value{key, value, c.At(key)})
	})
	out = append(out, c.effectiveLevels()...)
	slices.SortFunc(out, func(a, b Value) int { return strings.Compare(a.Key, b.Key) })
	return slices.CompactFunc(out, func(a, b Value) bool { return a.Key == b.Key })
}

// effectiveLevels fills in what the file leaves to the product: the constraints
// of each level and the patterns of each autonomy.
func (c *Config) effectiveLevels() []Value {
	var out []Value
	say := func(key string, v any, at string) { out = append(out, Value{key, fmt.Sprint(v), at}) }
	b := &builder{Config: c, d: &decoder{lines: map[string]int{}}, levels: map[access.Level]access.Constraints{}}
	b.buildLevels()
	for _, l := range access.Levels() {
		k := "tool_access.levels." + l.String() + "."
		v := b.levels[l]
		say(k+"file_system", v.FileSystem.V, v.FileSystem.At)
		say(k+"network", v.Network.V, v.Network.At)
		say(k+"network_allowlist", v.Allowlist.V, v.Allowlist.At)
		say(k+"git", v.Git.V, v.Git.At)
		say(k+"code_execution", v.CodeExecution.V, v.CodeExecution.At)
		say(k+"terminal", v.Terminal.V, v.Terminal.At)
		say(k+"requires_approval", texts(v.RequiresApproval.V), v.RequiresApproval.At)
		say(k+"deployment", v.Deployment.V, v.Deployment.At)
	}
	for _, a := range access.Autonomies() {
		k := "autonomy.presets." + a.String() + "."
		say(k+"auto_approve", texts(c.Presets[a].V.Auto), c.At(k+"auto_approve"))
		say(k+"human_approval", texts(c.Presets[a].V.Human), c.At(k+"human_approval"))
	}
	return out
}

func texts(ps []action.Pattern) []string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.Text
	}
	return out
}

// flatten visits every leaf that is set, keyed as it would be written.
func flatten(v reflect.Value, key string, visit func(key, value string)) {
	if v.Kind() == reflect.Pointer {
		if !v.IsNil() {
			flatten(v.Elem(), key, visit)
		}
		return
	}
	if s, ok := v.Interface().(fmt.Stringer); ok {
		visit(key, s.String())
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i, name := range fieldNames(v.Type()) {
			flatten(v.Field(i), join(key, name), visit)
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			flatten(v.MapIndex(k), join(key, fmt.Sprint(k.Interface())), visit)
		}
	default:
		visit(key, fmt.Sprint(v.Interface()))
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
	switch t.Kind() {
	case reflect.Pointer:
		keysOf(t.Elem(), key, out)
	case reflect.Struct:
		for i, name := range fieldNames(t) {
			keysOf(t.Field(i).Type, join(key, name), out)
		}
	case reflect.Map:
		keysOf(t.Elem(), key+".*", out)
	default:
		*out = append(*out, key)
	}
}
