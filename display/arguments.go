package display

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind is what an [Item] is in JSON. The zero Kind is none.
type Kind string

const (
	Object  Kind = "object" // an empty one
	Array   Kind = "array"  // an empty one
	String  Kind = "string"
	Number  Kind = "number"
	Boolean Kind = "boolean"
	Null    Kind = "null"
)

// A Value is one value of a call's arguments. It is made safe when it is shown, and only
// as far as it is.
type Value struct {
	Pointer string // where it is, on one line, as safe text; "" is the whole of the arguments
	Kind    Kind   // tells the text true from the value true

	key  string // where it is, as it is
	text string // the value: a string without quotes, anything else as JSON
}

// An Item is a value as a person reads it. All text in it is safe.
type Item struct {
	Pointer  string   // where it is: /a/b is key b of the object under key a, /a[0] the first of the array there
	Kind     Kind     // see Value
	Text     string   // the value: a string without quotes and on its own lines, anything else as JSON
	Bytes    int      // of the value before it was made safe
	Lines    int      // one more than it has newlines
	Warnings []string // what to look at twice, a line each
}

// A Sheet is an item as far as it fits on a page: Text is the value whole, or one page of
// a long one. The warnings are about all of it.
type Sheet struct {
	Item
	Page, Pages int    // from 1
	Title       string // of a long one: which part of it this is
}

// mostPointers bounds the pointers of all items together. One key of megabytes
// above a hundred thousand values would otherwise take all memory.
const mostPointers = 16 << 20

// Arguments lists every value of canonical JSON in order. Nothing is left out: an
// empty object or array is an item, and objects and arrays with something in them
// are known by the pointers of what they hold. Input of which that could not be
// said (not JSON, spaces between values, escapes that canonical form does not use,
// a key given twice) is an error, and then there are no items: what cannot be
// shown exactly must not be approved.
func Arguments(canonical []byte) ([]Item, error) {
	var items []Item
	err := Values(canonical, func(v Value) error {
		items = append(items, v.item(Visible(v.text), textWarnings(v.text)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

// Values is Arguments one by one, before anything is made safe. An error of each ends it
// and is returned. After any error what each was given is not to be shown.
func Values(canonical []byte, each func(Value) error) error {
	if !utf8.Valid(canonical) || !json.Valid(canonical) {
		return errNotCanonical
	}
	w := walker{text: string(canonical), each: each}
	if err := w.value(""); err != nil {
		return err
	}
	if w.at != len(w.text) {
		return errNotCanonical
	}
	return nil
}

func (v Value) item(text string, warnings []string) Item {
	return Item{Pointer: v.Pointer, Kind: v.Kind, Text: text, Bytes: len(v.text), Lines: lineCount(v.text), Warnings: append(keyWarnings(v.key), warnings...)}
}

// Sheet shows one page, or the value whole where it is short: no more rows than a page,
// and no more text than a quarter of one. Pages are as Paginate makes them; a number
// that none has is the nearest's. The value is read once, and only what is shown of it is
// made safe. The error is ctx's.
func (v Value) Sheet(ctx context.Context, page, rows, width int) (Sheet, error) {
	var found survey
	text, short := "", rows*width/4
	whole := len(v.text) <= short && lineCount(v.text) <= rows
	if whole {
		text = Visible(v.text) // which is longer
		whole = len(text) <= short
	}
	if !whole {
		found.pages = divide(v.text, rows, width)
	}
	if err := found.read(ctx, v.text); err != nil {
		return Sheet{}, err
	}
	s := Sheet{Page: 1, Pages: 1}
	if p := found.pages; p != nil {
		s.Page, s.Pages = min(max(page, 1), p.Count()), p.Count()
		text, s.Title = p.Page(s.Page), p.Title(s.Page)
	}
	s.Item = v.item(text, found.warnings())
	return s, nil
}

// ErrTooLong says that the arguments cannot be listed, whatever they are.
var ErrTooLong = errors.New("the keys of the arguments are too long to be shown with each value (more than " + counted(mostPointers, "byte") + "); reject the call")

var errNotCanonical = errors.New("the arguments are not canonical JSON, so they cannot be shown exactly; reject the call and report this as a bug")

// A walker goes through text that is known to be JSON, and so looks only for what
// JSON leaves open.
type walker struct {
	text     string
	at       int
	each     func(Value) error
	pointers int // bytes
}

func (w *walker) value(pointer string) error {
	from := w.at
	switch c := w.text[w.at]; {
	case c == '{' || c == '[':
		w.at++
		if close := w.text[w.at]; close == c+2 { // } follows { by two in ASCII, as ] follows [
			w.at++
			kind := Object
			if c == '[' {
				kind = Array
			}
			return w.add(pointer, kind, w.text[from:w.at])
		}
		if c == '{' {
			return w.members(pointer)
		}
		return w.elements(pointer)
	case c == '"':
		s, err := w.string()
		if err != nil {
			return err
		}
		return w.add(pointer, String, s)
	}
	w.at += len(w.text[w.at:])
	if end := strings.IndexAny(w.text[from:], ",]} \t\r\n"); end >= 0 {
		w.at = from + end
	}
	return w.add(pointer, scalar(w.text[from]), w.text[from:w.at])
}

// scalar is the kind of a value by its first byte.
func scalar(c byte) Kind {
	switch c {
	case 't', 'f':
		return Boolean
	case 'n':
		return Null
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return Number
	}
	return "" // a space, which add refuses
}

func (w *walker) members(pointer string) error {
	seen := map[string]bool{}
	for {
		if w.text[w.at] != '"' {
			return errNotCanonical
		}
		key, err := w.string()
		if err != nil {
			return err
		}
		if seen[key] || w.text[w.at] != ':' {
			return errNotCanonical
		}
		seen[key] = true
		w.at++
		if err := w.value(pointer + "/" + segment.Replace(key)); err != nil {
			return err
		}
		if done, err := w.closed('}'); done || err != nil {
			return err
		}
	}
}

// segment is a key in a pointer. RFC 6901 writes ~ and / so; what would look like the
// place of an element is written likewise, because {"a":["x"]} and {"a[0]":"x"} are two
// things.
var segment = strings.NewReplacer("~", "~0", "/", "~1", "[", "~2")

func (w *walker) elements(pointer string) error {
	for i := 0; ; i++ {
		if err := w.value(pointer + "[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
		if done, err := w.closed(']'); done || err != nil {
			return err
		}
	}
}

// closed steps over the comma or the end after a member or element.
func (w *walker) closed(by byte) (bool, error) {
	c := w.text[w.at]
	w.at++
	if c != by && c != ',' {
		return false, errNotCanonical
	}
	return c == by, nil
}

func (w *walker) add(pointer string, kind Kind, value string) error {
	if kind == "" {
		return errNotCanonical
	}
	if w.pointers += len(pointer); w.pointers > mostPointers {
		return ErrTooLong
	}
	return w.each(Value{Pointer: Line(pointer), Kind: kind, key: pointer, text: value})
}
