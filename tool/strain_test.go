package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
)

// strange is a tool of a server's, with its schema.
func strange(schema string) (*Tool, error) {
	return New(Definition{Name: "srv__x", Category: action.MCP, Action: action.MCP.Default(), Class: writ.ClassReadOnly, Schema: json.RawMessage(schema), Runner: Runner{Kind: MCP}},
		func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil })
}

// doubled names a part twice that names one twice, and so on: 2⁴⁰ steps for the validator.
func doubled(join string) string {
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `"d%d":{%q:[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, join, i+1, i+1)
	}
	return b.String() + `"d40":{}`
}

// Without the bound each of these ends the program, or keeps it busy for years.
func TestSchemasAreBounded(t *testing.T) {
	for _, c := range []struct{ name, schema, want string }{
		{"itself", `"$ref":"#"`, "leads back into itself"},
		{"by way of another", `"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/%24defs/b~1c"}]},"b/c":{"not":{"$ref":"#/$defs/a"}}}`, "leads back into itself"},
		{"by a name", `"allOf":[{"$ref":"#me"}],"$anchor":"me"`, "leads back into itself"},
		{"by a name that moves", `"$dynamicRef":"#me","$dynamicAnchor":"me"`, "leads back into itself"},
		{"by its address", `"$id":"https://a.example/s","$ref":"https://a.example/s"`, "leads back into itself"},
		{"twice and twice", `"$ref":"#/$defs/d0","$defs":{` + doubled("allOf") + `}`, "takes more than 2097152 steps"},
		{"or and or", `"$ref":"#/$defs/d0","$defs":{` + doubled("oneOf") + `}`, "takes more than 2097152 steps"},
		{"an $id inside", `"properties":{"a":{"$id":"https://a.example/s","$ref":"#"}}`, "an $id of its own"},
		{"elsewhere", `"$ref":"other.json"`, `refers to "other.json"`},
		{"a tree", `"properties":{"a":{"$ref":"#"}}`, ""},
		{"values", `"properties":{"default":{"type":"string"}},"default":{"$id":"https://a.example"},"examples":[{"$ref":"#"}]`, ""},
		{"an argument of that name", `"properties":{"$id":{"type":"string"},"$ref":{"$ref":"#/$defs/t"}},"$defs":{"t":{"type":"string"}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := strange(`{"type":"object",` + c.schema + `}`)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What only a value leads into is found with the value.
func TestValuesAreBounded(t *testing.T) {
	nested := func(n int) string { return strings.Repeat(`{"a":`, n) + "{}" + strings.Repeat("}", n) }
	long := `{"a":[` + strings.Repeat("1,", 2500) + `1]}`
	alternatives := strings.Repeat(`{"const":0},`, 1000) + `{}`
	for _, c := range []struct{ name, schema, args, want string }{
		{"a tree", `"properties":{"a":{"$ref":"#"}}`, nested(60), ""},
		{"a tree that doubles", `"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, nested(60), "takes more than"},
		{"one that doubles a little", `"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}`, nested(5), ""},
		{"a circle below", `"additionalProperties":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}`, `{"x":1}`, "leads back into itself"},
		{"the same without", `"additionalProperties":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"type":"integer"}}`, `{"x":1}`, ""},
		{"many of many", `"properties":{"a":{"items":{"anyOf":[` + alternatives + `]}}}`, long, "takes more than"},
		{"many", `"properties":{"a":{"items":{"type":"integer"}}}`, long, ""},
		{"patterns of a long text", `"properties":{"a":{"allOf":[` + strings.Repeat(`{"pattern":"a+b"},`, 1000) + `{}]}}`, `{"a":"` + strings.Repeat("a", 1<<20) + `"}`, "takes more than"},
		{"names", `"propertyNames":{"$ref":"#/$defs/n"},"$defs":{"n":{"$ref":"#/$defs/n"}}`, `{"x":1}`, "leads back into itself"},
	} {
		t.Run(c.name, func(t *testing.T) {
			x, err := strange(`{"type":"object",` + c.schema + `}`)
			if err != nil {
				t.Fatal(err)
			}
			_, _, err = x.Args([]byte(c.args))
			if (err == nil) != (c.want == "") || err != nil && (writ.KindOf(err) != writ.Invalid || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%.300v, want %q", err, c.want)
			}
		})
	}
}
