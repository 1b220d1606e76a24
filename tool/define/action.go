package define

import (
	"cmp"
	"maps"
	"slices"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool"
)

func (b *builder) actionType(key, text string) action.Type {
	t := action.Type(text)
	if !b.types.Has(t) {
		b.Reject(key, "%s", strict.Describe(&action.UnknownError{What: "action type", Got: text, Known: words(b.types.Types())}))
	}
	return t
}

func (b *builder) action(c action.Category) (action.Type, *tool.ActionBy) {
	const key = "action_type"
	by := b.Action.By
	if by == nil {
		if b.Action.Fixed == "" {
			return c.Default(), nil
		}
		return b.actionType(key, b.Action.Fixed), nil
	}
	out := &tool.ActionBy{Argument: by.Argument, Types: map[string]action.Type{}}
	for _, missing := range []struct {
		name string
		is   bool
	}{{"argument", by.Argument == ""}, {"types", len(by.Types) == 0}, {"default", by.Default == ""}} {
		if missing.is {
			b.Reject(key+"."+missing.name, "is missing; write argument, types and default")
		}
	}
	b.actionArgument(by)
	fallback := b.actionType(key+".default", cmp.Or(by.Default, string(c.Default())))
	for _, value := range slices.Sorted(maps.Keys(by.Types)) {
		at := strict.Member(key+".types", value)
		t := b.actionType(at, by.Types[value])
		out.Types[value] = t
		if value == "" {
			b.Reject(at, "is empty, which an argument that is left out would be; name a value")
		}
		if weight(b.types.Risk(t)) > weight(b.types.Risk(fallback)) && b.types.Has(fallback) {
			b.Reject(key+".default", "%s is of less risk than %s, and holds for every value that is not listed; make the strictest the default", fallback, t)
		}
	}
	return fallback, out
}

// weight orders risks; the unknown one counts as high.
func weight(r action.Risk) action.Risk {
	if r == action.Unknown {
		return action.High
	}
	return r
}

// actionArgument holds what decides the type against the schema: only a string is
// looked at, so anything else would always leave the default.
func (b *builder) actionArgument(by *actionBy) {
	if by.Argument == "" || b.params == nil {
		return
	}
	p, ok := b.params.lookup(b, "action_type.argument", by.Argument)
	if !ok {
		return
	}
	if p.kind != "string" {
		b.Reject("action_type.argument", "%s is not of type string; name an argument that is", by.Argument)
		return
	}
	for _, value := range slices.Sorted(maps.Keys(by.Types)) {
		if p.enum != nil && !slices.Contains(p.enum, value) {
			b.Reject(strict.Member("action_type.types", value), "%s never has this value%s", by.Argument, strict.Hint(value, p.enum))
		}
	}
	p.used = true
}
