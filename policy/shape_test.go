package policy

import (
	"encoding/json"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
)

func shape(t testing.TB, schema string) *Shape {
	t.Helper()
	s, err := ShapeOf(decoded(t, schema))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func decoded(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestCandidates(t *testing.T) {
	const (
		read  = `{"properties":{"p":{"x-writ-path":"read"}}}`
		write = `{"properties":{"p":{"x-writ-path":"write"}}}`
	)
	either := func(pointer, value string) Candidate { return Candidate{Pointer: pointer, Value: value} }
	for _, row := range []struct {
		name, schema, args string
		want               []Candidate
	}{
		{"nothing", `{}`, `{"a":"b","n":1,"t":true,"z":null,"e":[],"o":{}}`, nil},
		{"annotated read", read, `{"p":"x"}`, []Candidate{{Pointer: "/p", Value: "x", Side: writ.SideRead, Relative: true}}},
		{"annotated write", write, `{"p":"x"}`, []Candidate{{Pointer: "/p", Value: "x", Side: writ.SideWrite, Relative: true}}},
		{"annotated, empty", read, `{"p":""}`, []Candidate{{Pointer: "/p", Side: writ.SideRead, Relative: true}}},
		{"annotated, NUL", read, `{"p":"a\u0000b"}`, []Candidate{{Pointer: "/p", Value: "a\x00b", Side: writ.SideRead, Relative: true}}},
		{"annotated link", `{"properties":{"p":{"x-writ-path":"write","x-writ-link":true}}}`, `{"p":"x"}`, []Candidate{{Pointer: "/p", Value: "x", Side: writ.SideWrite, Relative: true, Link: true}}},
		{"annotated host", `{"properties":{"h":{"x-writ-host":true}}}`, `{"h":"a.b"}`, []Candidate{{Pointer: "/h", Value: "a.b", Kind: writ.TargetHost}}},
		{"annotated url to read from", `{"properties":{"u":{"x-writ-url":"read"}}}`, `{"u":"http://a"}`, []Candidate{{Pointer: "/u", Value: "http://a", Kind: writ.TargetHost, Side: writ.SideRead, URL: true}}},
		{"annotated url", `{"properties":{"u":{"x-writ-url":true}}}`, `{"u":"http://a"}`, []Candidate{{Pointer: "/u", Value: "http://a", Kind: writ.TargetHost, URL: true}}},

		{"absolute", `{}`, `{"a":"/etc/passwd"}`, []Candidate{either("/a", "/etc/passwd")}},
		{"absolute, NUL", `{}`, `{"a":"/etc\u0000"}`, []Candidate{either("/a", "/etc\x00")}},
		{"root", `{}`, `{"a":"/"}`, []Candidate{either("/a", "/")}},
		{"two slashes", `{}`, `{"a":"//x"}`, []Candidate{either("/a", "//x")}},
		{"relative", `{}`, `{"a":"etc/passwd","b":"../x","c":"./x"}`, nil},
		{"file url", `{}`, `{"a":"file:///x","b":"FILE:/x","c":"File://host/x","d":"file:x"}`, []Candidate{either("/a", "file:///x"), either("/b", "FILE:/x"), either("/c", "File://host/x"), either("/d", "file:x")}},
		{"other urls", `{}`, `{"a":"http://x/y","b":"files:///x","c":"profile:/x"}`, nil},
		{"home", `{}`, `{"a":"~","b":"~/x","c":"~root","d":"~root/x","e":"~a.b-c_d"}`, []Candidate{either("/a", "~"), either("/b", "~/x"), either("/c", "~root"), either("/d", "~root/x"), either("/e", "~a.b-c_d")}},
		{"not home", `{}`, `{"a":"~5 minutes","b":"~5","c":"x~","d":"~a b","e":""}`, nil},

		{"key", `{}`, `{"/etc/x":1}`, []Candidate{either("/~1etc~1x", "/etc/x")}},
		{"key with tilde", `{}`, `{"~/x":1}`, []Candidate{either("/~0~1x", "~/x")}},
		{"key and value", `{}`, `{"/k":"/v"}`, []Candidate{either("/~1k", "/k"), either("/~1k", "/v")}},
		{"array", `{}`, `{"a":["x","/y",["/z"]]}`, []Candidate{either("/a/1", "/y"), either("/a/2/0", "/z")}},
		{"deep", `{}`, `{"a":{"b":[{"c":{"d":"/deep"}}]}}`, []Candidate{either("/a/b/0/c/d", "/deep")}},
		{"key deep in an array", `{}`, `{"a":[{"/k":0}]}`, []Candidate{either("/a/0/~1k", "/k")}},
		{"sorted", `{}`, `{"b":"/2","a":"/1"}`, []Candidate{either("/a", "/1"), either("/b", "/2")}},

		{"text", `{"properties":{"t":{"x-writ-text":true}}}`, `{"t":"/etc/x","u":"/etc/y"}`, []Candidate{either("/u", "/etc/y")}},
		{"text object, keys too", `{"properties":{"t":{"x-writ-text":true}}}`, `{"t":{"/k":["/v",{"/k2":"~"}]}}`, nil},
		{"text object with a path in it", `{"properties":{"t":{"x-writ-text":true,"properties":{"p":{"x-writ-path":"read"}}}}}`, `{"t":{"p":"x","q":"/y"}}`, []Candidate{{Pointer: "/t/p", Value: "x", Side: writ.SideRead, Relative: true}}},
		{"text is of that property only", `{"properties":{"t":{"x-writ-text":true}}}`, `{"a":{"t":"/x"}}`, []Candidate{either("/a/t", "/x")}},

		{"items", `{"properties":{"l":{"items":{"x-writ-path":"write"}}}}`, `{"l":["a","/b"]}`, []Candidate{{Pointer: "/l/0", Value: "a", Side: writ.SideWrite, Relative: true}, {Pointer: "/l/1", Value: "/b", Side: writ.SideWrite, Relative: true}}},
		{"mark on the array", `{"properties":{"l":{"x-writ-path":"write"}}}`, `{"l":["a",["b"],{"k":"c"}]}`, []Candidate{{Pointer: "/l/0", Value: "a", Side: writ.SideWrite, Relative: true}, {Pointer: "/l/1/0", Value: "b", Side: writ.SideWrite, Relative: true}, {Pointer: "/l/2/k", Value: "c", Side: writ.SideWrite, Relative: true}}},
		{"mark on the object, own mark wins", `{"properties":{"o":{"x-writ-path":"write","properties":{"r":{"x-writ-path":"read"},"t":{"x-writ-text":true},"h":{"x-writ-host":true}}}}}`, `{"o":{"h":"h","r":"r","s":"s","t":"/t"}}`, []Candidate{{Pointer: "/o/h", Value: "h", Kind: writ.TargetHost}, {Pointer: "/o/r", Value: "r", Side: writ.SideRead, Relative: true}, {Pointer: "/o/s", Value: "s", Side: writ.SideWrite, Relative: true}}},
		{"additional properties", `{"additionalProperties":{"x-writ-path":"read"}}`, `{"x":"y"}`, []Candidate{{Pointer: "/x", Value: "y", Side: writ.SideRead, Relative: true}}},
		{"additional properties are the others", `{"properties":{"x":{}},"additionalProperties":{"x-writ-path":"read"}}`, `{"x":"y"}`, nil},
		{"below what the schema does not name", `{"properties":{"p":{"x-writ-text":true}}}`, `{"q":{"p":"/x"}}`, []Candidate{either("/q/p", "/x")}},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := shape(t, row.schema).Candidates(decoded(t, row.args))
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := (*Shape)(nil).Candidates(map[string]any{"a": "/x"}); len(got) != 1 {
		t.Errorf("the nil shape sees %v", got)
	}
}

// An annotation that would be read over is an argument that is not gated.
func TestShapeRefuses(t *testing.T) {
	const path = `{"x-writ-path":"read"}`
	for schema, want := range map[string]string{
		`{"properties":{"p":{"x-writ-path":"reed"}}}`:                                      "unknown annotation",
		`{"properties":{"p":{"x-writ-path":true}}}`:                                        "unknown annotation",
		`{"properties":{"p":{"x-writ-paht":"read"}}}`:                                      "unknown annotation",
		`{"properties":{"p":{"x-writ-link":true}}}`:                                        "goes with",
		`{"properties":{"p":{"x-writ-link":false,"x-writ-path":"read"}}}`:                  "unknown annotation",
		`{"properties":{"p":{"x-writ-text":"yes"}}}`:                                       "unknown annotation",
		`{"properties":{"p":{"x-writ-text":false}}}`:                                       "unknown annotation",
		`{"properties":{"p":{"x-writ-text":true,"x-writ-path":"read"}}}`:                   "excludes",
		`{"properties":{"p":{"$ref":"#/$defs/p"}},"$defs":{"p":{}}}`:                       "$ref",
		`{"properties":{"p":{"anyOf":[` + path + `,{"type":"null"}]}}}`:                    "anyOf",
		`{"properties":{"p":{"oneOf":[` + path + `]}}}`:                                    "oneOf",
		`{"properties":{"p":{"allOf":[` + path + `]}}}`:                                    "allOf",
		`{"properties":{"p":{"if":{},"then":` + path + `}}}`:                               "then",
		`{"properties":{"p":{"if":{},"else":` + path + `}}}`:                               "else",
		`{"properties":{"p":{"items":[` + path + `]}}}`:                                    "items",
		`{"properties":{"p":{"prefixItems":[` + path + `]}}}`:                              "prefixItems",
		`{"patternProperties":{"^p":` + path + `}}`:                                        "patternProperties",
		`{"dependentSchemas":{"p":{"properties":{"q":` + path + `}}}}`:                     "dependentSchemas",
		`{"unevaluatedProperties":` + path + `}`:                                           "unevaluatedProperties",
		`{"propertyNames":` + path + `}`:                                                   "propertyNames",
		`{"$defs":{"p":` + path + `},"properties":{"p":{"anyOf":[{"$ref":"#/$defs/p"}]}}}`: "$defs",
		`{"patternProperties":{"^p":{}},"additionalProperties":{"x-writ-text":true}}`:      "patternProperties",
		`{"properties":{"p":{"x-writ-path":"read","x-writ-host":true}}}`:                   "both",
		strings.Repeat(`{"properties":{"p":`, 70) + `{}` + strings.Repeat(`}}`, 70):        "nested deeper",
	} {
		_, err := ShapeOf(decoded(t, schema))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", schema, err)
		}
	}
	for _, schema := range []string{
		`true`, `{}`,
		`{"properties":{"p":{"anyOf":[{"type":"string"},{"type":"null"}],"x-writ-path":"read"}}}`,
		`{"properties":{"x-writ-path":{"type":"string"}}}`,
		`{"patternProperties":{"^p":{}},"additionalProperties":false}`,
		`{"properties":{"p":{"default":"x-writ-path","enum":["x-writ-text"]}}}`,
	} {
		if _, err := ShapeOf(decoded(t, schema)); err != nil {
			t.Errorf("control %s: %v", schema, err)
		}
	}
}

func TestFilePath(t *testing.T) {
	for _, row := range []struct{ value, want string }{
		{"x", "/ws/x"}, {"./x", "/ws/./x"}, {"../x", "/ws/../x"}, {"a/../b", "/ws/a/../b"}, {"/x", "/x"}, {"/", "/"}, {"//x", "//x"},
		{"~", "/home/me/"}, {"~/x", "/home/me//x"}, {"x~", "/ws/x~"}, {"-rf", "/ws/-rf"}, {" x", "/ws/ x"},
		{"file:///x", "/x"}, {"FILE:///x", "/x"}, {"file:/x", "/x"}, {"file://localhost/x", "/x"}, {"file:///a%20b", "/a b"}, {"file:///a/%2e%2e/b", "/a/../b"}, {"file:///a%2Fb", "/a/b"},
	} {
		if got, err := FilePath(row.value, "/ws", "/home/me"); got != row.want || err != nil {
			t.Errorf("%q: %q, %v", row.value, got, err)
		}
	}
	for value, want := range map[string]string{
		"": "is empty", "a\x00b": "NUL", "/a\x00": "NUL", "file:///a%00b": "NUL", "~root": "home directory", "~root/x": "home directory", "~+": "home directory",
		"file:": "file URL", "file:x": "file URL", "file://": "file URL", "file://host/x": "file URL", "file://localhost:80/x": "file URL", "file:///x?q": "file URL", "file:///x?": "file URL",
		"file:///x#f": "file URL", "file:///x#": "file URL", "file://me@/x": "file URL", "file://me:pw@localhost/x": "file URL", "file:///%zz": "file URL", "file:///a\nb": "file URL",
		strings.Repeat("a", 4096): "longer than 4096",
	} {
		if got, err := FilePath(value, "/ws", "/home/me"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %q, %v", value, got, err)
		}
	}
	for _, row := range [][3]string{{"~", "/ws", ""}, {"~/x", "/ws", "relative"}, {"x", "", "/home/me"}, {"x", "ws", "/home/me"}} {
		if got, err := FilePath(row[0], row[1], row[2]); err == nil {
			t.Errorf("%q: %q", row, got)
		}
	}
}

func FuzzFilePath(f *testing.F) {
	for _, v := range []string{"", "x", "/x", "~", "~/x", "~u", "file:///x", "FILE:/%2e%2e", "file://h/x", "a\x00", "file:///%00", "//x/../y", "file:///x?#"} {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got, err := FilePath(value, "/ws", "/home/me")
		if err != nil {
			if got != "" || len(err.Error()) > 1000 {
				t.Errorf("%q: %q, %d bytes of error", value, got, len(err.Error()))
			}
			return
		}
		if !strings.HasPrefix(got, "/") || strings.ContainsRune(got, 0) || len(got) > 4096 {
			t.Errorf("%q: %q", value, got)
		}
		// What comes out is a plain path: it means itself.
		if again, err := FilePath(got, "/other", "/other"); again != got || err != nil {
			t.Errorf("%q: %q, then %q, %v", value, got, again, err)
		}
		if strings.HasPrefix(value, "/") && path.Clean(got) != path.Clean(value) {
			t.Errorf("%q: %q", value, got)
		}
	})
}
