package disclose

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/display"
)

func readFile() *Entry {
	return &Entry{
		Name: "read_file", Title: "Read a file", Category: "file_system", Tier: "cheap",
		Description: "Reads a file of the workspace, e.g. a source.\nBinary files are refused. More than 1 MiB is cut.\n\nProtected files cannot be read.",
		Schema:      json.RawMessage(`{"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}`),
		Examples:    []Example{{"the first file", json.RawMessage(`{"path": "a  b.txt"}`)}},
		Failures:    []string{"not_found: there is no such file", "too_large"},
		Resources:   []Resource{{"guide", "How to read large files", "Read a range.\nThen the next."}},
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct{ name, description, want string }{
		{"first sentence", readFile().Description, "read_file (file_system, cheap): Reads a file of the workspace, e.g. a source."},
		{"first paragraph", "\n\n Reads a file \r\n\r\nwith care", "read_file (file_system, cheap): Reads a file"},
		{"no description", " \n", "read_file (file_system, cheap): Read a file"},
		{"Chinese", "读取文件。然后返回。", "read_file (file_system, cheap): 读取文件。"},
		{"version", "Speaks HTTP 1.1 and 2. Not 3.", "read_file (file_system, cheap): Speaks HTTP 1.1 and 2."},
		{"question", "What time is it? Asks a clock.", "read_file (file_system, cheap): What time is it?"},
		{"newlines", "Reads\na\r\n\tfile", "read_file (file_system, cheap): Reads a file"},
		{"controls", "Reads\x1b[2J a\x00file", "read_file (file_system, cheap): Reads<U+001B>[2J a<U+0000>file"},
		{"bidi", "Reads \u202egnp\u2028exe", "read_file (file_system, cheap): Reads <U+202E>gnp exe"},
		{"tags", "Reads\U000E0041", "read_file (file_system, cheap): Reads<U+E0041>"},
		{"not UTF-8", "Reads \xff", "read_file (file_system, cheap): Reads <0xFF>"},
		{"long", strings.Repeat("word ", 2000) + ". Next.", "read_file (file_system, cheap): " + strings.TrimSpace(strings.Repeat("word ", 82)) + "…"},
	} {
		e := readFile()
		e.Description = c.description
		if diff := cmp.Diff(c.want, e.Line()); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	if got := (&Entry{Name: "bare"}).Line(); got != "bare" {
		t.Errorf("an entry with nothing but a name: %q", got)
	}
}

func TestFull(t *testing.T) {
	want := `# read_file: Read a file
file_system, cheap

Reads a file of the workspace, e.g. a source.
Binary files are refused. More than 1 MiB is cut.

Protected files cannot be read.

## Arguments (JSON Schema)
{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}

## Examples
- the first file: {"path":"a  b.txt"}

## Failure modes
- not_found: there is no such file
- too_large

## More, by load_tool_resource
- guide: How to read large files`
	if diff := cmp.Diff(want, readFile().Full()); diff != "" {
		t.Error(diff)
	}
	want = "# bare\n\n\n## Arguments (JSON Schema)\nnone declared"
	if diff := cmp.Diff(want, (&Entry{Name: "bare"}).Full()); diff != "" {
		t.Error(diff)
	}
}

// property is a schema of so many properties.
func property(n int) json.RawMessage {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"p%d":{"type":"string"}`, i)
	}
	return json.RawMessage(`{"type":"object","properties":{` + b.String()[1:] + `}}`)
}

func TestFullLeavesOutVisibly(t *testing.T) {
	manyExamples := make([]Example, 1000)
	manyFailures := make([]string, 1000)
	manyResources := make([]Resource, 1000)
	for i := range manyExamples {
		manyExamples[i] = Example{fmt.Sprintf("number %d", i), json.RawMessage(`{"path":"x"}`)}
		manyFailures[i] = fmt.Sprintf("failure number %d", i)
		manyResources[i] = Resource{Name: fmt.Sprintf("part_%d", i), Title: "More of it"}
	}
	for _, c := range []struct {
		name   string
		change func(*Entry)
		want   string
		whole  bool // the schema is there
	}{
		{"schema", func(e *Entry) { e.Schema = property(2000) }, "\ntoo large to show here: before calling it, call load_tool_resource with tool_name read_file and resource_id schema\n", false},
		{"huge schema", func(e *Entry) { e.Schema = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`) }, "\ntoo large to show here: before calling it, call load_tool_resource with tool_name read_file and resource_id schema\n", false},
		{"description", func(e *Entry) { e.Description = strings.Repeat("word ", 1<<20) }, "word word…\n(cut here: for all of it call load_tool_resource with tool_name read_file and resource_id description)\n", true},
		{"examples", func(e *Entry) { e.Examples = manyExamples }, " of 1000 left out: for all of them call load_tool_resource with tool_name read_file and resource_id examples)\n", true},
		{"failures", func(e *Entry) { e.Failures = manyFailures }, " of 1000 left out: for all of them call load_tool_resource with tool_name read_file and resource_id failure_modes)\n", true},
		{"resources", func(e *Entry) { e.Resources = manyResources }, " of 1000 left out: for all of them call load_tool_resource with tool_name read_file and resource_id resources)", true},
		{"all", func(e *Entry) {
			e.Description, e.Examples, e.Failures, e.Resources = strings.Repeat("日本", 1<<16), manyExamples, manyFailures, manyResources
		}, "(cut here:", true},
		{"not JSON", func(e *Entry) { e.Schema = json.RawMessage(`{"a":`) }, "## Arguments (JSON Schema)\n(not JSON)\n", false},
		{"hidden in the schema", func(e *Entry) { e.Schema = json.RawMessage("{\"x\":\"\u202e😀\"}") }, "\n" + `{"x":"\u202e\ud83d\ude00"}` + "\n", false},
	} {
		e := readFile()
		c.change(e)
		got := e.Full()
		if !strings.Contains(got, c.want) {
			t.Errorf("%s: %q is not in %.3000q", c.name, c.want, got)
		}
		if n := Tokens(got); n >= FullTokens {
			t.Errorf("%s: %d tokens", c.name, n)
		}
		if whole := strings.Contains(got, `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`); whole != c.whole {
			t.Errorf("%s: the schema is there: %v", c.name, whole)
		}
	}
}

