package strict

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

const noAnchors = "anchors, aliases, merges and tags are not taken; write the value out"

func (f *File) value(path string, n ast.Node, v reflect.Value) {
	if j, ok := v.Addr().Interface().(*JSON); ok {
		*j = f.json(path, n, 0)
		return
	}
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		f.RejectAt(line(n), path, noAnchors)
		return
	case *ast.NullNode:
		f.RejectAt(line(n), path, "has no value; give one or remove it")
		return
	}
	f.lines[path] = line(n)
	if v.Kind() == reflect.Pointer {
		p := reflect.New(v.Type().Elem())
		f.value(path, n, p.Elem())
		v.Set(p)
		return
	}
	switch special := v.Addr().Interface().(type) {
	case Shaped:
		f.shaped(path, n, special)
		return
	case *Block:
		f.block(path, n, special)
		return
	case encoding.TextUnmarshaler:
		f.text(path, n, special)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		f.structure(path, n, v)
	case reflect.Map:
		f.mapping(path, n, v)
	case reflect.Slice:
		f.sequence(path, n, v)
	default:
		f.scalar(path, n, v)
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
func (f *File) pairs(path string, n ast.Node) []entry {
	var values []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		values = n.Values
	case *ast.MappingValueNode:
		values = []*ast.MappingValueNode{n}
	default:
		f.RejectAt(line(n), path, "must be a mapping, not %s", kind(n))
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
			f.RejectAt(e.line, path, noAnchors)
			continue
		case *ast.MappingKeyNode:
			f.RejectAt(e.line, path, "a key written with ? is not taken; write it as key: value")
			continue
		default:
			f.RejectAt(e.line, Member(path, k.GetToken().Value), "a key must be text, not %s; quote it", kind(k))
			continue
		}
		if first, twice := seen[e.key]; twice {
			f.RejectAt(e.line, Member(path, e.key), "is given twice; the first is on line %d", first)
			continue
		}
		seen[e.key] = e.line
		out = append(out, e)
	}
	return out
}

func (f *File) structure(path string, n ast.Node, v reflect.Value) {
	known := Fields(v.Type())
	for _, e := range f.pairs(path, n) {
		at := Member(path, e.key)
		i := slices.Index(known, e.key)
		if i < 0 {
			if why, ok := f.NotBuilt[at]; ok {
				f.RejectAt(e.line, at, "%s is not built into this version of writ; remove the key", why)
			} else {
				f.RejectAt(e.line, at, "unknown key%s", Hint(e.key, known))
			}
			continue
		}
		f.value(at, e.value, v.Field(i))
		f.lines[at] = e.line
	}
}

// Fields lists the keys of a struct, in the order of its fields.
func Fields(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = t.Field(i).Tag.Get("yaml")
	}
	return names
}

// mapping lays entries over those already there, so that a default keeps the
// fields an entry does not name. Keys are known by what they mean, not by how
// they are spelt: git and version_control are one.
func (f *File) mapping(path string, n ast.Node, v reflect.Value) {
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	seen := map[string]int{}
	for _, e := range f.pairs(path, n) {
		key, err := f.key(v.Type().Key(), e.key)
		if err != nil {
			f.RejectAt(e.line, Member(path, e.key), "%s", Describe(err))
			continue
		}
		at := Member(path, fmt.Sprint(key))
		if first, twice := seen[at]; twice {
			f.RejectAt(e.line, at, "is given twice; the first is on line %d", first)
			continue
		}
		seen[at] = e.line
		value := reflect.New(v.Type().Elem()).Elem()
		if old := v.MapIndex(key); old.IsValid() {
			value.Set(old)
		}
		f.value(at, e.value, value)
		f.lines[at] = e.line
		v.SetMapIndex(key, value)
	}
}

func (f *File) key(t reflect.Type, text string) (reflect.Value, error) {
	k := reflect.New(t)
	if u, ok := k.Interface().(encoding.TextUnmarshaler); ok {
		return k.Elem(), u.UnmarshalText([]byte(text))
	}
	k.Elem().SetString(text)
	return k.Elem(), nil
}

func (f *File) sequence(path string, n ast.Node, v reflect.Value) {
	seq, ok := n.(*ast.SequenceNode)
	if !ok {
		f.RejectAt(line(n), path, "must be a list, not %s", kind(n))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, e := range seq.Values {
		f.value(path+"["+strconv.Itoa(i)+"]", e, out.Index(i))
	}
	v.Set(out)
}
