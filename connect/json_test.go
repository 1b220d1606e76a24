package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	coder  = Server{Command: "/opt/writ", Args: []string{"mcp", "--agent", "coder"}}
	other  = Server{Command: "/usr/bin/writ", Args: []string{"mcp", "--agent", "other"}}
	remote = Server{URL: "http://127.0.0.1:7323/mcp"}
	claude = JSON{[]string{"mcpServers"}}
)

// block is the entry of coder on lines of their own.
func block(prefix, unit string) string {
	return indented(claude.entry(coder), prefix, unit)
}

const flat = `{"type":"stdio","command":"/opt/writ","args":["mcp","--agent","coder"],"env":{}}`

func TestJSONAdd(t *testing.T) {
	for _, c := range []struct{ name, before, after string }{
		{"two spaces", "{\n  \"a\": 1\n}\n", "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"writ\": " + block("    ", "  ") + "\n  }\n}\n"},
		{"no last line end", "{\n  \"a\": 1\n}", "{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"writ\": " + block("    ", "  ") + "\n  }\n}"},
		{"empty object", "{}\n", "{\n  \"mcpServers\": {\n    \"writ\": " + block("    ", "  ") + "\n  }\n}\n"},
		{"tabs", "{\n\t\"mcpServers\": {\n\t\t\"b\": {}\n\t},\n\t\"z\": 1\n}\n", "{\n\t\"mcpServers\": {\n\t\t\"b\": {},\n\t\t\"writ\": " + block("\t\t", "\t") + "\n\t},\n\t\"z\": 1\n}\n"},
		{"four spaces, empty servers", "{\n    \"mcpServers\": {},\n    \"z\": 1\n}\n", "{\n    \"mcpServers\": {\n        \"writ\": " + block("        ", "    ") + "\n    },\n    \"z\": 1\n}\n"},
		{"one line", `{"z":1,"mcpServers":{"b":{"command":"x"}},"a":2}`, `{"z":1,"mcpServers":{"b":{"command":"x"},"writ":` + flat + `},"a":2}`},
		{"one line with spaces", `{ "z": 1, "mcpServers": { "b": {} } }`, `{ "z": 1, "mcpServers": { "b": {}, "writ":` + flat + ` } }`},
		{"one line, empty servers", `{"mcpServers":{}}`, `{"mcpServers":{"writ":` + flat + `}}`},
		{"crlf", "{\r\n  \"mcpServers\": {\r\n    \"b\": {}\r\n  }\r\n}\r\n", "{\r\n  \"mcpServers\": {\r\n    \"b\": {},\r\n    \"writ\": " + strings.ReplaceAll(block("    ", "  "), "\n", "\r\n") + "\r\n  }\r\n}\r\n"},
		{"bom", "\xef\xbb\xbf{\n  \"a\": 1\n}\n", "\xef\xbb\xbf{\n  \"a\": 1,\n  \"mcpServers\": {\n    \"writ\": " + block("    ", "  ") + "\n  }\n}\n"},
		{"escaped key", `{"mcp\u0053ervers":{"b":1}}`, `{"mcp\u0053ervers":{"b":1,"writ":` + flat + `}}`},
		{"key of a nested object", `{"x":{"mcpServers":{"writ":1}},"mcpServers":{"b":[{"writ":2}]}}`, `{"x":{"mcpServers":{"writ":1}},"mcpServers":{"b":[{"writ":2}],"writ":` + flat + `}}`},
		{"numbers and escapes stay", `{"n":12345678901234567890.10e+3,"s":"\u00e9\/\u2028","mcpServers":{"b":-0.0}}`, `{"n":12345678901234567890.10e+3,"s":"\u00e9\/\u2028","mcpServers":{"b":-0.0,"writ":` + flat + `}}`},
	} {
		t.Run(c.name, func(t *testing.T) { adds(t, claude, c.before, c.after) })
	}
}

