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
	"github.com/goccy/go-yaml/parser"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/spell"
)

// maxBytes bounds the file: a configuration is written by people.
const maxBytes = 1 << 20

// decoder fills a struct from YAML, strictly: every key must be a field, every
// value of its field's type, and no key may come twice. It keeps the line of
// each key, so that a decision can point at what it rests on.
type decoder struct {
	name  string         // of the file, for errors
	lines map[string]int // by dotted path
	errs  []error
}

func (d *decoder) fail(line int, path, format string, args ...any) {
	where := d.name
	if line > 0 {
		where += ":" + strconv.Itoa(line)
	}
	if path != "" {
		where += ": " + path
	}
	d.errs = append(d.errs, fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...)))
}

func (d *decoder) file(text []byte, into *File) {
	if len(text) > maxBytes {
		d.fail(0, "", "the file has %d bytes; at most %d are read", len(text), maxBytes)
		return
	}
	parsed, err := parser.ParseBytes(text, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.syntax(err)
		return
	}
	if len(parsed.Docs) > 1 {
		d.fail(parsed.Docs[1].GetToken().Position.Line, "", "the file holds more than one YAML document; keep one")
		return
	}
	if len(parsed.Docs) == 0 || parsed.Docs[0].Body == nil {
		d.fail(0, "", "the file is empty; 'writ init' writes a starting one")
		return
	}
	d.value("", parsed.Docs[0].Body, reflect.ValueOf(into).Elem())
}

// syntax keeps the parser's line and its first line of text.
func (d *decoder) syntax(err error) {
	msg, _, _ := strings.Cut(err.Error(), "\n")
	line := 0
	if rest, ok := strings.CutPrefix(msg, "["); ok {
		if pos, tail, ok := strings.Cut(rest, "] "); ok {
			l, _, _ := strings.Cut(pos, ":")
			line, _ = strconv.Atoi(l)
			msg = tail
		}
	}
	d.fail(line, "", "not valid YAML: %s", msg)
}

func (d *decoder) value(path string, n ast.Node, v reflect.Value) {
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode, *ast.TagNode:
		d.fail(line(n), path, "anchors, aliases, merges and tags are not taken; write the value out")
		return
	case *ast.NullNode:
		d.fail(line(n), path, "has no value; give one or remove the key")
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
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		return m.Values[0].Key.GetToken().Position.Line
	}
	return n.GetToken().Position.Line
}

// pairs lists the entries of a mapping, refusing duplicates and non-string keys.
func (d *decoder) pairs(path string, n ast.Node) ([]*ast.MappingValueNode, bool) {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		d.fail(line(n), path, "must be a mapping, not %s", kind(n))
		return nil, false
	}
	seen := map[string]int{}
	var out []*ast.MappingValueNode
	for _, p := range values {
		if _, ok := p.Key.(*ast.MergeKeyNode); ok {
			d.fail(line(p.Key), path, "anchors, aliases, merges and tags are not taken; write the value out")
			continue
		}
		key := keyText(p)
		if first, twice := seen[key]; twice {
			d.fail(line(p.Key), join(path, key), "is given twice; the first is on line %d", first)
			continue
		}
		seen[key] = line(p.Key)
		out = append(out, p)
	}
	return out, true
}

func keyText(p *ast.MappingValueNode) string {
	if s, ok := p.Key.(*ast.StringNode); ok {
		return s.Value
	}
	return p.Key.GetToken().Value
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (d *decoder) structure(path string, n ast.Node, v reflect.Value) {
	pairs, ok := d.pairs(path, n)
	if !ok {
		return
	}
	known := fieldNames(v.Type())
	for _, p := range pairs {
		key := keyText(p)
		i := slices.Index(known, key)
		if i < 0 {
			if why, ok := notBuilt[join(path, key)]; ok {
				d.fail(line(p.Key), join(path, key), "%s is not built into this version of writ; remove the key", why)
			} else {
				d.fail(line(p.Key), join(path, key), "unknown key%s", hint(key, known))
			}
			continue
		}
		d.value(join(path, key), p.Value, v.Field(i))
		d.lines[join(path, key)] = line(p.Key)
	}
}

func hint(got string, known []string) string {
	if h := spell.Hint(got, known); h != "" {
		return h
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
// fields an entry does not name.
func (d *decoder) mapping(path string, n ast.Node, v reflect.Value) {
	pairs, ok := d.pairs(path, n)
	if !ok {
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for _, p := range pairs {
		key, err := d.key(v.Type().Key(), keyText(p))
		if err != nil {
			d.fail(line(p.Key), join(path, keyText(p)), "%s", describe(err))
			continue
		}
		e := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(key); old.IsValid() {
			e.Set(old)
		}
		d.value(join(path, keyText(p)), p.Value, e)
		d.lines[join(path, keyText(p))] = line(p.Key)
		v.SetMapIndex(key, e)
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
	if h := spell.Hint(u.Got, u.Known); h != "" || len(u.Known) > 12 {
		return u.Error() + h
	}
	return u.Error() + "; there are " + strings.Join(u.Known, ", ")
}

func (d *decoder) scalar(path string, n ast.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if s, ok := n.(*ast.StringNode); ok {
			v.SetString(s.Value)
			return
		}
		d.fail(line(n), path, "must be text, not %s; quote it", kind(n))
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
			return
		}
		d.fail(line(n), path, "must be true or false, not %s", kind(n))
	case reflect.Int:
		if i, err := strconv.Atoi(n.GetToken().Value); err == nil && n.Type() == ast.IntegerType {
			v.SetInt(int64(i))
			return
		}
		d.fail(line(n), path, "must be a whole number, not %s", kind(n))
	default:
		panic("config: no decoding for " + v.Type().String()) // a field of a kind nobody handles: a programming error
	}
}

func kind(n ast.Node) string {
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.BoolNode:
		return "true or false"
	case *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		return "a number"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	}
	return "that"
}
