package strict

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"

	"github.com/goccy/go-yaml/ast"
)

// Kind is the shape in which a value is written.
type Kind string

const (
	Text    Kind = "text"
	Blocks  Kind = "a block of text"
	List    Kind = "a list"
	Mapping Kind = "a mapping"
	Boolean Kind = "true or false"
)

// Shaped is a value that can be written in several shapes, such as a word or a
// mapping. Shape gives a pointer to read the shape found into; nil refuses it, and
// takes then says in words which shapes there are.
type Shaped interface {
	Shape(Kind) (into any, takes string)
}

func (f *File) shaped(path string, n ast.Node, s Shaped) {
	into, takes := s.Shape(Kind(kind(n)))
	if into == nil {
		f.RejectAt(line(n), path, "must be %s, not %s", takes, kind(n))
		return
	}
	f.value(path, n, reflect.ValueOf(into).Elem())
}

// Block is text that may also be written as a block, with | or >.
type Block string

func (f *File) block(path string, n ast.Node, b *Block) {
	switch n := n.(type) {
	case *ast.LiteralNode:
		*b = Block(n.Value.Value)
	case *ast.StringNode:
		*b = Block(n.Value)
	default:
		f.RejectAt(line(n), path, "must be text, not %s%s", kind(n), quoting(n))
		return
	}
	if *b == "" {
		f.RejectAt(line(n), path, "is empty; give a value or remove it")
	}
}

// JSON is a value of any kind, as the JSON that the YAML stands for: what YAML and
// JSON spell alike and nothing else, so 0x10, 010, .inf and keys that are no text are
// refused. It is not canonical. A mapping keeps the order of its keys.
type JSON []byte

// jsonDepth is how deep JSON may nest, as in every other input.
const jsonDepth = 64

func (f *File) json(path string, n ast.Node, depth int) []byte {
	f.lines[path] = line(n)
	if depth > jsonDepth {
		f.RejectAt(line(n), path, "is nested more than %d deep", jsonDepth)
		return nil
	}
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		f.RejectAt(line(n), path, noAnchors)
	case *ast.NullNode:
		return []byte("null")
	case *ast.BoolNode:
		return strconv.AppendBool(nil, n.Value)
	case *ast.StringNode:
		return quoted(n.Value)
	case *ast.LiteralNode:
		return quoted(n.Value.Value)
	case *ast.IntegerNode, *ast.FloatNode:
		return f.jsonNumber(path, n)
	case *ast.SequenceNode:
		return f.jsonList(path, n, depth)
	case *ast.MappingNode, *ast.MappingValueNode:
		return f.jsonMapping(path, n, depth)
	default:
		f.RejectAt(line(n), path, "has no spelling in JSON; write another value")
	}
	return nil
}

func (f *File) jsonNumber(path string, n ast.Node) []byte {
	const most = 1 << 53 // beyond, a JSON number does not stand for one integer
	text := n.GetToken().Value
	if !json.Valid([]byte(text)) {
		f.RejectAt(line(n), path, "must be a number as in JSON, not %s", text)
		return nil
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if n.Type() == ast.IntegerType && (err != nil || i > most || i < -most) {
		f.RejectAt(line(n), path, "%s is beyond what JSON keeps exactly; write at most %d", text, int64(most))
		return nil
	}
	return []byte(text)
}

func (f *File) jsonList(path string, n *ast.SequenceNode, depth int) []byte {
	var items [][]byte
	for i, e := range n.Values {
		items = append(items, f.json(path+"["+strconv.Itoa(i)+"]", e, depth+1))
	}
	return append(append([]byte("["), bytes.Join(items, []byte(","))...), ']')
}

func (f *File) jsonMapping(path string, n ast.Node, depth int) []byte {
	var members [][]byte
	for _, e := range f.pairs(path, n) {
		at := Member(path, e.key)
		members = append(members, append(append(quoted(e.key), ':'), f.json(at, e.value, depth+1)...))
		f.lines[at] = e.line
	}
	return append(append([]byte("{"), bytes.Join(members, []byte(","))...), '}')
}

func quoted(s string) []byte {
	out, _ := json.Marshal(s) // a string always marshals
	return out
}
