package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/writ-run/writ"
)

// door is where a request comes in.
type door uint8

const (
	agentDoor    door = 1 << iota // TCP
	operatorDoor                  // the Unix socket
	bothDoors    = agentDoor | operatorDoor
)

// audience is whom a route is for. The zero value is nobody.
type audience uint8

const (
	nobody   audience = iota
	anyone            // no token needed
	local             // no token needed from this machine
	agents            // a token's agent
	operator          // the operator: no token, on the operator's door
	either
)

// route is one thing there is to ask for. Everything that is said or held about it
// is here.
type route struct {
	method, path string // path has {name} for a segment that varies
	doors        door
	who          audience
	id, summary  string
	query        []param
	body         any         // a value of the type of the request's body; nil: there is none
	reply        any         // and of the answer's
	refuses      []writ.Kind // besides what every route of its kind can refuse

	run    func(*exchange) (any, error)
	stream func(*exchange) error // instead of run: writes the answer itself
	media  string                // what a stream writes
	raw    bool                  // it reads the body itself
}

// param is a parameter of a query.
type param struct {
	name, about string
	number      bool
	least, most int64    // of a number
	among       []string // what a text may be; empty: anything
}

// router finds the route of a request at one door.
type router struct {
	s      *Server
	door   door
	routes []*route
	spec   func() ([]byte, error) // the OpenAPI document, made when it is first asked for
}

// door makes the handler of one door. The table is checked here: a route that
// nobody can use, or that answers twice, is a mistake of this program.
func (s *Server) door(d door) (*router, error) {
	rt := &router{s: s, door: d}
	for _, r := range routes() {
		if r.doors == 0 || r.who == nobody || (r.run == nil) == (r.stream == nil) || r.id == "" || r.summary == "" {
			return nil, fmt.Errorf("route %s %s is not complete", r.method, r.path)
		}
		if r.doors&d != 0 {
			rt.routes = append(rt.routes, &r)
		}
	}
	rt.spec = sync.OnceValues(func() ([]byte, error) { return document(rt.routes) })
	return rt, nil
}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.EscapedPath() == mcpPath {
		(&exchange{Server: rt.s, w: w, r: r, rt: rt, route: mcpRoute}).answer()
		return
	}
	found, values, allow := rt.find(r.Method, r.URL.EscapedPath())
	switch {
	case found == nil && len(allow) == 0:
		rt.s.problem(w, r, writ.Fail(writ.NotFound, "there is nothing at this path; GET /v1/openapi.json lists what there is", nil), "")
		return
	case found == nil:
		w.Header().Set("Allow", strings.Join(allow, ", "))
		rt.s.problem(w, r, refused{http.StatusMethodNotAllowed, writ.Invalid, "this path does not take the method; it takes " + strings.Join(allow, ", ")}, "")
		return
	}
	for name, v := range values {
		r.SetPathValue(name, v)
	}
	(&exchange{Server: rt.s, w: w, r: r, rt: rt, route: found}).answer()
}

// find looks a request up: its route and what varies in its path, or the methods
// that the path takes. Paths are compared as they are, escaped and uncleaned: what
// is not spelled exactly is not there.
func (rt *router) find(method, path string) (found *route, values map[string]string, allow []string) {
	segments := strings.Split(path, "/")
	for _, r := range rt.routes {
		v, ok := match(strings.Split(r.path, "/"), segments)
		if !ok {
			continue
		}
		if r.method == method {
			return r, v, nil
		}
		allow = append(allow, r.method)
	}
	slices.Sort(allow)
	return nil, nil, allow
}

func match(pattern, segments []string) (map[string]string, bool) {
	if len(pattern) != len(segments) {
		return nil, false
	}
	values := map[string]string{}
	for i, p := range pattern {
		name, varies := strings.CutPrefix(p, "{")
		if !varies {
			if p != segments[i] {
				return nil, false
			}
			continue
		}
		v, err := url.PathUnescape(segments[i])
		if err != nil || v == "" {
			return nil, false
		}
		values[strings.TrimSuffix(name, "}")] = v
	}
	return values, true
}
