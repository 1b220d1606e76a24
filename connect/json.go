package connect

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
)

// JSON is a file of Claude Code: the entry is a member of the object that Path leads to.
type JSON struct{ Path []string }

// object is one object of a file, on the way to the entry: its braces and its members.
type object struct {
	open, shut int // offsets of { and }
	members    []member
}

type member struct {
	name       string
	key, value span
}

func (o *object) at(name string) (int, bool) {
	i := slices.IndexFunc(o.members, func(m member) bool { return m.name == name })
	return i, i >= 0
}

// way reads the objects from the root along names, as far as they are there. It has
// read the whole file by then: it is JSON, and no object in it has a key twice.
func way(data []byte, names []string) ([]*object, error) {
	text := bytes.TrimPrefix(data, bom)
	shift := len(data) - len(text)
	if err := checkJSON(data, text, shift); err != nil {
		return nil, err
	}
	r := &reader{data: data, text: text, shift: shift, dec: json.NewDecoder(bytes.NewReader(text)), along: names}
	r.dec.UseNumber()
	if err := r.value(0); err != nil {
		return nil, err
	}
	if len(r.objects) == 0 {
		return nil, lineError(data, shift, "is not an object; correct it, then run this again")
	}
	return r.objects, nil
}

func checkJSON(data, text []byte, shift int) error {
	if json.Valid(text) {
		return nil
	}
	var all json.RawMessage
	err := json.Unmarshal(text, &all)
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return lineError(data, shift+int(syntax.Offset)-1, "is not JSON: %s; correct it, then run this again", syntax.Error())
	}
	return err
}

// reader walks a file's tokens. It keeps the objects on the way, and looks for keys
// that are there twice everywhere: readers differ on which of the two counts.
type reader struct {
	data, text []byte
	shift      int
	dec        *json.Decoder
	along      []string
	objects    []*object
}

// next reads a token and says where it begins; the decoder only says where it ends.
func (r *reader) next() (json.Token, span, error) {
	from := int(r.dec.InputOffset())
	t, err := r.dec.Token()
	if err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return nil, span{}, err
	}
	for strings.IndexByte(" \t\r\n,:", r.text[from]) >= 0 {
		from++
	}
	return t, span{from + r.shift, int(r.dec.InputOffset()) + r.shift}, nil
}

// value reads one value; depth is how far along the way it lies, or -1 beside it.
func (r *reader) value(depth int) error {
	t, at, err := r.next()
	if err != nil {
		return err
	}
	if depth > 0 && t != json.Delim('{') {
		return lineError(r.data, at.start, "has %q, which is not an object; correct it, then run this again", r.along[depth-1])
	}
	switch t {
	case json.Delim('{'):
		return r.object(at.start, depth)
	case json.Delim('['):
		for r.dec.More() {
			if err := r.value(-1); err != nil {
				return err
			}
		}
		_, _, err = r.next()
		return err
	}
	return nil
}

func (r *reader) object(open, depth int) error {
	o := &object{open: open}
	if depth >= 0 && depth <= len(r.along) {
		r.objects = append(r.objects, o)
	}
	seen := map[string]bool{}
	for r.dec.More() {
		t, key, err := r.next()
		if err != nil {
			return err
		}
		name, ok := t.(string)
		if !ok || seen[name] {
			return lineError(r.data, key.start, "has the key %q a second time; remove one, then run this again", name)
		}
		seen[name] = true
		inner := -1
		if depth >= 0 && depth < len(r.along) && r.along[depth] == name {
			inner = depth + 1
		}
		before := int(r.dec.InputOffset())
		if err := r.value(inner); err != nil {
			return err
		}
		for strings.IndexByte(" \t\r\n:", r.text[before]) >= 0 {
			before++
		}
		o.members = append(o.members, member{name, key, span{before + r.shift, int(r.dec.InputOffset()) + r.shift}})
	}
	_, end, err := r.next()
	o.shut = end.start
	return err
}
