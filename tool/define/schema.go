package define

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/strict"
	"github.com/writ-run/writ/tool"
)

// parameters is a definition's schema with what the runner has to know of it.
type parameters struct {
	text  json.RawMessage
	props map[string]*parameter
	shape *policy.Shape
	bad   bool // what was written does not hold, and it was said
}

// parameter is one argument.
type parameter struct {
	kind  string // the JSON type; empty where the schema does not name exactly one
	items string // of an array: the type of its items
	enum  []string
	path  bool // annotated as a path: what runs gets it resolved
	used  bool // something comes of it
}

const noParameters = `{"additionalProperties":false,"properties":{},"type":"object"}`

// parameters reads the schema. Arguments that it does not name are refused unless it
// says otherwise: a misspelt one would be ignored without a word.
func (b *builder) parameters() *parameters {
	out := &parameters{props: map[string]*parameter{}, text: json.RawMessage(noParameters)}
	if b.Parameters == nil {
		return out
	}
	text, ok := b.canonical("parameters", b.Parameters)
	var schema map[string]any
	if out.bad = !ok || json.Unmarshal(text, &schema) != nil || !b.references("parameters", schema) || !b.keywords("parameters", schema); out.bad {
		return out
	}
	if _, said := schema["additionalProperties"]; !said {
		schema["additionalProperties"] = false
	}
	out.text, _ = json.Marshal(schema)
	if out.text, ok = b.canonical("parameters", strict.JSON(out.text)); !ok {
		out.bad = true
		return out
	}
	props, ok := schema["properties"].(map[string]any)
	if _, said := schema["properties"]; said && !ok {
		b.Reject("parameters.properties", "must be a mapping of names to schemas")
		out.bad = true
	}
	for name, sub := range props {
		out.props[name] = parameterOf(sub)
	}
	required, _ := schema["required"].([]any)
	for i, r := range required {
		if name, ok := r.(string); ok && out.props[name] == nil && schema["additionalProperties"] == false {
			b.Reject(fmt.Sprintf("parameters.required[%d]", i), "there is no argument %q%s", name, strict.Hint(name, out.names()))
			out.bad = true
		}
	}
	var err error
	if out.shape, err = policy.ShapeOf(schema); err != nil {
		b.Reject("parameters", "%v", err)
		out.bad = true
	}
	return out
}

func parameterOf(schema any) *parameter {
	m, _ := schema.(map[string]any)
	items, _ := m["items"].(map[string]any)
	p := &parameter{}
	p.kind, _ = m["type"].(string)
	p.items, _ = items["type"].(string)
	for _, s := range []map[string]any{m, items} {
		_, path := s["x-writ-path"]
		_, host := s["x-writ-host"]
		_, url := s["x-writ-url"]
		p.path = p.path || path
		p.used = p.used || path || host || url // the confinement comes of it
	}
	values, _ := m["enum"].([]any)
	for _, v := range values {
		if s, ok := v.(string); ok {
			p.enum = append(p.enum, s)
		}
	}
	return p
}

func (p *parameters) names() []string { return slices.Sorted(maps.Keys(p.props)) }

// lookup finds an argument that something names.
func (p *parameters) lookup(b *builder, key, name string) (*parameter, bool) {
	if p.bad {
		return nil, false
	}
	found, ok := p.props[name]
	if !ok {
		b.Reject(key, "there is no argument %q in parameters%s", name, strict.Hint(name, p.names()))
	}
	return found, ok
}

// output checks the schema of the result the way parameters are checked. Annotations
// have no meaning there: nothing is resolved or gated on the way out.
func (b *builder) output() json.RawMessage {
	if b.Output == nil {
		return nil
	}
	text, ok := b.canonical("output", b.Output)
	var schema map[string]any
	if !ok || json.Unmarshal(text, &schema) != nil || !b.references("output", schema) || !b.keywords("output", schema) {
		return nil
	}
	whole := text
	if schema["type"] != "object" {
		whole = json.RawMessage(`{"type":"object","properties":{"result":` + string(text) + `}}`)
	}
	if _, err := tool.New(tool.Definition{Name: "output", Schema: whole}, refuse); err != nil {
		b.Reject("output", "%s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "tool output: "), "parameters: "))
	}
	return text
}

// references refuses, at any depth, a $ref that leads out of the file, annotations of
// an output, and text in which something does not show.
func (b *builder) references(key string, v any) bool {
	ok := true
	switch v := v.(type) {
	case string:
		return b.visible(key, v)
	case []any:
		for i, e := range v {
			ok = b.references(fmt.Sprintf("%s[%d]", key, i), e) && ok
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			at := strict.Member(key, name)
			switch to, text := v[name].(string); {
			case name == "$ref" && text && !strings.HasPrefix(to, "#"):
				b.Reject(at, "leads out of the definition; write the schema out")
				ok = false
			case strings.HasPrefix(name, "x-writ-") && strict.Within(key, "output"):
				b.Reject(at, "has no meaning in an output; remove it")
				ok = false
			}
			ok = b.references(at, v[name]) && ok
		}
	}
	return ok
}
