package strict

import (
	"encoding"
	"reflect"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

func (f *File) text(path string, n ast.Node, u encoding.TextUnmarshaler) {
	s, ok := n.(*ast.StringNode)
	if !ok {
		// Of a number, what takes the word knows best what is missing: a unit, mostly.
		if t := n.Type(); t == ast.IntegerType || t == ast.FloatType {
			if err := u.UnmarshalText([]byte(n.GetToken().Value)); err != nil {
				f.RejectAt(line(n), path, "%s", Describe(err))
				return
			}
			if _, ok := u.(Numeric); ok {
				return
			}
		}
		f.RejectAt(line(n), path, "must be a word, not %s", kind(n))
		return
	}
	if err := u.UnmarshalText([]byte(s.Value)); err != nil {
		f.RejectAt(line(n), path, "%s", Describe(err))
	}
}

func (f *File) scalar(path string, n ast.Node, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		s, ok := n.(*ast.StringNode)
		switch {
		case !ok:
			f.RejectAt(line(n), path, "must be text, not %s%s", kind(n), quoting(n))
		case s.Value == "":
			f.RejectAt(line(n), path, "is empty; give a value or remove it")
		default:
			v.SetString(s.Value)
		}
	case reflect.Bool:
		if b, ok := n.(*ast.BoolNode); ok {
			v.SetBool(b.Value)
			return
		}
		f.RejectAt(line(n), path, "must be true or false, not %s", kind(n))
	case reflect.Int:
		// One number has one spelling: 010 is ten to some readers and eight to others.
		text := n.GetToken().Value
		i, err := strconv.Atoi(text)
		switch {
		case n.Type() != ast.IntegerType:
			f.RejectAt(line(n), path, "must be a whole number, not %s", kind(n))
		case err != nil || strconv.Itoa(i) != text:
			f.RejectAt(line(n), path, "must be a whole number in plain decimal digits, not %s", text)
		default:
			v.SetInt(int64(i))
		}
	case reflect.Float64:
		text := n.GetToken().Value
		plain := strings.Trim(text, "0123456789") // 80 or 80.5: no exponent, no infinity
		x, err := strconv.ParseFloat(text, 64)
		switch {
		case n.Type() != ast.IntegerType && n.Type() != ast.FloatType:
			f.RejectAt(line(n), path, "must be a number, not %s", kind(n))
		case err != nil || plain != "" && plain != ".":
			f.RejectAt(line(n), path, "must be a number in plain decimal digits, not %s", text)
		default:
			v.SetFloat(x)
		}
	default:
		panic("strict: no decoding for " + v.Type().String()) // a field of a kind nobody handles: a programming error
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

// Numeric is what can be written as a number, without quotes, besides as a word.
type Numeric interface{ Numeric() }
