package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/wire"
)

// What one definition may have.
const (
	mostOriginal    = 128       // bytes of a tool's own name
	mostURI         = 4 << 10   // bytes
	mostDefinition  = 256 << 10 // bytes
	mostDescription = 32 << 10  // bytes
)

// usableName refuses a name that a person could not tell from another.
func usableName(name string) error {
	switch {
	case name == "":
		return errors.New("it has no name")
	case len(name) > mostOriginal:
		return fmt.Errorf("its name is longer than %d bytes", mostOriginal)
	case name != display.Line(name):
		return errors.New("its name holds characters that do not show")
	}
	return nil
}

// entry is a definition's members by their exact names, once its bytes are sound.
func entry(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) > mostDefinition {
		return nil, fmt.Errorf("its definition has more than %d bytes", mostDefinition)
	}
	out := map[string]json.RawMessage{}
	loose, err := members(raw, func(key, value []byte) { out[string(key)] = value })
	if err == nil {
		err = loose
	}
	return out, err
}

// parseTool reads one tool. Its name comes back also when it is refused.
func parseTool(raw json.RawMessage) (Tool, error) {
	m, err := entry(raw)
	if err != nil {
		return Tool{}, err
	}
	t := Tool{Name: text(m["name"]), Raw: bytes.Clone(raw)}
	if err := usableName(t.Name); err != nil {
		return t, err
	}
	description := text(m["description"])
	if len(description) > mostDescription {
		return t, fmt.Errorf("its description has more than %d bytes", mostDescription)
	}
	t.Description = display.Visible(description)
	t.Title = text(m["title"])
	if err := t.annotate(m["annotations"]); err != nil {
		return t, err
	}
	if len(t.Title) > mostOriginal*2 {
		return t, errors.New("its title is too long")
	}
	t.Title = display.Line(t.Title)
	canonical, err := wire.CanonicalObject(raw)
	if err != nil {
		_, why := writ.Public(err)
		return t, errors.New(why)
	}
	t.Digest = wire.Digest(canonical)
	if len(m["inputSchema"]) == 0 || m["inputSchema"][0] != '{' {
		return t, errors.New("it has no inputSchema that is an object")
	}
	t.headers = headerParams(m["inputSchema"], nil)
	if t.Schema, err = cleanSchema(m["inputSchema"]); err != nil {
		return t, fmt.Errorf("inputSchema: %w", err)
	}
	if out := m["outputSchema"]; len(out) > 0 && text(field(out, "type")) == "object" {
		if t.Output, err = cleanSchema(out); err != nil {
			return t, fmt.Errorf("outputSchema: %w", err)
		}
		if t.check, err = outputCheck(t.Output); err != nil {
			return t, fmt.Errorf("outputSchema: %w", err)
		}
	}
	_, err = Definition("check", t, DefinitionOptions{})
	return t, err
}

// annotate reads the hints. One that is not true or false says something nobody
// understands.
func (t *Tool) annotate(raw json.RawMessage) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	t.Annotated = true
	hints := map[string]**bool{
		"readOnlyHint": &t.Hints.ReadOnly, "destructiveHint": &t.Hints.Destructive,
		"idempotentHint": &t.Hints.Idempotent, "openWorldHint": &t.Hints.OpenWorld,
	}
	var odd string
	_, err := members(raw, func(key, value []byte) {
		into, known := hints[string(key)]
		switch {
		case string(key) == "title" && t.Title == "":
			t.Title = text(value)
		case !known || string(value) == "null":
		case string(value) == "true" || string(value) == "false":
			v := string(value) == "true"
			*into = &v
		default:
			odd = string(key)
		}
	})
	if err != nil {
		return fmt.Errorf("annotations: %w", err)
	}
	if odd != "" {
		return fmt.Errorf("annotations: %s is neither true nor false", odd)
	}
	return nil
}
