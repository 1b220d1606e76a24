package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
)

// object is a part of the document.
type object map[string]any

// document is the OpenAPI 3.1 description of a door's routes.
func document(routes []*route) ([]byte, error) {
	s := &schemas{map[string]reflect.Type{}, map[reflect.Type]bool{}}
	paths := object{}
	for _, r := range routes {
		at, ok := paths[r.path].(object)
		if !ok {
			at = object{}
			paths[r.path] = at
		}
		at[strings.ToLower(r.method)] = r.operation(s)
	}
	s.ref(client.Problem{}, false)
	types, err := s.all()
	if err != nil {
		return nil, err
	}
	about := "Every answer has X-Request-ID. Refusals are problem+json (RFC 9457) with a kind. Lists are pages: follow next_cursor while has_more."
	return json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info":    object{"title": "writ", "version": writ.Version(), "description": about},
		"paths":   paths,
		"components": object{
			"schemas":         types,
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer", "description": "an agent's token; 'writ agent token NAME' makes one"}},
		},
	}, "", " ")
}

// operation describes one route.
func (r *route) operation(s *schemas) object {
	op := object{"operationId": r.id, "summary": r.summary, "responses": r.responses(s)}
	if params := r.parameters(); len(params) > 0 {
		op["parameters"] = params
	}
	if r.body != nil {
		op["requestBody"] = object{"required": true, "content": object{"application/json": object{"schema": s.ref(r.body, true)}}}
	}
	switch r.who {
	case agents:
		op["security"] = []object{{"token": []string{}}}
	case either, local:
		op["security"] = []object{{"token": []string{}}, {}}
	}
	return op
}

func (r *route) parameters() []object {
	var out []object
	for segment := range strings.SplitSeq(r.path, "/") {
		if name, varies := strings.CutPrefix(segment, "{"); varies {
			out = append(out, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string", "minLength": 1}})
		}
	}
	for _, p := range r.query {
		schema := object{"type": "string"}
		switch {
		case p.number:
			schema = object{"type": "integer", "minimum": p.least, "maximum": p.most}
		case len(p.among) > 0:
			schema["enum"] = p.among
		}
		out = append(out, object{"name": p.name, "in": "query", "description": p.about, "schema": schema})
	}
	return out
}

// responses are the answer and every refusal that the route can give.
func (r *route) responses(s *schemas) object {
	out := object{}
	for _, status := range r.statuses() {
		out[strconv.Itoa(status)] = object{
			"description": http.StatusText(status),
			"content":     object{"application/problem+json": object{"schema": s.ref(client.Problem{}, false)}},
		}
	}
	content := object{r.media: object{"schema": &jsonschema.Schema{Type: "string"}}}
	if r.stream == nil {
		content = object{"application/json": object{"schema": s.ref(r.reply, false)}}
	}
	out["200"] = object{"description": "OK", "content": content}
	return out
}

// statuses are those of its refusals: its own, and what every route of its kind has.
func (r *route) statuses() []int {
	kinds := append([]writ.Kind{writ.Invalid, writ.Denied, writ.Conflict, writ.Internal, writ.StoreUnavailable}, r.refuses...)
	if r.who != anyone {
		kinds = append(kinds, writ.Unauthenticated)
	}
	if r.method != http.MethodGet {
		kinds = append(kinds, writ.TooLarge)
	}
	if strings.Contains(r.path, "{") {
		kinds = append(kinds, writ.NotFound)
	}
	out := map[int]bool{}
	if r.doors&agentDoor != 0 {
		out[http.StatusMisdirectedRequest] = true
	}
	for _, k := range kinds {
		out[statuses[k]] = true
	}
	return slices.Sorted(maps.Keys(out))
}

func sortedKinds() []writ.Kind { return slices.Sorted(maps.Keys(statuses)) }
