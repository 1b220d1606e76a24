package wire

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/writ-run/writ"
)

// Decode reads an envelope of a front door into the value that into points to.
// The input is held to the same rules as that of Canonical. A key must be
// spelled exactly as the field's json tag (or name) and an unknown one is
// refused, in nested structs, slices and maps as well; encoding/json alone would
// take "TOOL" for "tool", and a reader in front of us might not. A
// json.RawMessage keeps its exact bytes. Types with an UnmarshalJSON or
// UnmarshalText of their own, and interfaces, see to their keys themselves.
//
// On success the value is replaced whole; on error it is left as it was. Where
// it is a struct the input must be an object: null is no envelope.
func Decode(raw []byte, into any) error {
	target := reflect.ValueOf(into)
	if target.Kind() != reflect.Pointer || target.IsNil() {
		return writ.Fail(writ.Invalid, "JSON: there is nothing to decode into; report this as a bug",
			&json.InvalidUnmarshalError{Type: reflect.TypeOf(into)})
	}
	target = target.Elem()
	t := checked(target.Type())
	s := scannerOf(raw)
	if err := s.scan(t); err != nil {
		return err
	}
	if t != nil && t.Kind() == reflect.Struct {
		if err := s.wantObject(); err != nil {
			return err
		}
	}
	fresh := reflect.New(target.Type())
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(fresh.Interface()); err != nil {
		return mismatch(err)
	}
	target.Set(fresh.Elem())
	return nil
}

// mismatch words an error of encoding/json without its Go types and without
// the value it quotes.
func mismatch(err error) error {
	var e *json.UnmarshalTypeError
	if !errors.As(err, &e) {
		return writ.Fail(writ.Invalid, "JSON: a field has a value that it cannot hold; see the field's format", err)
	}
	what := "the value"
	if e.Field != "" {
		what = "field " + quote(e.Field, mostKey)
	}
	kind, _, _ := strings.Cut(e.Value, " ")
	return writ.Fail(writ.Invalid, fmt.Sprintf("JSON: %s, before byte %d, cannot be this %s; send %s", what, e.Offset, kind, wanted(e.Type)), nil)
}

func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return "a whole number of " + fmt.Sprint(t.Bits()) + " bits"
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return "a whole number of " + fmt.Sprint(t.Bits()) + " bits, not below 0"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "another type"
}

var (
	readsJSON = reflect.TypeFor[json.Unmarshaler]()
	readsText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

// checked is the type whose keys are to be checked when t is decoded: t without
// its pointers, or nil when there is nothing to check.
func checked(t reflect.Type) reflect.Type {
	for ; ; t = t.Elem() {
		if p := reflect.PointerTo(t); p.Implements(readsJSON) || p.Implements(readsText) {
			return nil
		}
		if t.Kind() != reflect.Pointer {
			break
		}
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Slice, reflect.Array:
		return t
	}
	return nil
}

// element is the type of the elements of a JSON array meant for t.
func element(t reflect.Type) reflect.Type {
	if t == nil || t.Kind() != reflect.Slice && t.Kind() != reflect.Array {
		return nil
	}
	return checked(t.Elem())
}

// member is the type of the member name of a JSON object meant for t, or a
// fault when t has no such field.
func (s *scanner) member(t reflect.Type, name []byte, at int) (reflect.Type, *fault) {
	if t == nil {
		return nil, nil
	}
	switch t.Kind() {
	case reflect.Map:
		return checked(t.Elem()), nil
	case reflect.Struct:
		fields, ok := s.known[t]
		if !ok {
			fields = fieldsOf(t)
			if s.known == nil {
				s.known = map[reflect.Type]map[string]reflect.Type{}
			}
			s.known[t] = fields
		}
		if field, ok := fields[string(name)]; ok {
			return field, nil
		}
		f := fail(at, "unknown field "+quote(string(name), mostKey), "remove it or spell it exactly as documented")
		f.located = true
		return nil, f
	}
	return nil, nil
}

// fieldsOf lists what encoding/json fills in a struct, by exact name. Embedded
// structs wait in a queue so that the outer of two equal names wins.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	fields := map[string]reflect.Type{}
	queue := []reflect.Type{t}
	for at := 0; at < len(queue); at++ {
		for i := range queue[at].NumField() {
			f := queue[at].Field(i)
			tag := f.Tag.Get("json")
			name, _, _ := strings.Cut(tag, ",")
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			switch {
			case tag == "-":
			case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
				if !slices.Contains(queue, inner) {
					queue = append(queue, inner)
				}
			case f.IsExported():
				name = cmp.Or(name, f.Name)
				if _, outer := fields[name]; !outer {
					fields[name] = checked(f.Type)
				}
			}
		}
	}
	return fields
}