// adds demands an addition, and that taking it out again leaves the file as it was.
func adds(t *testing.T, l Language, before, after string) {
	t.Helper()
	got, err := Connect(l, []byte(before), coder, false)
	if err != nil || got.Action != Added {
		t.Fatalf("%s %v", got.Action, err)
	}
	if diff := cmp.Diff(after, string(got.After)); diff != "" {
		t.Fatalf("-want +got\n%s", diff)
	}
	again, err := Connect(l, got.After, coder, false)
	if err != nil || again.Action != Unchanged || !bytes.Equal(again.After, got.After) {
		t.Errorf("again: %s %v", again.Action, err)
	}
	back, err := Disconnect(l, got.After, [][]byte{[]byte(before)}, false)
	if err != nil || back.Action != Removed || string(back.After) != before {
		t.Errorf("back: %s %v\n%s", back.Action, err, back.After)
	}
}

func TestJSONLocalScope(t *testing.T) {
	adds(t, JSON{[]string{"projects", "/p", "mcpServers"}}, `{"projects":{"/q":{"mcpServers":{"writ":1}}}}`,
		`{"projects":{"/q":{"mcpServers":{"writ":1}},"/p":{"mcpServers":{"writ":`+flat+`}}}}`)
	adds(t, JSON{[]string{"projects", "/p", "mcpServers"}}, `{"projects":{"/p":{"a":1}}}`, `{"projects":{"/p":{"a":1,"mcpServers":{"writ":`+flat+`}}}}`)
}

func TestJSONChange(t *testing.T) {
	ours := `{"mcpServers":{"a":1,"writ":{"args":["mcp","--agent","x"],"timeout":5,"command":"/old/writ"},"b":2}}`
	foreign := `{"mcpServers":{"a":1,"writ":{"command":"npx","args":["mcp"],"env":{"K":"v"}},"b":2}}`
	for _, c := range []struct {
		name, before string
		s            Server
		replace      bool
		action, want string
	}{
		{"ours keeps its other keys", ours, coder, false, Replaced, `{"mcpServers":{"a":1,"writ":{"args":["mcp","--agent","coder"],"timeout":5,"command":"/opt/writ"},"b":2}}`},
		{"ours, to http", ours, remote, false, Replaced, `{"mcpServers":{"a":1,"writ":{"type":"http","url":"http://127.0.0.1:7323/mcp","headers":{"Authorization":"Bearer ${WRIT_TOKEN}"}},"b":2}}`},
		{"ours, on lines", "{\n\t\"mcpServers\": {\n\t\t\"writ\": " + indented(claude.entry(other), "\t\t", "\t") + "\n\t}\n}", coder, false, Replaced, "{\n\t\"mcpServers\": {\n\t\t\"writ\": " + block("\t\t", "\t") + "\n\t}\n}"},
		{"foreign", foreign, coder, false, "", `line 1 has an entry "writ" that is not of this program`},
		{"foreign, replaced", foreign, coder, true, Replaced, `{"mcpServers":{"a":1,"writ":` + flat + `,"b":2}}`},
		{"not an object", `{"mcpServers":{"writ":7}}`, coder, false, "", `line 1 has an entry "writ" that is not of this program`},
		{"command of a wrong type", `{"mcpServers":{"writ":{"command":["writ"],"args":["mcp"]}}}`, coder, false, "", `line 1 has an entry "writ" that is not of this program`},
		{"another port", `{"mcpServers":{"writ":{"type":"http","url":"http://127.0.0.1:1/mcp","headers":{"Authorization":"Bearer ${WRIT_TOKEN}"}}}}`, remote, false, Replaced,
			`{"mcpServers":{"writ":{"type":"http","url":"http://127.0.0.1:7323/mcp","headers":{"Authorization":"Bearer ${WRIT_TOKEN}"}}}}`},
		{"somebody's url", `{"mcpServers":{"writ":{"type":"http","url":"https://example.com/mcp"}}}`, remote, false, "", `line 1 has an entry "writ" that is not of this program`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Connect(claude, []byte(c.before), c.s, c.replace)
			if said := fmt.Sprint(err); err != nil && said != c.want || err == nil && string(got.After) != c.want || got.Action != c.action {
				t.Errorf("%s %v\n%s\nwant %s %s", got.Action, err, got.After, c.action, c.want)
			}
		})
	}
}

