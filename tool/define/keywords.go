package define

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/writ-run/writ/strict"
)

// Keywords of JSON Schema, by what stands below them.
var (
	plainKeywords = strings.Fields(`type enum const title description default examples deprecated readOnly writeOnly format pattern
		minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems uniqueItems minContains
		maxContains minProperties maxProperties required dependentRequired $ref $schema $id $comment contentEncoding contentMediaType`)
	schemaKeywords = strings.Fields(`items additionalProperties not if then else contains propertyNames unevaluatedItems unevaluatedProperties`)
	listKeywords   = strings.Fields(`anyOf allOf oneOf prefixItems`)
	namedKeywords  = strings.Fields(`properties patternProperties dependentSchemas $defs`)
	allKeywords    = slices.Concat(plainKeywords, schemaKeywords, listKeywords, namedKeywords)

	schemaTypes = []string{"string", "integer", "number", "boolean", "array", "object", "null"}
)

// keywords refuses what a reader of schemas passes over without a word: a misspelt
// maxLength bounds nothing, and a type that does not exist fits no value.
func (b *builder) keywords(key string, v any) bool {
	schema, ok := v.(map[string]any)
	if _, always := v.(bool); !ok && !always {
		b.Reject(key, "is not a schema; write a mapping")
		return false
	}
	good := true
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		at, sub := strict.Member(key, name), schema[name]
		switch {
		case name == "type":
			good = b.typeNames(at, sub) && good
		case slices.Contains(schemaKeywords, name):
			good = b.keywords(at, sub) && good
		case slices.Contains(listKeywords, name):
			list, _ := sub.([]any)
			for i, s := range list {
				good = b.keywords(fmt.Sprintf("%s[%d]", at, i), s) && good
			}
		case slices.Contains(namedKeywords, name):
			named, _ := sub.(map[string]any)
			for _, n := range slices.Sorted(maps.Keys(named)) {
				good = b.keywords(strict.Member(at, n), named[n]) && good
			}
		case !slices.Contains(plainKeywords, name) && !strings.HasPrefix(name, "x-writ-"):
			b.Reject(at, "unknown keyword of JSON Schema%s", strict.Hint(name, allKeywords))
			good = false
		}
	}
	return good
}

func (b *builder) typeNames(key string, v any) bool {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	for _, t := range list {
		if name, _ := t.(string); !slices.Contains(schemaTypes, name) {
			b.Reject(key, "there is no type %q%s", fmt.Sprint(t), strict.Hint(name, schemaTypes))
			return false
		}
	}
	return true
}
