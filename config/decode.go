package config

import (
	"encoding"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/spell"
)

const noAnchors = "anchors, aliases, merges and tags are not taken; write the value out"

// decoder fills a struct from YAML, strictly: every key must be a field, every
// value of its field's type, and no key may come twice. It keeps the line of
// each key, so that a decision can point at what it rests on.
type decoder struct {
	name    string         // of the file, for errors
	lines   map[string]int // by dotted path
	errs    []problem
	decoded int // how many of errs are from before the values were checked
}

// problem is one thing wrong with the file. Line 0 is the file as a whole.
type problem struct {
	line       int
	path, text string
}

func (d *decoder) fail(line int, path, format string, args ...any) {
	d.errs = append(d.errs, problem{line, path, fmt.Sprintf(format, args...)})
}

// reject is fail for a value that was read but does not hold. It is silent where
// reading the value failed already: what was checked is then not what was written.
func (d *decoder) reject(key, format string, args ...any) {
	for _, e := range d.errs[:d.decoded] {
		if e.path != "" && within(key, e.path) {
			return
		}
	}
	d.fail(d.line(key), key, format, args...)
}

// unread reports whether something at or below a key could not be read.
func (d *decoder) unread(key string) bool {
	return slices.ContainsFunc(d.errs[:d.decoded], func(e problem) bool { return within(e.path, key) })
}

// within reports whether a key is another or lies below it.
func within(key, above string) bool {
	rest, ok := strings.CutPrefix(key, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// line is where a key stands, or what it is missing from; 0 for the file.
func (d *decoder) line(key string) int {
	for key != "" {
		if n, ok := d.lines[key]; ok {
			return n
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return 0
}

// err is every problem, one a line, in the order of the file.
func (d *decoder) err() error {
	slices.SortStableFunc(d.errs, func(a, b problem) int { return a.line - b.line })
	var out []error
	for _, e := range d.errs {
		where := d.name
		if e.line > 0 {
			where += ":" + strconv.Itoa(e.line)
		}
		if e.path != "" {
			where += ": " + e.path
		}
		out = append(out, fmt.Errorf("%s: %s", where, e.text))
	}
	return errors.Join(out...)
}

func (d *decoder) value(path string, n ast.Node, v reflect.Value) {
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		d.fail(line(n), path, noAnchors)
		return
	case *ast.NullNode:
		d.fail(line(n), path, "has no value; give one or remove it")
		return
	}
	d.lines[path] = line(n)
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		d.value(path, n, p.Elem())
		v.Set(p)
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		d.text(path, n, u)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	case reflect.Slice:
		d.sequence(path, n, v)
	default:
		d.scalar(path, n, v)
	}
}

func line(n ast.Node) int {
	// A block mapping's own token is the first colon; its first key stands earlier.
	switch m := n.(type) {
	case *ast.MappingNode:
		if len(m.Values) > 0 && !m.IsFlowStyle {
			n = m.Values[0].Key
		}
	case *ast.MappingValueNode:
		n = m.Key
	}
	return n.GetToken().Position.Line
}

// entry is one key of a mapping with its value.
type entry struct {
	key   string
	line  int // of the key
	value ast.Node
}

// pairs lists the entries of a mapping, refusing duplicates and non-string keys.
func (d *decoder) pairs(path string, n ast.Node) []entry {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		d.fail(line(n), path, "must be a mapping, not %s", kind(n))
		return nil
	}
	seen := map[string]int{}
	var out []entry
	for _, p := range values {
		e := entry{line: line(p.Key), value: p.Value}
		switch k := p.Key.(type) {
		case *ast.StringNode:
			e.key = k.Value
		case *ast.MergeKeyNode, *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
			d.fail(e.line, path, noAnchors)
			continue
		case *ast.MappingKeyNode:
			d.fail(e.line, path, "a key written with ? is not taken; write it as key: value")
			continue
		default:
			d.fail(e.line, member(path, k.GetToken().Value), "a key must be text, not %s; quote it", kind(k))
			continue
		}
		if first, twice := seen[e.key]; twice {
			d.fail(e.line, member(path, e.key), "is given twice; the first is on line %d", first)
			continue
		}
		seen[e.key] = e.line
		out = append(out, e)
	}
	return out
}

// member is the path of a name below path. A name that could be read as several,
// or that would not show as it is, stands in quotes: agents."a.b".level is not
// the level of b.
func member(path, name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-:", r)
	}
	if name == "" || strings.TrimFunc(name, plain) != "" {
		name = strconv.QuoteToASCII(name)
	}
	if path == "" {
		return name
	}
	return path + "." + name
}