func TestResource(t *testing.T) {
	e := readFile()
	for name, want := range map[string]string{
		"description":   e.Description,
		"schema":        `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`,
		"examples":      "- the first file: {\"path\":\"a  b.txt\"}\n",
		"failure_modes": "- not_found: there is no such file\n- too_large\n",
		"resources":     "- guide: How to read large files\n",
		"guide":         "Read a range.\nThen the next.",
	} {
		if got, err := e.Resource(name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	_, err := e.Resource("Guide")
	kind, msg := writ.Public(err)
	if kind != writ.NotFound || msg != `read_file has no resource "Guide"; take one of description, schema, examples, failure_modes, resources, guide` {
		t.Errorf("%s: %s", kind, msg)
	}
}

// A megabyte in every field must not hold up the list of everybody.
func TestHostileEntryIsBounded(t *testing.T) {
	mega := strings.Repeat("a\u202e\n ", 1<<18)
	e := &Entry{Name: mega, Title: mega, Description: mega, Category: mega, Tier: mega, Schema: json.RawMessage(mega), Failures: []string{mega}, Examples: []Example{{What: mega}}, Resources: []Resource{{mega, mega, mega}}}
	checkEntry(t, e)
	took := func(what func() string) time.Duration {
		began := time.Now()
		for range 20 {
			what()
		}
		return time.Since(began) / 20
	}
	if line, full := took(e.Line), took(e.Full); line > 5*time.Millisecond || full > 50*time.Millisecond {
		t.Errorf("a line takes %v, all of it %v", line, full)
	}
}

// checkEntry holds for every entry.
func checkEntry(t *testing.T, e *Entry) {
	t.Helper()
	line := e.Line()
	if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) || unicode.In(r, unicode.Zl, unicode.Zp) }) || !utf8.ValidString(line) {
		t.Fatalf("line %q", line)
	}
	if n := Tokens(line); n > LineTokens || len(line) > 1500 {
		t.Fatalf("line of %d tokens, %d bytes: %q", n, len(line), line)
	}
	full := e.Full()
	if n := Tokens(full); n >= FullTokens {
		t.Fatalf("full of %d tokens", n)
	}
	if safe := strings.ReplaceAll(display.Visible(full), "<U+003C>", "<"); safe != full {
		t.Fatalf("full hides something: %q", full)
	}
}

func FuzzEntry(f *testing.F) {
	f.Add("read_file", "Read", "Reads. It is good.", "file_system", `{"type":"object"}`, "what", uint16(3))
	f.Add("x", "\u202e", "e.g. \x1b[2J\n\n", "\xff", "{", "<U+202E>", uint16(900))
	f.Add("", "", "", "", "", "", uint16(0))
	f.Fuzz(func(t *testing.T, name, title, description, category, schema, what string, times uint16) {
		n := int(times % 1000)
		e := &Entry{Name: name, Title: title, Description: strings.Repeat(description, n), Category: category, Schema: json.RawMessage(schema)}
		for range n {
			e.Examples = append(e.Examples, Example{what, json.RawMessage(schema)})
			e.Failures = append(e.Failures, what)
			e.Resources = append(e.Resources, Resource{name, title, what})
		}
		checkEntry(t, e)
		index, err := NewIndex([]*Entry{e})
		if err != nil {
			t.Fatal(err)
		}
		if hits := index.Search(what, 1); len(hits) > 1 {
			t.Fatalf("%d hits of one entry", len(hits))
		}
		page, err := index.List(what, "", 3000)
		if err != nil || Tokens(page.Text) > 3000 {
			t.Fatalf("%d tokens, %v: %q", Tokens(page.Text), err, page.Text)
		}
	})
}