func TestJSONRemove(t *testing.T) {
	writ := `"writ":` + flat
	for _, c := range []struct{ name, before, after string }{
		{"first", `{"mcpServers":{` + writ + `,"b":2}}`, `{"mcpServers":{"b":2}}`},
		{"between", `{"mcpServers":{"a":1,` + writ + `,"b":2}}`, `{"mcpServers":{"a":1,"b":2}}`},
		{"last", `{"mcpServers":{"a":1,` + writ + `}}`, `{"mcpServers":{"a":1}}`},
		{"first, on lines", "{\n \"mcpServers\": {\n  " + writ + ",\n  \"b\": 2\n }\n}", "{\n \"mcpServers\": {\n  \"b\": 2\n }\n}"},
		{"with keys of somebody", `{"mcpServers":{"a":1,"writ":{"command":"writ","args":["mcp"],"x":1}}}`, `{"mcpServers":{"a":1}}`},
		{"alone, and written otherwise", "{\n  \"mcpServers\": {\n" + writ + " } }\n", "{\n  \"mcpServers\": {} }\n"},
		{"not there", `{"mcpServers":{"a":1}}`, `{"mcpServers":{"a":1}}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Disconnect(claude, []byte(c.before), nil, false)
			if err != nil || string(got.After) != c.after {
				t.Errorf("%v\n%s\nwant\n%s", err, got.After, c.after)
			}
		})
	}
	foreign := []byte(`{"mcpServers":{"writ":{"command":"npx"}}}`)
	var e *Foreign
	if _, err := Disconnect(claude, foreign, nil, false); !errors.As(err, &e) {
		t.Errorf("foreign: %v", err)
	}
	if got, err := Disconnect(claude, foreign, nil, true); err != nil || string(got.After) != `{"mcpServers":{}}` {
		t.Errorf("foreign, forced: %v %s", err, got.After)
	}
}

// A file that connect made goes; one that was there before stays, however alike.
func TestRemoveOfWhatWasMade(t *testing.T) {
	for name, l := range map[string]Language{"json": claude, "toml": TOML{}} {
		made, err := Connect(l, nil, coder, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Disconnect(l, made.After, nil, false); err != nil || got.After != nil || got.Action != Removed {
			t.Errorf("%s: %v %q", name, err, got.After)
		}
		changed, err := Connect(l, made.After, other, false)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Disconnect(l, changed.After, [][]byte{made.After}, false); err != nil || got.After != nil {
			t.Errorf("%s, for another agent: %v %q", name, err, got.After)
		}
	}
	// Replacing somebody's entry leaves a backup that says that the file was there.
	if got, err := Disconnect(claude, []byte("{\n  \"mcpServers\": {\n    \"writ\": "+block("    ", "  ")+"\n  }\n}\n"), [][]byte{[]byte(`{"mcpServers":{"writ":1}}`)}, false); err != nil || string(got.After) != "{}\n" {
		t.Errorf("after a foreign entry: %v %q", err, got.After)
	}
	was := []byte("{\n  \"mcpServers\": {}\n}\n")
	added, err := Connect(claude, was, coder, false)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := Disconnect(claude, added.After, [][]byte{[]byte("{"), was}, false); err != nil || string(got.After) != string(was) {
		t.Errorf("there before: %v %q", err, got.After)
	}
}

func TestJSONRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "line 1 is not JSON: unexpected end of JSON input; correct it, then run this again"},
		{"{\n \"a\": 1,\n}", "line 3 is not JSON: invalid character '}' looking for beginning of object key string; correct it, then run this again"},
		{"{} {}", "line 1 is not JSON: invalid character '{' after top-level value; correct it, then run this again"},
		{"// x\n{}", "line 1 is not JSON: invalid character '/' looking for beginning of value; correct it, then run this again"},
		{"[]", "line 1 is not an object; correct it, then run this again"},
		{"null", "line 1 is not an object; correct it, then run this again"},
		{"{\"mcpServers\":\nnull}", "line 2 has \"mcpServers\", which is not an object; correct it, then run this again"},
		{"{\"mcpServers\":[{\"writ\":1}]}", "line 1 has \"mcpServers\", which is not an object; correct it, then run this again"},
		{"{\"mcpServers\":{},\n\"mcp\\u0053ervers\":{}}", "line 2 has the key \"mcpServers\" a second time; remove one, then run this again"},
		{"{\"mcpServers\":{\"writ\":1,\n\"writ\":2}}", "line 2 has the key \"writ\" a second time; remove one, then run this again"},
		{"{\"x\":[{\"a\":1,\n\n\"a\":2}]}", "line 3 has the key \"a\" a second time; remove one, then run this again"},
		{"{\"a\":\n\"\xff\"}", "line 2 is not UTF-8; correct it, then run this again"},
	} {
		if _, err := Connect(claude, []byte(c.text), coder, true); fmt.Sprint(err) != c.want {
			t.Errorf("%q\n got %v\nwant %s", c.text, err, c.want)
		}
	}
	for _, s := range []Server{{}, {Command: "/a", URL: "b"}, {Command: "/\xff"}, {Command: "/${HOME}/writ"}} {
		if _, err := Connect(claude, []byte("{}"), s, false); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

// Claude Code keeps its history in the file.
func TestJSONLarge(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("{\n  \"history\": [\n")
	for i := 0; b.Len() < 5<<20; i++ {
		fmt.Fprintf(&b, "    {\"n\": %d, \"mcpServers\": {\"writ\": \"%s\"}},\n", i, strings.Repeat("é\\\"", 400))
	}
	b.WriteString("    0\n  ],\n  \"mcpServers\": {\n    \"b\": {}\n  }\n}")
	before := b.String()
	added, err := Connect(claude, []byte(before), coder, false)
	want := strings.TrimSuffix(before, "\n  }\n}") + ",\n    \"writ\": " + block("    ", "  ") + "\n  }\n}"
	if err != nil || string(added.After) != want {
		t.Fatalf("%v, and it ends with\n%s", err, added.After[max(0, len(added.After)-300):])
	}
	if back, err := Disconnect(claude, added.After, nil, false); err != nil || string(back.After) != before {
		t.Errorf("back: %v", err)
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{"{}", "{ }", "{\n}\n", `{"mcpServers":{}}`, "{\n\t\"mcpServers\": {\n\t\t\"b\": {}\n\t}\n}\n", "\xef\xbb\xbf{\"a\":1}", "{\r\n \"a\" : [1 , 2]\r\n}", `{"a":{"b":1},"mcpServers":{"writ":3}}`,
		"{\n  \"mcpServers\": {\n  }\n}", `{"mcpServers" :{ "a":"\ud83d\ude00"}  }`, "{\"a\":1\n,\"b\":2}", "{\"a\":1,\n\"b\":2,\n  \"mcpServers\":\n{}}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, before []byte) {
		added, err := Connect(claude, before, coder, false)
		if err != nil || added.Action != Added {
			return
		}
		var was, is map[string]any
		if err := errors.Join(parse(before, &was), parse(added.After, &is)); err != nil {
			t.Fatalf("%v\n%s", err, added.After)
		}
		there, _ := was["mcpServers"].(map[string]any)
		checkBack(t, claude, before, added.After, len(there) > 0)
		servers := is["mcpServers"].(map[string]any)
		var want any
		if err := parse([]byte(flat), &want); err != nil || !cmp.Equal(servers[Name], want) {
			t.Fatalf("the entry is %v", servers[Name])
		}
		delete(servers, Name)
		if _, there := was["mcpServers"]; !there && len(servers) == 0 {
			delete(is, "mcpServers")
		}
		if diff := cmp.Diff(was, is); diff != "" {
			t.Fatalf("other values changed\n%s", diff)
		}
	})
}

func parse(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(text, bom)))
	d.UseNumber()
	return d.Decode(into)
}

// checkBack demands that taking the entry out gives the file as it was, with its backup
// and, where it has all that says so (JSON that had servers does), without.
func checkBack(t *testing.T, l Language, before, after []byte, had bool) {
	t.Helper()
	back, err := Disconnect(l, after, [][]byte{before}, false)
	if err != nil || !bytes.Equal(back.After, before) {
		t.Fatalf("back with the backup: %v\n%q\n%q\n%q", err, before, after, back.After)
	}
	f, err := find(l, after)
	if err != nil || f == nil {
		t.Fatalf("the entry is not found: %v\n%q", err, after)
	}
	bare, err := l.cut(after, f)
	if err != nil || had && !bytes.Equal(bare, before) {
		t.Fatalf("back without: %v\n%q\n%q\n%q", err, before, after, bare)
	}
	if there, err := find(l, bare); err != nil || there != nil {
		t.Fatalf("it is still there: %v\n%q", err, bare)
	}
	if there, _ := Connect(l, after, coder, false); there.Action != Unchanged {
		t.Fatalf("again: %s", there.Action)
	}
}