func (d *decoder) structure(path string, n ast.Node, v reflect.Value) {
	known := fieldNames(v.Type())
	for _, e := range d.pairs(path, n) {
		at := member(path, e.key)
		i := slices.Index(known, e.key)
		if i < 0 {
			if why, ok := notBuilt[at]; ok {
				d.fail(e.line, at, "%s is not built into this version of writ; remove the key", why)
			} else {
				d.fail(e.line, at, "unknown key%s", hint(e.key, known))
			}
			continue
		}
		d.value(at, e.value, v.Field(i))
		d.lines[at] = e.line
	}
}

func hint(got string, known []string) string {
	if h := spell.Hint(got, known); h != "" {
		return h
	}
	if len(known) == 0 {
		return "; there are none"
	}
	return "; there are " + strings.Join(known, ", ")
}

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("yaml")
	}
	return names
}

// mapping lays entries over those already there, so that a default keeps the
// fields an entry does not name. Keys are known by what they mean, not by how
// they are spelt: git and version_control are one.
func (d *decoder) mapping(path string, n ast.Node, v reflect.Value) {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	seen := map[string]int{}
	for _, e := range d.pairs(path, n) {
		key, err := d.key(v.Type().Key(), e.key)
		if err != nil {
			d.fail(e.line, member(path, e.key), "%s", describe(err))
			continue
		}
		at := member(path, fmt.Sprint(key))
		if first, twice := seen[at]; twice {
			d.fail(e.line, at, "is given twice; the first is on line %d", first)
			continue
		}
		seen[at] = e.line
		value := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(key); old.IsValid() {
			value.Set(old)
		}
		d.value(at, e.value, value)
		d.lines[at] = e.line
		v.SetMapIndex(key, value)
	}
}

func (d *decoder) key(t reflect.Type, text string) (reflect.Value, error) {
	k := reflect.New(t)
	if u, ok := k.Interface().(encoding.TextUnmarshaler); ok {
		return k.Elem(), u.UnmarshalText([]byte(text))
	}
	k.Elem().SetString(text)
	return k.Elem(), nil
}

func (d *decoder) sequence(path string, n ast.Node, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		d.fail(line(n), path, "must be a list, not %s", kind(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, e := range seq.Values {
		d.value(path+"["+strconv.Itoa(i)+"]", e, out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) text(path string, n ast.Node, u encoding.TextUnmarshaler) {
	s, ok := n.(*ast.StringNode)
	if !ok {
		d.fail(line(n), path, "must be a word, not %s", kind(n))
		return
	}
	if err := u.UnmarshalText([]byte(s.Value)); err != nil {
		d.fail(line(n), path, "%s", describe(err))
	}
}

// describe adds the nearest valid spelling to an unknown word.
func describe(err error) string {
	var u *action.UnknownError
	if !errors.As(err, &u) {
		return err.Error()
	}
	if h := spell.Hint(u.Got, u.Known); h != "" {
		return u.Error() + h
	}
	if u.Form != "" {
		return u.Error() + "; write " + u.Form
	}
	return u.Error() + "; there are " + strings.Join(u.Known, ", ")
}

func (d *decoder) scalar(path string, n ast.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		s, ok := n.(*ast.StringNode)
		switch {
		case !ok:
			d.fail(line(n), path, "must be text, not %s%s", kind(n), quoting(n))
		case s.Value == "":
			d.fail(line(n), path, "is empty; give a value or remove it")
		default:
			v.SetString(s.Value)
		}
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
			return
		}
		d.fail(line(n), path, "must be true or false, not %s", kind(n))
	case reflect.Int:
		// One number has one spelling: 010 is ten to some readers and eight to others.
		text := n.GetToken().Value
		i, err := strconv.Atoi(text)
		switch {
		case n.Type() != ast.IntegerType:
			d.fail(line(n), path, "must be a whole number, not %s", kind(n))
		case err != nil || strconv.Itoa(i) != text:
			d.fail(line(n), path, "must be a whole number in plain decimal digits, not %s", text)
		default:
			v.SetInt(int64(i))
		}
	default:
		panic("config: no decoding for " + v.Type().String()) // a field of a kind nobody handles: a programming error
	}
}

// quoting is what makes text of a value, where anything does.
func quoting(n ast.Node) string {
	switch n.(type) {
	case *ast.LiteralNode:
		return "; write it on one line"
	case ast.ScalarNode:
		return "; quote it"
	}
	return ""
}

func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode:
		return "a number"
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a decimal number"
	case *ast.StringNode:
		return "text"
	case *ast.LiteralNode:
		return "a block of text"
	case *ast.NullNode:
		return "nothing"
	}
	return "that"
}
