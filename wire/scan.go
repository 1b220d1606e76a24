package wire

import (
	"bytes"
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/writ-run/writ"
)

// A scanner reads one JSON value strictly, once. encoding/json cannot do this:
// it takes the last of two equal keys and replaces bytes that are not UTF-8.
type scanner struct {
	raw    []byte
	pos    int
	depth  int
	values int

	keys  []key                                    // of the objects now open, the innermost last
	known map[reflect.Type]map[string]reflect.Type // filled by Decode only

	canonical bool // nothing seen yet that canonical form would write otherwise
	replaced  bool // U+FFFD was spelled as an escape
}

type key struct {
	text []byte // unescaped
	at   int
}

func scannerOf(raw []byte) scanner {
	return scanner{raw: raw, canonical: true, keys: make([]key, 0, 16)}
}

// A fault is the reason to refuse. It becomes an error once, at the top, after
// the open containers have put their part of the pointer in front.
type fault struct {
	kind    writ.Kind
	what    string
	at      int
	fix     string
	located bool // the message gives the pointer too
	pointer string
}

// How much of a hostile text a message repeats.
const (
	mostPointer = 128
	mostKey     = 64
)

func (f *fault) error() error {
	where := fmt.Sprintf("at byte %d", f.at)
	if f.located {
		where += " (pointer " + quote(f.pointer, mostPointer) + ")"
	}
	return writ.Fail(f.kind, "JSON: "+f.what+" "+where+"; "+f.fix, nil)
}

// below puts a key or an index in front of the pointer, escaped as RFC 6901 says.
// Of a key longer than the message will show, the rest is not copied.
func (f *fault) below(segment string) *fault {
	if f.located {
		segment = segment[:min(len(segment), mostPointer+1)]
		f.pointer = "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(segment) + f.pointer
	}
	return f
}

func fail(at int, what, fix string) *fault {
	return &fault{kind: writ.Invalid, what: what, at: at, fix: fix}
}

// quote makes hostile text fit for one line of a message.
func quote(text string, most int) string {
	if len(text) <= most {
		return strconv.Quote(text)
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return strconv.Quote(text[:most]) + "…"
}

// scan reads the whole input as one value; t is the Go type it is meant for, or
// nil when any keys will do.
func (s *scanner) scan(t reflect.Type) error {
	if len(s.raw) > MaxBytes {
		return tooManyBytes("input", len(s.raw))
	}
	if bytes.HasPrefix(s.raw, []byte("\ufeff")) {
		return fail(0, "byte order mark", "send UTF-8 without one").error()
	}
	s.space()
	f := s.value(t)
	if f == nil {
		if s.space(); s.pos < len(s.raw) {
			f = fail(s.pos, "data after the value", "send exactly one value")
		}
	}
	if f != nil {
		return f.error()
	}
	return nil
}

// wantObject is asked after scan.
func (s *scanner) wantObject() error {
	text := bytes.TrimLeft(s.raw, " \t\r\n")
	if text[0] == '{' {
		return nil
	}
	return fail(len(s.raw)-len(text), "the value is not an object", "send an object").error()
}

func (s *scanner) value(t reflect.Type) *fault {
	if s.values++; s.values > MaxValues {
		return &fault{kind: writ.TooLarge, what: fmt.Sprintf("more than %d values", MaxValues), at: s.pos, fix: "send less"}
	}
	switch c := s.peek(); {
	case c == '{':
		return s.nest(s.object, t)
	case c == '[':
		return s.nest(s.array, t)
	case c == '"':
		_, f := s.text(false)
		return f
	case c == '-' || isDigit(c):
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.raw[s.pos:], []byte(word)) {
			s.pos += len(word)
			return nil
		}
	}
	return s.unexpected("write a JSON value here")
}

func (s *scanner) nest(container func(reflect.Type) *fault, t reflect.Type) *fault {
	if s.depth == MaxDepth {
		return fail(s.pos, fmt.Sprintf("more than %d levels of nesting", MaxDepth), "nest less deeply")
	}
	s.depth++
	s.pos++
	s.space()
	f := container(t)
	s.depth--
	return f
}

func (s *scanner) object(t reflect.Type) *fault {
	if s.take('}') {
		return nil
	}
	mine, sorted := len(s.keys), true
	for {
		if s.peek() != '"' {
			return s.unexpected("write a key in double quotes here")
		}
		at := s.pos
		name, f := s.text(true)
		if f != nil {
			return f
		}
		sorted = sorted && (len(s.keys) == mine || compare(s.keys[len(s.keys)-1].text, name) < 0)
		s.keys = append(s.keys, key{name, at})
		member, f := s.member(t, name, at)
		if f != nil {
			return f.below(string(name))
		}
		if s.space(); !s.take(':') {
			return s.unexpected("write a colon after the key")
		}
		s.space()
		if f := s.value(member); f != nil {
			return f.below(string(name))
		}
		if s.space(); s.take('}') {
			break
		}
		if !s.take(',') {
			return s.unexpected("write a comma or a closing brace here")
		}
		s.space()
	}
	// Keys in strictly rising order cannot repeat.
	if !sorted {
		s.canonical = false
		if f := duplicate(s.keys[mine:]); f != nil {
			return f
		}
	}
	s.keys = s.keys[:mine]
	return nil
}

func (s *scanner) array(t reflect.Type) *fault {
	if s.take(']') {
		return nil
	}
	elem := element(t)
	for i := 0; ; i++ {
		if f := s.value(elem); f != nil {
			return f.below(strconv.Itoa(i))
		}
		if s.space(); s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.unexpected("write a comma or a closing bracket here")
		}
		s.space()
	}
}

// duplicate finds the first key that came before in the same object. Sorting
// keeps the cost bounded whatever the keys are.
func duplicate(keys []key) *fault {
	slices.SortFunc(keys, func(a, b key) int {
		return cmp.Or(bytes.Compare(a.text, b.text), a.at-b.at)
	})
	second := key{at: -1}
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(keys[i-1].text, keys[i].text) && (second.at < 0 || keys[i].at < second.at) {
			second = keys[i]
		}
	}
	if second.at < 0 {
		return nil
	}
	f := fail(second.at, "duplicate key "+quote(string(second.text), mostKey), "give each key once")
	f.located = true
	return f.below(string(second.text))
}

func (s *scanner) peek() byte {
	if s.pos < len(s.raw) {
		return s.raw[s.pos]
	}
	return 0 // never part of the grammar outside strings
}

func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) space() {
	for s.pos < len(s.raw) {
		switch s.raw[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.canonical = false
			s.pos++
		default:
			return
		}
	}
}

// unexpected describes what stands at the current position instead of what fix asks for.
func (s *scanner) unexpected(fix string) *fault {
	rest := s.raw[s.pos:]
	if len(rest) == 0 {
		return fail(s.pos, "the input ends too early", fix)
	}
	r, size := utf8.DecodeRune(rest)
	if r == utf8.RuneError && size == 1 {
		return s.badUTF8()
	}
	return fail(s.pos, "unexpected "+strconv.QuoteRuneToASCII(r), fix)
}

func (s *scanner) badUTF8() *fault {
	return fail(s.pos, "invalid UTF-8", "encode the text as UTF-8")
}
