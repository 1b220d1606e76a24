package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/wire"
)

type schema struct {
	raw       map[string]any
	named     map[string]map[string]any            // parts of it that have names
	own       bool                                 // it is this program's, and no stranger's
	validator func() (*jsonschema.Resolved, error) // made once, when it is first asked for
}

// compile readies a schema. What is in asks it does not require, whatever it says.
// Making validators is most of the work of starting, and of a command line that only
// reads the configuration, so those of built-in tools are made when one is called:
// their schemas are this program's own, and package engine's tests make every one.
func compile(kind RunnerKind, text json.RawMessage, asks ...string) (*schema, error) {
	s := &schema{}
	canonical, err := wire.CanonicalObject(text)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	if err := json.Unmarshal([]byte(canonical), &s.raw); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	if s.raw["type"] != "object" {
		return nil, errors.New(`parameters: the schema must have "type": "object"`)
	}
	if required, ok := s.raw["required"].([]any); ok {
		s.raw["required"] = slices.DeleteFunc(required, func(r any) bool { return slices.Contains(asks, fmt.Sprint(r)) })
	}
	s.validator = sync.OnceValues(func() (*jsonschema.Resolved, error) { return validator(text, asks) })
	if s.own = kind == Builtin; s.own {
		return s, nil
	}
	s.named = map[string]map[string]any{}
	if err := anchors(s.raw, true, false, s.named); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	if err := s.bearable(map[string]any{}); err != nil { // what fails over nothing fails always
		return nil, fmt.Errorf("parameters: %w", err)
	}
	_, err = s.validator()
	return s, err
}

func validator(text json.RawMessage, asks []string) (*jsonschema.Resolved, error) {
	var js jsonschema.Schema
	if err := json.Unmarshal(text, &js); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	js.Required = slices.DeleteFunc(js.Required, func(r string) bool { return slices.Contains(asks, r) })
	// No loader is given, so a remote $ref does not resolve.
	resolved, err := js.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	return resolved, nil
}

// Args parses and validates argument bytes against the tool's schema: strict
// JSON, then strings decoded where the schema excludes strings, then the schema.
// It returns the canonical bytes that will be decided and run, and their value.
func (t *Tool) Args(raw []byte) (string, map[string]any, error) {
	if len(raw) == 0 {
		raw = []byte("{}")
	}
	canonical, err := wire.CanonicalObject(raw)
	if err != nil {
		return "", nil, err
	}
	var v map[string]any
	if err := json.Unmarshal([]byte(canonical), &v); err != nil {
		return "", nil, writ.Fail(writ.Invalid, "the arguments are not JSON", err)
	}
	if decodeStrings(t.schema.raw, v) {
		if canonical, err = wire.Marshal(v); err != nil {
			return "", nil, err
		}
	}
	if err := t.schema.check(t.Name, v); err != nil {
		return "", nil, err
	}
	return canonical, v, nil
}

// decodeStrings replaces strings inside v, at any depth, by the JSON they hold
// where the schema says that the value is of a type and not a string: models
// write "5" for 5. It reports whether anything changed.
func decodeStrings(schema map[string]any, v any) bool {
	changed := false
	switch v := v.(type) {
	case []any:
		items, _ := schema["items"].(map[string]any)
		for i, e := range v {
			value, replaced := decodeString(items, e)
			v[i] = value
			changed = decodeStrings(items, value) || replaced || changed
		}
	case map[string]any:
		props, _ := schema["properties"].(map[string]any)
		for name, e := range v {
			sub, _ := props[name].(map[string]any)
			value, replaced := decodeString(sub, e)
			v[name] = value
			changed = decodeStrings(sub, value) || replaced || changed
		}
	}
	return changed
}

// decodeString leaves alone what does not decode to a type the schema takes; the
// check says what is wrong with it.
func decodeString(schema map[string]any, v any) (any, bool) {
	text, ok := v.(string)
	if !ok || !excludesString(schema) {
		return v, false
	}
	canonical, err := wire.Canonical([]byte(text))
	if err != nil {
		return v, false
	}
	var inner any
	if json.Unmarshal([]byte(canonical), &inner) != nil || typeOf(inner) == "string" || inner == nil && typeFault(schema, nil) != "" {
		return v, false
	}
	return inner, true
}

func excludesString(sub map[string]any) bool {
	switch t := sub["type"].(type) {
	case string:
		return t != "string"
	case []any:
		return len(t) > 0 && !slices.Contains(t, any("string"))
	}
	return false
}

// check holds the arguments against the schema: the validator judges, and fault
// says what is wrong.
func (s *schema) check(tool string, v map[string]any) error {
	judge, err := s.validator()
	if err != nil {
		return writ.Fail(writ.Internal, tool+": its schema does not hold; this is a fault of writ, please report it", err)
	}
	if !s.own {
		if err := s.bearable(v); err != nil {
			return writ.Fail(writ.Invalid, tool+": the arguments cannot be checked: "+err.Error()+"; send less, or have the tool's maker mend it", nil)
		}
	}
	if err = judge.Validate(v); err == nil {
		return nil
	}
	why := fault(s.raw, v, "")
	if why == "" {
		why = "the arguments do not fit the tool's schema"
		_, trail, _ := strings.Cut(err.Error(), "validating /properties/")
		if name, _, _ := strings.Cut(trail, ": "); s.has(name) {
			why = fmt.Sprintf("argument %q does not fit the tool's schema", name)
		}
	}
	return writ.Fail(writ.Invalid, tool+": "+why, nil)
}

func (s *schema) has(name string) bool {
	props, _ := s.raw["properties"].(map[string]any)
	_, ok := props[name]
	return ok
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
