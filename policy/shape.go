package policy

import (
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ"
)

// Shape is what a tool's parameter schema says of paths, hosts and text, at any
// depth. The nil Shape says nothing, and then every string is looked at.
type Shape struct {
	mark  mark
	props map[string]*Shape
	rest  *Shape // values of properties that are not named
	items *Shape
}

type mark struct {
	path, host, url, text bool
	connection, method    bool
	git                   bool // of a URL: as git reads it
	link                  bool // of a path: the last element itself, were it a symlink
	side                  writ.Side
}

// ShapeOf reads the annotations x-writ-path, x-writ-link, x-writ-host, x-writ-url
// and x-writ-text out of a JSON Schema, and x-writ-connection and x-writ-method, which
// are for built-in tools. Schemas are small and ours to bound: one
// nested deeper than the arguments may be is refused.
func ShapeOf(schema any) (*Shape, error) { return shapeOf(schema, 0) }

func shapeOf(schema any, depth int) (*Shape, error) {
	m, ok := schema.(map[string]any)
	if !ok {
		return nil, nil // true or false
	}
	if depth > 64 {
		return nil, fmt.Errorf("schema is nested deeper than 64 levels")
	}
	if _, ref := m["$ref"]; ref {
		return nil, fmt.Errorf("schema uses $ref, which annotations cannot be followed through; write it out")
	}
	for key, sub := range m {
		if !followed(key, sub) && annotated(sub) {
			return nil, fmt.Errorf("annotations below %s cannot be followed; put them beside it", key)
		}
	}
	s := &Shape{}
	var err error
	if s.mark, err = markOf(m); err != nil {
		return nil, err
	}
	if props, ok := m["properties"].(map[string]any); ok {
		s.props = make(map[string]*Shape, len(props))
		for name, sub := range props {
			if s.props[name], err = shapeOf(sub, depth+1); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	if s.rest, err = shapeOf(m["additionalProperties"], depth+1); err != nil {
		return nil, err
	}
	if _, patterns := m["patternProperties"]; patterns && s.rest != nil && s.rest.mark != (mark{}) {
		return nil, fmt.Errorf("annotated additionalProperties would cover what patternProperties names; leave one out")
	}
	s.items, err = shapeOf(m["items"], depth+1)
	return s, err
}

// followed reports whether shapeOf goes into a keyword. In any other, such as
// anyOf, an annotation would be read over and its argument not be gated.
func followed(key string, sub any) bool {
	_, one := sub.(map[string]any)
	return key == "properties" || one && (key == "items" || key == "additionalProperties")
}

func annotated(v any) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, annotated)
	case map[string]any:
		for key, sub := range v {
			if strings.HasPrefix(key, "x-writ-") || annotated(sub) {
				return true
			}
		}
	}
	return false
}

func markOf(m map[string]any) (mark, error) {
	var k mark
	for key, v := range m {
		if !strings.HasPrefix(key, "x-writ-") {
			continue
		}
		switch {
		case key == "x-writ-path" && v == "read":
			k.path, k.side = true, writ.SideRead
		case key == "x-writ-path" && v == "write":
			k.path, k.side = true, writ.SideWrite
		case key == "x-writ-link" && v == true:
			k.link = true
		case key == "x-writ-host" && v == true:
			k.host = true
		case key == "x-writ-host" && v == "read":
			k.host, k.side = true, writ.SideRead
		case key == "x-writ-url" && v == true:
			k.url = true
		case key == "x-writ-url" && v == "read":
			k.url, k.side = true, writ.SideRead
		case key == "x-writ-url" && v == "git":
			k.url, k.git = true, true
		case key == "x-writ-text" && v == true:
			k.text = true
		case key == "x-writ-connection" && v == true:
			k.connection = true
		case key == "x-writ-method" && v == true:
			k.method = true
		default:
			return k, fmt.Errorf("unknown annotation %s: %v; there are x-writ-path: read|write, x-writ-host: true|read, x-writ-url: true|read|git, x-writ-link and x-writ-text: true", key, v)
		}
	}
	if k.text && (k.path || k.host || k.url || k.connection || k.method) {
		return k, fmt.Errorf("x-writ-text excludes the other annotations")
	}
	if k.link && !k.path {
		return k, fmt.Errorf("x-writ-link goes with x-writ-path")
	}
	if k.path && (k.host || k.url) || k.host && k.url {
		return k, fmt.Errorf("an argument is a path, a host or a URL, not both")
	}
	if (k.connection || k.method) && (k.path || k.host || k.url || k.connection && k.method) {
		return k, fmt.Errorf("x-writ-connection and x-writ-method exclude the other annotations")
	}
	return k, nil
}

// Connects reports whether an argument names a connection of the operator's, or a
// method of HTTP, which this program alone knows to keep to.
func (s *Shape) Connects() bool {
	if s == nil {
		return false
	}
	for _, sub := range s.props {
		if sub.Connects() {
			return true
		}
	}
	return s.mark.connection || s.mark.method || s.rest.Connects() || s.items.Connects()
}

// Candidate is one string of the arguments that names a path, a host, a connection or
// a method.
type Candidate struct {
	Pointer  string
	Value    string
	Kind     writ.TargetKind
	Side     writ.Side
	URL      bool // Value is a URL whose host counts
	Git      bool // and one of git's
	Relative bool // an annotated path may be relative to the call's directory
	Link     bool // a symlink as the last element is meant itself, not what it points at
}

