package api

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// refPrefix is where the document keeps the schemas of its types.
const refPrefix = "#/components/schemas/"

// schemas are the types that cross a door, by the names the document gives them.
type schemas struct {
	types map[string]reflect.Type
	taken map[reflect.Type]bool // in requests, which are closed: an unknown key is refused
}

// ref is the schema of a value's type: a reference, which has it included.
func (s *schemas) ref(v any, request bool) *jsonschema.Schema {
	t := reflect.TypeOf(v)
	if t.Kind() != reflect.Struct {
		return anyObject()
	}
	s.include(t, request)
	return &jsonschema.Schema{Ref: refPrefix + typeName(t)}
}

// include adds a struct and every struct below it.
func (s *schemas) include(t reflect.Type, request bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	name := typeName(t)
	if t.Kind() != reflect.Struct || s.types[name] != nil && (!request || s.taken[t]) {
		return
	}
	s.types[name] = t
	s.taken[t] = s.taken[t] || request
	for _, f := range reflect.VisibleFields(t) {
		if !f.Anonymous {
			s.include(f.Type, request)
		}
	}
}

// typeName is a type's name in the document: Page[client.Session] is SessionPage.
func typeName(t reflect.Type) string {
	outer, of, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return outer
	}
	return strings.TrimSuffix(of[strings.LastIndexByte(of, '.')+1:], "]") + outer
}

// scalars are the types whose JSON is not what their Go kind says.
func scalars() map[reflect.Type]*jsonschema.Schema {
	kinds := []any{}
	for _, k := range sortedKinds() {
		kinds = append(kinds, string(k))
	}
	return map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage]():            anyObject(),
		reflect.TypeFor[map[string]json.RawMessage](): anyObject(),
		reflect.TypeFor[writ.Digest]():                {Type: "string", Pattern: "^[0-9a-f]{64}$"},
		reflect.TypeFor[time.Duration]():              {Type: "integer", Description: "nanoseconds"},
		reflect.TypeFor[writ.Kind]():                  {Type: "string", Enum: kinds},
		reflect.TypeFor[writ.Effect]():                names[writ.Effect](),
		reflect.TypeFor[writ.Class]():                 names[writ.Class](),
		reflect.TypeFor[writ.ExecMode]():              names[writ.ExecMode](),
		reflect.TypeFor[writ.NetworkMode]():           names[writ.NetworkMode](),
		reflect.TypeFor[writ.Isolation]():             names[writ.Isolation](),
		reflect.TypeFor[writ.Scope]():                 names[writ.Scope](),
	}
}

// anyObject says that it has any properties: left unsaid, generators take it to
// have none.
func anyObject() *jsonschema.Schema {
	return &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{}}
}

// names is the schema of a small enumeration that is written as text.
func names[T interface {
	~uint8
	fmt.Stringer
}]() *jsonschema.Schema {
	s := &jsonschema.Schema{Type: "string"}
	for v := T(0); !strings.HasPrefix(v.String(), "invalid("); v++ {
		s.Enum = append(s.Enum, v.String())
	}
	return s
}

// nodeShape is client.Node without the cycle: what makes schemas follows none.
type nodeShape struct {
	client.Agent
	Delegated string  `json:"delegated,omitempty" jsonschema:"until when, for a child that an agent made"`
	Children  []child `json:"children,omitempty"`
}

type child struct{}

// all makes the schema of every type that was included.
func (s *schemas) all() (map[string]*jsonschema.Schema, error) {
	out := map[string]*jsonschema.Schema{}
	for name, t := range s.types {
		known := scalars()
		known[reflect.TypeFor[child]()] = &jsonschema.Schema{Ref: refPrefix + "Node"}
		for other, u := range s.types {
			if u != t && !(t == reflect.TypeFor[client.Node]() && u == reflect.TypeFor[client.Agent]()) {
				known[u] = &jsonschema.Schema{Ref: refPrefix + other}
			}
		}
		shape := t
		if t == reflect.TypeFor[client.Node]() {
			shape = reflect.TypeFor[nodeShape]()
		}
		made, err := jsonschema.ForType(shape, &jsonschema.ForOptions{TypeSchemas: known})
		if err != nil {
			return nil, fmt.Errorf("the schema of %s: %w", name, err)
		}
		for _, p := range made.Properties {
			withoutNull(p)
		}
		if !s.taken[t] {
			made.AdditionalProperties = nil // an answer may say more one day
		}
		out[name] = made
	}
	return out, nil
}

// withoutNull takes null from what a property may be: it is left out instead, and
// a list is empty.
func withoutNull(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) > 0 && s.Types[0] == "null" {
		s.Types = s.Types[1:]
	}
	if len(s.Types) == 1 {
		s.Type, s.Types = s.Types[0], nil
	}
	if len(s.Types) == 0 {
		s.Types = nil
	}
	withoutNull(s.Items)
	withoutNull(s.AdditionalProperties)
}
