package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/wire"
)

// prose are the members that only tell: what hides in them is spelled out. Anywhere
// else, spelling it out would change what the text means.
var prose = map[string]bool{"description": true, "title": true, "$comment": true}

// A cleaner copies JSON of a server's in the order it has, and leaves nothing hidden
// in it. Its errors repeat what they refuse; Offer.refuse makes them safe.
type cleaner struct {
	dec  *json.Decoder
	out  []byte
	drop func(key string) bool
	refs bool // refuse references to elsewhere
}

// clean is a definition fit for models and people: characters that do not show are
// spelled out in titles and descriptions, and refused elsewhere.
func clean(raw []byte) (json.RawMessage, error) {
	return (&cleaner{}).run(raw)
}

// cleanSchema also leaves out the annotations that are writ's to make, and those for
// headers, which are the client's business; and it refuses a reference to another
// document, which nobody fetches.
func cleanSchema(raw []byte) (json.RawMessage, error) {
	c := &cleaner{refs: true, drop: func(key string) bool {
		return strings.HasPrefix(strings.ToLower(key), "x-writ-") || key == "x-mcp-header"
	}}
	return c.run(raw)
}

func (c *cleaner) run(raw []byte) (json.RawMessage, error) {
	c.dec = json.NewDecoder(bytes.NewReader(raw))
	c.dec.UseNumber()
	c.out = make([]byte, 0, len(raw))
	if err := c.value("", false, 0); err != nil {
		return nil, err
	}
	if _, err := c.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("data after the value")
	}
	return c.out, nil
}

// value copies the value of a member. names says that the member's own members are
// names that a server made up, not words of a schema.
func (c *cleaner) value(member string, names bool, depth int) error {
	t, err := c.dec.Token()
	if err != nil {
		return err
	}
	if depth > deepest {
		return fmt.Errorf("more than %d levels of nesting", deepest)
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '[' {
			return c.array(member, depth)
		}
		return c.object(names, depth)
	case string:
		return c.string(member, t)
	case json.Number:
		c.out = append(c.out, t...)
	case bool:
		c.out = fmt.Append(c.out, t)
	case nil:
		c.out = append(c.out, "null"...)
	}
	return nil
}

func (c *cleaner) string(member, s string) error {
	shown := display.Visible(s)
	switch {
	case prose[member]:
		s = shown
	case hides(s):
		return fmt.Errorf("%s holds characters that do not show: %s", cut(member, 80), cut(s, 80))
	case c.refs && (member == "$ref" || member == "$dynamicRef") && !strings.HasPrefix(s, "#"):
		return fmt.Errorf("its schema refers to %s, which is not fetched; write it out", cut(s, 80))
	}
	c.out = wire.AppendString(c.out, s)
	return nil
}

func (c *cleaner) array(member string, depth int) error {
	c.out = append(c.out, '[')
	for n := 0; c.dec.More(); n++ {
		if n > 0 {
			c.out = append(c.out, ',')
		}
		if err := c.value(member, false, depth+1); err != nil {
			return err
		}
	}
	c.out = append(c.out, ']')
	_, err := c.dec.Token()
	return err
}

func (c *cleaner) object(names bool, depth int) error {
	c.out = append(c.out, '{')
	empty := true
	for c.dec.More() {
		t, err := c.dec.Token()
		if err != nil {
			return err
		}
		key, _ := t.(string)
		if hides(key) {
			return fmt.Errorf("a name in it holds characters that do not show: %s", cut(key, 80))
		}
		if c.drop != nil && c.drop(key) {
			var ignored json.RawMessage
			if err := c.dec.Decode(&ignored); err != nil {
				return err
			}
			continue
		}
		if !empty {
			c.out = append(c.out, ',')
		}
		empty = false
		c.out = append(wire.AppendString(c.out, key), ':')
		// In {"properties": {"description": {…}}} it is an argument's name.
		member := key
		if names {
			member = ""
		}
		if err := c.value(member, !names && (key == "properties" || key == "$defs" || key == "definitions" || key == "patternProperties"), depth+1); err != nil {
			return err
		}
	}
	c.out = append(c.out, '}')
	_, err := c.dec.Token()
	return err
}

// hides reports whether a text holds characters that do not show, or that change how
// others do.
func hides(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' && s[i] != '\n' && s[i] != '\t' || s[i] >= 0x7F {
			// Only what display spells out; an "<" that looks like its escapes is fine.
			return len(display.Visible(strings.ReplaceAll(s, "<", "("))) != len(s)
		}
	}
	return false
}