// Candidates finds, at any depth, every annotated path, host and URL, and every
// other string, key or value, that is an absolute path, a file URL or a ~ path
// and is not marked as text. args is decoded JSON.
func (s *Shape) Candidates(args any) []Candidate {
	var found []Candidate
	s.walk("", args, &found)
	return found
}

func (s *Shape) walk(at string, v any, found *[]Candidate) {
	switch v := v.(type) {
	case string:
		s.look(at, v, found)
	case []any:
		for i, e := range v {
			s.item().walk(at+"/"+strconv.Itoa(i), e, found)
		}
	case map[string]any:
		keys := make([]string, 0, len(v))
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		for _, k := range keys {
			p := at + "/" + escapePointer(k)
			if !s.isText() {
				(*Shape)(nil).look(p, k, found)
			}
			s.prop(k).walk(p, v[k], found)
		}
	}
}

func (s *Shape) look(at, v string, found *[]Candidate) {
	var m mark
	if s != nil {
		m = s.mark
	}
	switch {
	case m.text:
	case m.path:
		*found = append(*found, Candidate{Pointer: at, Value: v, Side: m.side, Relative: true, Link: m.link})
	case m.connection:
		*found = append(*found, Candidate{Pointer: at, Value: v, Kind: writ.TargetConnection})
	case m.method:
		*found = append(*found, Candidate{Pointer: at, Value: v, Kind: writ.TargetMethod})
	case m.host, m.url:
		*found = append(*found, Candidate{Pointer: at, Value: v, Kind: writ.TargetHost, Side: m.side, URL: m.url, Git: m.git})
	case looksLikePath(v):
		*found = append(*found, Candidate{Pointer: at, Value: v})
	}
}

func (s *Shape) isText() bool { return s != nil && s.mark.text }

// A mark on an object or array holds for everything below it that has none.
func (s *Shape) prop(name string) *Shape {
	if s == nil {
		return nil
	}
	sub, ok := s.props[name]
	if !ok {
		sub = s.rest
	}
	return s.inherit(sub)
}

func (s *Shape) item() *Shape {
	if s == nil {
		return nil
	}
	return s.inherit(s.items)
}

func (s *Shape) inherit(sub *Shape) *Shape {
	if s.mark == (mark{}) || sub != nil && sub.mark != (mark{}) {
		return sub
	}
	if sub == nil {
		return &Shape{mark: s.mark}
	}
	with := *sub
	with.mark = s.mark
	return &with
}

func looksLikePath(v string) bool {
	return strings.HasPrefix(v, "/") || len(v) >= 5 && strings.EqualFold(v[:5], "file:") || looksLikeHome(v)
}

// looksLikeHome takes ~, ~/x, ~user and ~user/x, but not "~5 minutes".
func looksLikeHome(v string) bool {
	rest, ok := strings.CutPrefix(v, "~")
	user, _, _ := strings.Cut(rest, "/")
	return ok && strings.Trim(user, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == "" &&
		(user == "" || user[0] > '9' || user[0] < '0')
}

func escapePointer(k string) string {
	return strings.ReplaceAll(strings.ReplaceAll(k, "~", "~0"), "/", "~1")
}

// FilePath turns an argument that names a path into an absolute one. It is not
// cleaned: "a/.." means something else where a is a symlink, so whoever resolves
// it walks it as written. home stands for ~; other users' homes are refused.
func FilePath(value, dir, home string) (string, error) {
	if strings.ContainsRune(value, 0) {
		return "", fmt.Errorf("the path holds a NUL character")
	}
	if value == "" {
		return "", fmt.Errorf("the path is empty")
	}
	if len(value) >= 5 && strings.EqualFold(value[:5], "file:") {
		local, err := fileURL(value)
		if err != nil {
			return "", err
		}
		value = local
	}
	if rest, ok := strings.CutPrefix(value, "~"); ok {
		if rest != "" && rest[0] != '/' || !strings.HasPrefix(home, "/") {
			return "", fmt.Errorf("%q names a home directory that cannot be resolved; write the path out", clip(value))
		}
		value = home + "/" + rest
	}
	if !strings.HasPrefix(value, "/") {
		if !strings.HasPrefix(dir, "/") {
			return "", fmt.Errorf("the path is relative and the call has no directory; write the path out")
		}
		value = dir + "/" + value
	}
	if len(value) > 4096 {
		return "", fmt.Errorf("the path is longer than 4096 bytes")
	}
	return value, nil
}

// fileURL takes nothing that two readers could understand differently: no user,
// other host, query or fragment, empty ones included.
func fileURL(value string) (string, error) {
	u, err := url.Parse(value)
	if err != nil || u.User != nil || u.Host != "" && u.Host != "localhost" || u.Path == "" || strings.ContainsAny(value, "?#") {
		return "", fmt.Errorf("%q is not a file URL of this machine", clip(value))
	}
	if strings.ContainsRune(u.Path, 0) {
		return "", fmt.Errorf("the path holds a NUL character")
	}
	return u.Path, nil
}

func clip(s string) string {
	if len(s) > 200 {
		return strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
