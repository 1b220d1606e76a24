package tool

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/writ-run/writ/spell"
	"github.com/writ-run/writ/wire"
)

// fault words what is wrong with a value that the validator refused: the first
// thing, in the order of names, as one line that says what would be right. It
// repeats no value of the arguments, which may be a secret (I7) or long; the
// validator's own message does. Empty: it has no words for it.
func fault(schema map[string]any, v any, at string) string {
	if why := typeFault(schema, v); why != "" {
		return about(at, why)
	}
	if why := enumFault(schema, v); why != "" {
		return about(at, why)
	}
	switch v := v.(type) {
	case float64:
		return about(at, numberFault(schema, v))
	case string:
		return about(at, textFault(schema, v))
	case []any:
		return arrayFault(schema, v, at)
	case map[string]any:
		return objectFault(schema, v, at)
	}
	return ""
}

func about(at, why string) string {
	if why == "" {
		return ""
	}
	return fmt.Sprintf("argument %q: %s", short(at), why)
}

// kinds are the types of JSON Schema as they stand in a sentence.
var kinds = map[string]string{
	"string": "a string", "integer": "an integer", "number": "a number", "boolean": "a boolean", "array": "an array", "object": "an object", "null": "null",
}

func typeFault(schema map[string]any, v any) string {
	types, _ := schema["type"].([]any)
	if one, ok := schema["type"].(string); ok {
		types = []any{one}
	}
	if len(types) == 0 {
		return ""
	}
	var want []string
	for _, t := range types {
		if isType(v, t) {
			return ""
		}
		want = append(want, kinds[fmt.Sprint(t)])
	}
	got := kinds[typeOf(v)]
	if typeOf(v) == "number" && slices.Contains(types, any("integer")) {
		got = "a fraction"
	}
	return fmt.Sprintf("want %s, not %s", strings.Join(want, " or "), got)
}

func isType(v, t any) bool {
	f, number := v.(float64)
	return typeOf(v) == t || number && t == "integer" && f == math.Trunc(f)
}

func typeOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}

func enumFault(schema map[string]any, v any) string {
	if want, ok := schema["const"]; ok && !reflect.DeepEqual(want, v) {
		return "it must be " + literal(want)
	}
	enum, ok := schema["enum"].([]any)
	if !ok || slices.ContainsFunc(enum, func(e any) bool { return reflect.DeepEqual(e, v) }) {
		return ""
	}
	var all, words []string
	for _, e := range enum {
		all = append(all, literal(e))
		if s, ok := e.(string); ok {
			words = append(words, s)
		}
	}
	hint := ""
	if s, ok := v.(string); ok {
		hint = spell.Hint(s, words)
	}
	return "it must be one of " + strings.Join(all, ", ") + hint
}

func literal(v any) string {
	switch v := v.(type) {
	case string:
		return strconv.Quote(v)
	case []any, map[string]any:
		return "the one in the schema"
	}
	return fmt.Sprint(v)
}

func numberFault(schema map[string]any, v float64) string {
	for _, rule := range []struct {
		key, text string
		ok        func(bound float64) bool
	}{
		{"minimum", "at least", func(b float64) bool { return v >= b }},
		{"maximum", "at most", func(b float64) bool { return v <= b }},
		{"exclusiveMinimum", "more than", func(b float64) bool { return v > b }},
		{"exclusiveMaximum", "less than", func(b float64) bool { return v < b }},
		{"multipleOf", "a multiple of", func(b float64) bool { return math.Mod(v, b) == 0 }},
	} {
		if b, ok := schema[rule.key].(float64); ok && !rule.ok(b) {
			return fmt.Sprintf("it must be %s %s", rule.text, strconv.FormatFloat(b, 'f', -1, 64))
		}
	}
	return ""
}

func textFault(schema map[string]any, v string) string {
	if why := countFault(schema, "Length", utf8.RuneCountInString(v), "characters"); why != "" {
		return why
	}
	if pattern, ok := schema["pattern"].(string); ok {
		if fits, err := regexp.MatchString(pattern, v); !fits || err != nil {
			return "it does not match " + pattern
		}
	}
	return ""
}

// countFault holds a count against the keywords min… and max….
func countFault(schema map[string]any, key string, n int, what string) string {
	if b, ok := schema["min"+key].(float64); ok && float64(n) < b {
		return fmt.Sprintf("it has %d %s; at least %.0f are needed", n, what, b)
	}
	if b, ok := schema["max"+key].(float64); ok && float64(n) > b {
		return fmt.Sprintf("it has %d %s; at most %.0f are taken", n, what, b)
	}
	return ""
}

func arrayFault(schema map[string]any, v []any, at string) string {
	if why := countFault(schema, "Items", len(v), "items"); why != "" {
		return about(at, why)
	}
	items, _ := schema["items"].(map[string]any)
	for i, e := range v {
		if why := fault(items, e, fmt.Sprintf("%s[%d]", at, i)); why != "" {
			return why
		}
	}
	seen := map[string]bool{}
	for _, e := range v {
		text, err := wire.Marshal(e)
		if schema["uniqueItems"] == true && err == nil && seen[text] {
			return about(at, "an item is there twice")
		}
		seen[text] = true
	}
	return ""
}

func objectFault(schema map[string]any, v map[string]any, at string) string {
	props, _ := schema["properties"].(map[string]any)
	known := sortedKeys(props)
	inside := func(name string) string { return strings.TrimPrefix(at+"."+name, ".") }
	_, patterns := schema["patternProperties"]
	for _, name := range sortedKeys(v) {
		if _, ok := props[name]; !ok && !patterns && schema["additionalProperties"] == false {
			hint := spell.Hint(name, known)
			if hint == "" && len(known) > 0 {
				hint = "; it takes " + strings.Join(known, ", ")
			}
			return fmt.Sprintf("unknown argument %q%s", short(inside(name)), hint)
		}
	}
	required, _ := schema["required"].([]any)
	for _, r := range required {
		if _, ok := v[fmt.Sprint(r)]; !ok {
			return fmt.Sprintf("argument %q is missing; it takes %s", short(inside(fmt.Sprint(r))), strings.Join(known, ", "))
		}
	}
	for _, name := range sortedKeys(v) {
		sub, ok := props[name].(map[string]any)
		if !ok && props[name] == nil {
			sub, _ = schema["additionalProperties"].(map[string]any)
		}
		if why := fault(sub, v[name], inside(name)); why != "" {
			return why
		}
	}
	return about(at, countFault(schema, "Properties", len(v), "arguments"))
}

func short(name string) string {
	if len(name) > 64 {
		return strings.ToValidUTF8(name[:64], "") + "…"
	}
	return name
}
