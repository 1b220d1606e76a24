package upstream

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/writ-run/writ"
)

const plain = `"inputSchema":{"type":"object"}`

// Which tools are offered, and what is said of those that are not.
func TestTools(t *testing.T) {
	for _, c := range []struct{ name, raw, want string }{
		{"sound", `{"name":"a",` + plain + `}`, ""},
		{"local references", `{"name":"a","inputSchema":{"type":"object","properties":{"p":{"$ref":"#/$defs/p"}},"$defs":{"p":{"type":"object","properties":{"next":{"$ref":"#/$defs/p"}}}}}}`, ""},
		{"an argument called description", `{"name":"a","inputSchema":{"type":"object","properties":{"description":{"type":"string"}}}}`, ""},
		{"no name", `{` + plain + `}`, "it has no name"},
		{"a name that is a number", `{"name":1,` + plain + `}`, "it has no name"},
		{"a long name", `{"name":"` + strings.Repeat("a", 129) + `",` + plain + `}`, "its name is longer than 128 bytes"},
		{"tags in the name", `{"name":"a\udb40\udc41",` + plain + `}`, "its name holds characters that do not show"},
		{"bidi in the name", `{"name":"a\u202eb",` + plain + `}`, "its name holds characters that do not show"},
		{"zero width in the name", `{"name":"a\u200bb",` + plain + `}`, "its name holds characters that do not show"},
		{"an escape in the name", `{"name":"a\u001b[31m",` + plain + `}`, "its name holds characters that do not show"},
		{"a line break in the name", `{"name":"a\nb",` + plain + `}`, "its name holds characters that do not show"},
		{"no schema", `{"name":"a"}`, "it has no inputSchema that is an object"},
		{"a schema that is none", `{"name":"a","inputSchema":true}`, "it has no inputSchema that is an object"},
		{"a schema of strings", `{"name":"a","inputSchema":{"type":"string"}}`, `tool check__a: parameters: the schema must have "type": "object"`},
		{"a schema that does not compile", `{"name":"a","inputSchema":{"type":"object","properties":{"p":{"pattern":"("}}}}`, "error parsing regexp"},
		{"a reference to elsewhere", `{"name":"a","inputSchema":{"type":"object","properties":{"p":{"$ref":"http://example.com/s"}}}}`, "inputSchema: its schema refers to http://example.com/s, which is not fetched; write it out"},
		{"a reference to nothing", `{"name":"a","inputSchema":{"type":"object","properties":{"p":{"$ref":"#/$defs/no"}}}}`, "$defs/no"},
		{"hidden in an argument's name", `{"name":"a","inputSchema":{"type":"object","properties":{"p\u200b":{}}}}`, "inputSchema: a name in it holds characters that do not show: p<U+200B>"},
		{"hidden in a choice", `{"name":"a","inputSchema":{"type":"object","properties":{"p":{"enum":["x\u200b"]}}}}`, "inputSchema: enum holds characters that do not show: x<U+200B>"},
		{"duplicate keys", `{"name":"a","inputSchema":{"type":"object","a":{"b":1,"b":2}}}`, "duplicate key"},
		{"an integer beyond a float", `{"name":"a","inputSchema":{"type":"object","maximum":18446744073709551615}}`, "number with more digits"},
		{"a hint that is a word", `{"name":"a",` + plain + `,"annotations":{"readOnlyHint":"yes"}}`, "annotations: readOnlyHint is neither true nor false"},
		{"annotations that are none", `{"name":"a",` + plain + `,"annotations":[]}`, "annotations: JSON: a JSON object is expected at byte 0"},
		{"an output schema that does not compile", `{"name":"a",` + plain + `,"outputSchema":{"type":"object","properties":{"p":{"pattern":"("}}}}`, "outputSchema: "},
		{"a book", `{"name":"a","description":"` + strings.Repeat("x", 33<<10) + `",` + plain + `}`, "its description has more than 32768 bytes"},
		{"a library", `{"name":"a","x":"` + strings.Repeat("x", 300<<10) + `",` + plain + `}`, "its definition has more than 262144 bytes"},
		{"no object", `7`, "a JSON object is expected"},
	} {
		var o Offer
		o.tools([]json.RawMessage{json.RawMessage(c.raw)})
		switch {
		case c.want == "" && (len(o.Tools) != 1 || len(o.Refused) != 0):
			t.Errorf("%s: %+v", c.name, o.Refused)
		case c.want != "" && (len(o.Tools) != 0 || len(o.Refused) != 1 || !strings.Contains(o.Refused[0].Why, c.want)):
			t.Errorf("%s: %d tools, %+v", c.name, len(o.Tools), o.Refused)
		}
	}
}

func TestToolsOfOneName(t *testing.T) {
	var o Offer
	o.tools([]json.RawMessage{
		json.RawMessage(`{"name":"Read",` + plain + `}`), json.RawMessage(`{"name":"read",` + plain + `}`),
		json.RawMessage(`{"name":"other",` + plain + `}`),
		json.RawMessage(`{"name":"broken"}`), json.RawMessage(`{"name":"BROKEN",` + plain + `}`),
	})
	if len(o.Tools) != 1 || o.Tools[0].Name != "other" || len(o.Refused) != 4 {
		t.Errorf("%+v, %+v", o.Tools, o.Refused)
	}
}

