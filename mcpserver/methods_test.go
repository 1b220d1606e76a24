package mcpserver

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestEveryMethod: everything that the SDK would dispatch is answered here, or goes to
// it by our own table, or is refused. A method that a newer SDK brings fails this test
// until somebody has thought about it.
func TestEveryMethod(t *testing.T) {
	d := &Door{}
	s := d.newServer()
	var known []string
	for _, key := range reflect.ValueOf(s).Elem().FieldByName("receiveMethods").MapKeys() {
		known = append(known, key.String())
	}
	if len(known) < 15 {
		t.Fatalf("the SDK's methods are not found any more: %v", known)
	}
	slices.Sort(known)
	for _, method := range known {
		_, ours := ownMethods[method]
		_, theirs := sdkMethods[method]
		if ours == theirs {
			t.Errorf("%s: answered here %v, left to the SDK %v; it must be one of the two, or refused by name", method, ours, theirs)
		}
	}
	for method := range sdkMethods {
		if !slices.Contains(known, method) {
			t.Errorf("%s is left to the SDK, which does not know it", method)
		}
	}
	// What only passes through reaches nothing of ours.
	passes := reflect.ValueOf(handler(pass)).Pointer()
	var through []string
	for method, h := range sdkMethods {
		if reflect.ValueOf(h).Pointer() == passes {
			through = append(through, method)
		}
	}
	slices.Sort(through)
	want := "notifications/initialized notifications/progress notifications/roots/list_changed ping server/discover"
	if got := strings.Join(through, " "); got != want {
		t.Errorf("passed through: %s", got)
	}
	if tools := toolsOf(s); tools != 0 {
		t.Errorf("%d tools are registered with the SDK, which would run them past the gate", tools)
	}
}

// toolsOf counts what the SDK could run by itself.
func toolsOf(s *mcp.Server) int {
	n := 0
	for _, field := range []string{"tools", "resources", "prompts", "resourceTemplates"} {
		n += reflect.ValueOf(s).Elem().FieldByName(field).Elem().FieldByName("features").Len()
	}
	return n
}

// TestParse is what a message has to be before anybody looks at what it says.
func TestParse(t *testing.T) {
	for what, c := range map[string]struct {
		raw  string
		code int // 0: it is taken
	}{
		"a request":               {`{"jsonrpc":"2.0","id":1,"method":"ping"}`, 0},
		"a string for an id":      {`{"jsonrpc":"2.0","id":"a","method":"ping","params":{}}`, 0},
		"a notification":          {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 0},
		"a response":              {`{"jsonrpc":"2.0","id":"writ-1","result":{}}`, 0},
		"members nobody knows":    {`{"jsonrpc":"2.0","id":1,"method":"ping","extra":{"a":1}}`, 0},
		"nothing":                 {``, codeParse},
		"half of it":              {`{"jsonrpc":"2.0","id":1`, codeParse},
		"two messages":            {`{"jsonrpc":"2.0","id":1,"method":"ping"} {}`, codeParse},
		"a batch":                 {`[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, codeRequest},
		"two methods":             {`{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}`, codeParse},
		"two names":               {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stat","name":"delete_file"}}`, codeParse},
		"a name by its escape":    {`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"stat","n\u0061me":"delete_file"}}`, codeParse},
		"bytes that are no UTF-8": {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xffng\"}", codeParse},
		"half a character":        {`{"jsonrpc":"2.0","id":1,"method":"\ud800"}`, codeParse},
		"no number":               {`{"jsonrpc":"2.0","id":NaN,"method":"ping"}`, codeParse},
		"too deep":                {`{"jsonrpc":"2.0","id":1,"method":"ping","params":` + strings.Repeat(`{"a":`, 70) + `1` + strings.Repeat(`}`, 70) + `}`, codeParse},
		"another version":         {`{"jsonrpc":"1.0","id":1,"method":"ping"}`, codeRequest},
		"no id but null":          {`{"jsonrpc":"2.0","id":null,"method":"ping"}`, codeRequest},
		"a fraction for an id":    {`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, codeRequest},
		"an id that is lost":      {`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, codeParse},
		"an object for an id":     {`{"jsonrpc":"2.0","id":{},"method":"ping"}`, codeRequest},
		"a method in capitals":    {`{"jsonrpc":"2.0","id":1,"Method":"ping"}`, 0}, // a response, to nobody
		"a number for a method":   {`{"jsonrpc":"2.0","id":1,"method":5}`, codeRequest},
		"a list of params":        {`{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}`, codeParams},
		"null for params":         {`{"jsonrpc":"2.0","id":1,"method":"ping","params":null}`, codeParams},
		"text for meta":           {`{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":"x"}}`, codeParams},
	} {
		m, fail := parse([]byte(c.raw))
		code := 0
		if fail != nil {
			code = fail.Code
		}
		if code != c.code {
			t.Errorf("%s: code %d, want %d (%v)", what, code, c.code, fail)
		}
		if what == "a method in capitals" && m.method != "" {
			t.Errorf("%s is taken for %q", what, m.method)
		}
	}
}

// FuzzParse: whatever arrives, it is a message or an error, and what is taken for a
// name is what stands there.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, fail := parse(raw)
		if fail != nil {
			return
		}
		if m.id != nil && !validID(m.id) {
			t.Errorf("id %s", m.id)
		}
		if name := text(m.params["name"]); name != "" && !strings.Contains(string(raw), "name") && !strings.Contains(string(raw), `\u`) {
			t.Errorf("a name from nowhere: %q", name)
		}
	})
}

func TestPage(t *testing.T) {
	var all []string
	for i := range 2*pageSize + 1 {
		all = append(all, string(rune('a'+i/26/26))+string(rune('a'+i/26%26))+string(rune('a'+i%26)))
	}
	name := func(s string) string { return s }
	var got []string
	cursor := ""
	for range 4 {
		part, next, err := page(all, name, cursor)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, part...)
		if cursor = next; next == "" {
			break
		}
	}
	if !slices.Equal(got, all) {
		t.Errorf("%d of %d are listed", len(got), len(all))
	}
	for _, bad := range []string{"!", "====", "é", "bogus", "YWJj", "YWZ0ZXIg"} {
		if _, _, err := page(all, name, bad); err == nil {
			t.Errorf("cursor %q is taken", bad)
		}
	}
}
