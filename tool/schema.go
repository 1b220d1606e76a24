package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/wire"
)

type schema struct {
	raw      map[string]any
	resolved *jsonschema.Resolved
}

func compile(text json.RawMessage) (*schema, error) {
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
	var js jsonschema.Schema
	if err := json.Unmarshal(text, &js); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	// No loader is given, so a remote $ref does not resolve.
	if s.resolved, err = js.Resolve(nil); err != nil {
		return nil, fmt.Errorf("parameters: %w", err)
	}
	return s, nil
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
	if decoded := decodeStrings(t.schema.raw, v); decoded {
		if canonical, err = wire.Marshal(v); err != nil {
			return "", nil, writ.Fail(writ.Invalid, "the arguments are not JSON", err)
		}
	}
	if err := t.schema.check(t.Name, v); err != nil {
		return "", nil, err
	}
	return canonical, v, nil
}

// decodeStrings replaces a string by the JSON it holds where the schema says the
// value is of a type and not a string: models write "5" for 5. It reports
// whether anything changed.
func decodeStrings(schema map[string]any, v map[string]any) bool {
	props, _ := schema["properties"].(map[string]any)
	changed := false
	for name, value := range v {
		sub, _ := props[name].(map[string]any)
		switch value := value.(type) {
		case map[string]any:
			changed = decodeStrings(sub, value) || changed
		case string:
			if !excludesString(sub) {
				continue
			}
			canonical, err := wire.Canonical([]byte(value))
			if err != nil {
				continue // the schema check says what is wrong
			}
			var inner any
			if json.Unmarshal([]byte(canonical), &inner) == nil {
				v[name], changed = inner, true
			}
		}
	}
	return changed
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

func (s *schema) check(tool string, v map[string]any) error {
	props, _ := s.raw["properties"].(map[string]any)
	known := make([]string, 0, len(props))
	for name := range props {
		known = append(known, name)
	}
	slices.Sort(known)
	for _, name := range sortedKeys(v) {
		if _, ok := props[name]; !ok && s.raw["additionalProperties"] == false {
			return writ.Fail(writ.Invalid, fmt.Sprintf("%s: unknown argument %q%s", tool, name, spell.Hint(name, known)), nil)
		}
	}
	required, _ := s.raw["required"].([]any)
	for _, r := range required {
		if _, ok := v[fmt.Sprint(r)]; !ok {
			return writ.Fail(writ.Invalid, fmt.Sprintf("%s: argument %q is missing; it takes %s", tool, r, strings.Join(known, ", ")), nil)
		}
	}
	if err := s.resolved.Validate(v); err != nil {
		return writ.Fail(writ.Invalid, fmt.Sprintf("%s: %s", tool, schemaMessage(err)), nil)
	}
	return nil
}

// schemaMessage turns the validator's trail into one sentence about one argument.
func schemaMessage(err error) string {
	msg := strings.TrimPrefix(err.Error(), "validating root: ")
	var where []string
	for {
		rest, ok := strings.CutPrefix(msg, "validating ")
		if !ok {
			break
		}
		at, tail, found := strings.Cut(rest, ": ")
		if !found {
			break
		}
		where = append(where, strings.TrimPrefix(at, "/properties/"))
		msg = tail
	}
	if len(where) == 0 {
		return msg
	}
	return fmt.Sprintf("argument %q: %s", strings.Join(where, "."), msg)
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