// What models read has nothing hidden in it; what is pinned is what was sent.
func TestTextsAreVisible(t *testing.T) {
	raw := `{"name":"a","title":"T\u202e","description":"reads\u001b[2K\ndo \udb40\udc48it","inputSchema":{"type":"object","x-writ-text":true,"properties":` +
		`{"b":{"type":"string","description":"a\u200bb","x-writ-path":"read","X-Writ-Host":true,"x-mcp-header":"B"},"a":{"anyOf":[{"x-writ-text":true,"maximum":1.50}]}}}}`
	got, err := parseTool(json.RawMessage(raw))
	if err != nil {
		t.Fatal(err)
	}
	if got.Title != "T<U+202E>" || got.Description != "reads<U+001B>[2K\ndo <U+E0048>it" || string(got.Raw) != raw {
		t.Errorf("%q, %q, %s", got.Title, got.Description, got.Raw)
	}
	const schema = `{"type":"object","properties":{"b":{"type":"string","description":"a<U+200B>b"},"a":{"anyOf":[{"maximum":1.50}]}}}`
	if string(got.Schema) != schema {
		t.Errorf("%s", got.Schema)
	}
	other, err := parseTool(json.RawMessage(strings.Replace(raw, `\u200b`, ``, 1)))
	if err != nil || other.Digest == got.Digest {
		t.Errorf("what was hidden is not part of the digest, %v", err)
	}
	spaced, err := parseTool(json.RawMessage(strings.Replace(raw, `"name":"a"`, `"name" : "\u0061"`, 1)))
	if err != nil || spaced.Digest != got.Digest {
		t.Errorf("spaces are part of the digest, %v", err)
	}
}

func TestResourcesAndPrompts(t *testing.T) {
	var o Offer
	o.resources([]json.RawMessage{
		json.RawMessage(`{"uri":"file:///a","name":"n","description":"x\u200b","extra":12345678901234567890}`),
		json.RawMessage(`{"uri":"file:///a"}`), json.RawMessage(`{"uri":"file:///\u202eb"}`), json.RawMessage(`{"name":"n"}`),
	}, "resource", "uri", &o.Resources)
	o.prompts([]json.RawMessage{json.RawMessage(`{"name":"p","arguments":[{"name":"a","description":"\u200b"}]}`), json.RawMessage(`{"name":"P"}`), json.RawMessage(`{"name":"q","arguments":[{"name":"\u200b"}]}`)})
	if len(o.Resources) != 1 || string(o.Resources[0].Shown) != `{"uri":"file:///a","name":"n","description":"x<U+200B>","extra":12345678901234567890}` {
		t.Errorf("%+v", o.Resources)
	}
	if len(o.Prompts) != 1 || string(o.Prompts[0].Shown) != `{"name":"p","arguments":[{"name":"a","description":"<U+200B>"}]}` {
		t.Errorf("%s", o.Prompts)
	}
	if len(o.Refused) != 5 {
		t.Errorf("%+v", o.Refused)
	}
}

func TestDefinition(t *testing.T) {
	for _, c := range []struct {
		name, annotations string
		class             writ.Class
		dangerous         bool
	}{
		{"nothing said", ``, writ.ClassWrite, false},
		{"nothing in it", `,"annotations":{}`, writ.ClassWrite, false},
		{"reads", `,"annotations":{"readOnlyHint":true}`, writ.ClassReadOnly, false},
		{"reads, in a closed world", `,"annotations":{"readOnlyHint":true,"openWorldHint":false}`, writ.ClassReadOnly, false},
		{"reads, and destroys", `,"annotations":{"readOnlyHint":true,"destructiveHint":true}`, writ.ClassWrite, true},
		{"destroys", `,"annotations":{"destructiveHint":true}`, writ.ClassWrite, true},
		{"does not destroy", `,"annotations":{"destructiveHint":false,"idempotentHint":true}`, writ.ClassWrite, false},
	} {
		got, err := parseTool(json.RawMessage(`{"name":"a.b",` + plain + c.annotations + `}`))
		if err != nil {
			t.Fatal(err)
		}
		d, err := Definition("srv", got, DefinitionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		class, dangerous := d.Declared()
		if d.Class != c.class || d.Dangerous != c.dangerous || class != c.class || dangerous != c.dangerous {
			t.Errorf("%s: %s %v, declared %s %v", c.name, d.Class, d.Dangerous, class, dangerous)
		}
		if d.Name != Name("srv", "a.b") || d.Category != "mcp" || d.Action != "comms:external" || !d.Untrusted || d.Runs != "in_process" || d.Runner.Kind != "mcp" {
			t.Errorf("%s: %+v", c.name, d)
		}
		if want := `{"digest":"` + got.Digest.String() + `","name":"a.b","server":"srv"}`; string(d.Runner.Spec) != want {
			t.Errorf("%s", d.Runner.Spec)
		}
	}
	reads := writ.ClassReadOnly
	got, err := parseTool(json.RawMessage(`{"name":"a",` + plain + `,"annotations":{"destructiveHint":true},"outputSchema":{"type":"array"}}`))
	if err != nil {
		t.Fatal(err)
	}
	d, err := Definition("srv", got, DefinitionOptions{Name: "a", Class: &reads})
	if err != nil || d.Name != "a" || d.Class != reads || !d.Dangerous || d.Output != nil {
		t.Errorf("%+v, %v", d, err)
	}
}
