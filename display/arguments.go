package display

import (
	"encoding/json"
	"errors"
	"fmt"
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

// An Item is one value of a call's arguments as a person reads it. All text in it
// is safe.
type Item struct {
	Pointer  string   // where it is (RFC 6901), on one line; "" is the whole of the arguments
	Kind     Kind     // tells the text true from the value true
	Text     string   // the value: a string without quotes and on its own lines, anything else as JSON
	Bytes    int      // of the value before it was made safe
	Lines    int      // one more than it has newlines
	Warnings []string // what to look at twice, a line each
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
	if !utf8.Valid(canonical) || !json.Valid(canonical) {
		return nil, errNotCanonical
	}
	w := walker{text: string(canonical)}
	if err := w.value(""); err != nil {
		return nil, err
	}
	if w.at != len(w.text) {
		return nil, errNotCanonical
	}
	return w.items, nil
}

var errNotCanonical = errors.New("the arguments are not canonical JSON, so they cannot be shown exactly; reject the call and report this as a bug")

// A walker goes through text that is known to be JSON, and so looks only for what
// JSON leaves open.
type walker struct {
	text     string
	at       int
	items    []Item
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

var segment = strings.NewReplacer("~", "~0", "/", "~1")

func (w *walker) elements(pointer string) error {
	for i := 0; ; i++ {
		if err := w.value(pointer + "/" + strconv.Itoa(i)); err != nil {
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
		return fmt.Errorf("the keys of the arguments are too long to be shown with each value (more than %s); reject the call", counted(mostPointers, "byte"))
	}
	item := Item{Pointer: Line(pointer), Kind: kind, Text: Visible(value), Bytes: len(value), Lines: lineCount(value)}
	item.Warnings = append(keyWarnings(pointer), textWarnings(value)...)
	w.items = append(w.items, item)
	return nil
}
