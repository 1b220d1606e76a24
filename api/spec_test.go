package api

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// spec is a door's document as a stranger reads it.
type spec struct {
	OpenAPI    string
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]json.RawMessage }
	resolving  sync.Mutex
	resolved   map[string]*jsonschema.Resolved
}

type operation struct {
	OperationID string
	Summary     string
	Security    []map[string][]string
	Parameters  []struct {
		Name, In string
		Schema   json.RawMessage
	}
	RequestBody *struct {
		Content map[string]struct{ Schema ref }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema ref }
	}
}

type ref struct {
	Ref  string `json:"$ref"`
	Type string `json:"type"`
}

func (r ref) name() string { return strings.TrimPrefix(r.Ref, refPrefix) }

// parsed are documents by their text. Nearly every world has the same two, and to make
// validators of them takes longer than most tests.
var parsed = struct {
	sync.Mutex
	specs map[string]*spec
}{specs: map[string]*spec{}}

// spec fetches a door's document, once.
func (w *world) spec(d door) *spec {
	w.t.Helper()
	if w.specs[d] == nil {
		base := w.url
		if d == operatorDoor {
			base = "http://writ"
		}
		resp, err := w.doors[d].Get(base + "/v1/openapi.json")
		must(w.t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		must(w.t, err)
		parsed.Lock()
		defer parsed.Unlock()
		if parsed.specs[string(text)] == nil {
			s := &spec{resolved: map[string]*jsonschema.Resolved{}}
			must(w.t, json.Unmarshal(text, s))
			parsed.specs[string(text)] = s
		}
		w.specs[d] = parsed.specs[string(text)]
	}
	return w.specs[d]
}

// operation finds what the document says of a request, or nil.
func (s *spec) operation(method, target string) *operation {
	path, _, _ := strings.Cut(target, "?")
	got := strings.Split(path, "/")
	for pattern, ops := range s.Paths {
		want := strings.Split(pattern, "/")
		if len(want) != len(got) {
			continue
		}
		same := true
		for i := range want {
			same = same && (want[i] == got[i] || strings.HasPrefix(want[i], "{") && got[i] != "")
		}
		if op, ok := ops[strings.ToLower(method)]; ok && same {
			return &op
		}
	}
	return nil
}

// documented holds an answer against the document: its status is listed and its
// body is what the schema says, with nothing besides.
func (w *world) documented(a ask, got answer) {
	w.t.Helper()
	w.checking.Lock()
	defer w.checking.Unlock()
	s := w.spec(a.door)
	op := s.operation(a.method, a.target)
	if op == nil {
		if got.status < 400 {
			w.t.Errorf("%s %s is answered %d and is not documented", a.method, a.target, got.status)
		}
		return
	}
	response, ok := op.Responses[fmt.Sprint(got.status)]
	if !ok {
		w.t.Errorf("%s %s is answered %d, which is not documented: %s", a.method, a.target, got.status, got.body)
		return
	}
	media, _, _ := strings.Cut(got.header.Get("Content-Type"), ";")
	content, ok := response.Content[media]
	if !ok {
		w.t.Errorf("%s %s is answered as %s, which is not documented", a.method, a.target, media)
		return
	}
	if content.Schema.Ref == "" {
		return
	}
	var v any
	must(w.t, json.Unmarshal([]byte(got.body), &v))
	if err := s.schema(w.t, content.Schema.name()).Validate(v); err != nil {
		w.t.Errorf("%s %s: the answer is not as documented: %v\n%.2000s", a.method, a.target, err, got.body)
	}
}

// schema is a type of the document, closed: a test must see what is not in it.
func (s *spec) schema(t testing.TB, name string) *jsonschema.Resolved {
	t.Helper()
	s.resolving.Lock()
	defer s.resolving.Unlock()
	if s.resolved[name] == nil {
		defs := map[string]json.RawMessage{}
		for n, text := range s.Components.Schemas {
			var m map[string]any
			must(t, json.Unmarshal(text, &m))
			if _, object := m["properties"]; object {
				m["additionalProperties"] = false
			}
			b, err := json.Marshal(m)
			must(t, err)
			defs[n] = json.RawMessage(strings.ReplaceAll(string(b), refPrefix, "#/$defs/"))
		}
		b, err := json.Marshal(map[string]any{"$ref": "#/$defs/" + name, "$defs": defs})
		must(t, err)
		var whole jsonschema.Schema
		must(t, json.Unmarshal(b, &whole))
		s.resolved[name], err = whole.Resolve(nil)
		must(t, err)
	}
	return s.resolved[name]
}

// The document is whole: every reference leads somewhere, every path parameter is
// declared, ids are unique, and nothing is described twice or for nobody.
func TestDocument(t *testing.T) {
	w := newWorld(t)
	for d, want := range map[door]int{agentDoor: 30, operatorDoor: 81} {
		s := w.spec(d)
		if s.OpenAPI != "3.1.0" {
			t.Errorf("it is OpenAPI %q", s.OpenAPI)
		}
		var ids []string
		for path, ops := range s.Paths {
			for method, op := range ops {
				ids = append(ids, op.OperationID)
				for segment := range strings.SplitSeq(path, "/") {
					name, varies := strings.CutPrefix(segment, "{")
					name = strings.TrimSuffix(name, "}")
					declared := false
					for _, p := range op.Parameters {
						declared = declared || p.In == "path" && p.Name == name
					}
					if varies && !declared {
						t.Errorf("%s %s does not declare %s", method, path, name)
					}
				}
				if op.Responses["200"].Content == nil || op.Responses["400"].Content == nil || op.Summary == "" {
					t.Errorf("%s %s is not described", method, path)
				}
			}
		}
		if slices.Sort(ids); len(slices.Compact(slices.Clone(ids))) != len(ids) || len(ids) != want {
			t.Errorf("door %d has %d operations, want %d: %v", d, len(ids), want, ids)
		}
		for name := range s.Components.Schemas {
			s.schema(t, name)
		}
	}
	for path := range w.spec(agentDoor).Paths {
		for _, operators := range []string{"decision", "preview", "argument", "resolution", "waiver", "upstreams", "people", "ledger", "egress", "webhooks", "metrics", "unconfined", "shutdown"} {
			if strings.Contains(path, operators) {
				t.Errorf("the agents' document has %s", path)
			}
		}
	}
}
