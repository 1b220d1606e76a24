package tool

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// How much work one check of a value may be: schemas held against a part of it, and how
// far one leads to another. A schema is often a stranger's. It can lead back into itself,
// over which the validator ends the whole program, or name one twice that names one
// twice, and so on, over which it would take years.
const (
	mostStrain = 2 << 20
	mostNested = 1000
)

var (
	errCircle = errors.New("its schema leads back into itself without end")
	errStrain = fmt.Errorf("its schema takes more than %d steps to check", mostStrain)
)

// Members of a schema whose own members are names that its maker chose, and those that
// hold values, in which nothing is a schema.
var (
	holdNames  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	holdValues = []string{"default", "examples", "const", "enum"}
)

// anchors finds the parts of a schema that have names. A part with an $id of its own is
// refused: references inside it would mean another document.
func anchors(part any, root, names bool, found map[string]map[string]any) error {
	if list, ok := part.([]any); ok {
		for _, p := range list {
			if err := anchors(p, false, false, found); err != nil {
				return err
			}
		}
	}
	m, _ := part.(map[string]any)
	for key, p := range m {
		name, isText := p.(string)
		switch {
		case names:
		case slices.Contains(holdValues, key):
			continue
		case isText && key == "$id" && !root && !strings.HasPrefix(name, "#"):
			return errors.New("a part of the schema has an $id of its own; leave it out")
		case isText && (key == "$anchor" || key == "$dynamicAnchor" || key == "$id"):
			found[strings.TrimPrefix(name, "#")] = m
		}
		if err := anchors(p, false, !names && slices.Contains(holdNames, key), found); err != nil {
			return err
		}
	}
	return nil
}

// refers finds what a reference leads to; nil: nothing that has rules.
func (s *schema) refers(ref string) (map[string]any, error) {
	id, _ := s.raw["$id"].(string)
	path, ok := strings.CutPrefix(strings.TrimPrefix(ref, strings.TrimSuffix(id, "#")), "#")
	if !ok && ref != id {
		return nil, fmt.Errorf("its schema refers to %q; write references as #/…", short(ref))
	}
	path, err := url.PathUnescape(path)
	if err != nil {
		return nil, fmt.Errorf("its schema refers to %q, which does not read", short(ref))
	}
	if path != "" && path[0] != '/' {
		return s.named[path], nil
	}
	var at any = s.raw
	for key := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if path == "" {
			break
		}
		key = strings.ReplaceAll(strings.ReplaceAll(key, "~1", "/"), "~0", "~")
		switch part := at.(type) {
		case map[string]any:
			at = part[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(part) {
				return nil, nil
			}
			at = part[i]
		default:
			return nil, nil
		}
	}
	found, _ := at.(map[string]any)
	return found, nil
}

// bearable refuses a value whose check would be too much work. It walks as the validator
// does, and takes every way that one might take.
func (s *schema) bearable(v any) error {
	w := strain{schema: s, left: mostStrain}
	return w.hold(s.raw, v, 0)
}

type strain struct {
	*schema
	left int
}

// hold counts what it takes to hold a value against a part of the schema.
func (w *strain) hold(part, v any, depth int) error {
	m, ok := part.(map[string]any)
	if !ok {
		return nil
	}
	if w.left -= 1 + effort(m, v); w.left < 0 {
		return errStrain
	}
	if depth > mostNested {
		return errCircle
	}
	for _, key := range []string{"$ref", "$dynamicRef"} {
		if ref, ok := m[key].(string); ok {
			to, err := w.refers(ref)
			if err == nil {
				err = w.hold(to, v, depth+1)
			}
			if err != nil {
				return err
			}
		}
	}
	if err := w.beside(m, v, depth+1); err != nil {
		return err
	}
	switch v := v.(type) {
	case []any:
		return w.items(m, v, depth+1)
	case map[string]any:
		return w.properties(m, v, depth+1)
	}
	return nil
}

// effort is what a part's own words take beside the step.
func effort(m map[string]any, v any) int {
	enum, _ := m["enum"].([]any)
	n := len(enum)
	if text, ok := v.(string); ok && m["pattern"] != nil {
		n += len(text) / 64
	}
	return n
}

// beside holds the same value against what a part joins.
func (w *strain) beside(m map[string]any, v any, depth int) error {
	for _, key := range []string{"not", "if", "then", "else"} {
		if err := w.hold(m[key], v, depth); err != nil {
			return err
		}
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := m[key].([]any)
		for _, part := range list {
			if err := w.hold(part, v, depth); err != nil {
				return err
			}
		}
	}
	for _, key := range []string{"dependentSchemas", "dependencies"} {
		list, _ := m[key].(map[string]any)
		for _, part := range list {
			if err := w.hold(part, v, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *strain) items(m map[string]any, v []any, depth int) error {
	first, _ := m["prefixItems"].([]any)
	if old, ok := m["items"].([]any); ok {
		first = old
	}
	for i, e := range v {
		if i < len(first) {
			if err := w.hold(first[i], e, depth); err != nil {
				return err
			}
		}
		for _, key := range []string{"items", "additionalItems", "unevaluatedItems", "contains"} {
			if err := w.hold(m[key], e, depth); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *strain) properties(m map[string]any, v map[string]any, depth int) error {
	known, _ := m["properties"].(map[string]any)
	patterns, _ := m["patternProperties"].(map[string]any)
	for name, e := range v {
		if err := w.hold(m["propertyNames"], name, depth); err != nil {
			return err
		}
		rules := []any{known[name], m["unevaluatedProperties"]}
		for _, part := range patterns {
			rules = append(rules, part)
		}
		if known[name] == nil {
			rules = append(rules, m["additionalProperties"])
		}
		for _, part := range rules {
			if err := w.hold(part, e, depth); err != nil {
				return err
			}
		}
	}
	return nil
}
