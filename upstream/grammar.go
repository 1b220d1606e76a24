package upstream

import (
	"bytes"
	"fmt"
	"slices"
	"unicode/utf16"
	"unicode/utf8"
)

func (s *scanner) value() error {
	switch c := s.peek(); {
	case c == '{' || c == '[':
		return s.nest(c)
	case c == '"':
		_, err := s.string(false)
		return err
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.raw[s.pos:], []byte(word)) {
			s.pos += len(word)
			return nil
		}
	}
	return s.fault("a value is expected")
}

func (s *scanner) nest(opened byte) error {
	if s.depth == deepest {
		return s.fault(fmt.Sprintf("more than %d levels of nesting", deepest))
	}
	s.depth++
	s.pos++
	s.space()
	defer func() { s.depth-- }()
	if opened == '{' {
		return s.object()
	}
	return s.array()
}

func (s *scanner) object() error {
	if s.take('}') {
		return nil
	}
	mine := len(s.keys)
	for {
		if s.peek() != '"' {
			return s.fault("a key is expected")
		}
		key, err := s.string(true)
		if err != nil {
			return err
		}
		s.keys = append(s.keys, key)
		if s.space(); !s.take(':') {
			return s.fault("a colon is expected")
		}
		s.space()
		from := s.pos
		if err := s.value(); err != nil {
			return err
		}
		if s.depth == 1 && s.each != nil {
			s.each(key, s.raw[from:s.pos])
		}
		if s.space(); s.take('}') {
			break
		}
		if !s.take(',') {
			return s.fault("a comma is expected")
		}
		s.space()
	}
	if repeated(s.keys[mine:]) {
		if s.depth == 1 {
			return s.fault("duplicate key before the end of the object")
		}
		s.note("duplicate key before the end of the object")
	}
	s.keys = s.keys[:mine]
	return nil
}

// repeated reorders the keys.
func repeated(keys [][]byte) bool {
	if len(keys) <= 8 {
		for i, key := range keys {
			for _, other := range keys[:i] {
				if bytes.Equal(key, other) {
					return true
				}
			}
		}
		return false
	}
	slices.SortFunc(keys, bytes.Compare)
	for i := 1; i < len(keys); i++ {
		if bytes.Equal(keys[i-1], keys[i]) {
			return true
		}
	}
	return false
}

func (s *scanner) array() error {
	if s.take(']') {
		return nil
	}
	for {
		if err := s.value(); err != nil {
			return err
		}
		if s.space(); s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.fault("a comma is expected")
		}
		s.space()
	}
}

func (s *scanner) number() error {
	s.take('-')
	first := s.pos
	if n := s.digits(); n == 0 || n > 1 && s.raw[first] == '0' {
		return s.fault("a number is expected")
	}
	if s.take('.') && s.digits() == 0 {
		return s.fault("a digit is expected")
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if s.digits() == 0 {
			return s.fault("a digit is expected")
		}
	}
	return nil
}

func (s *scanner) digits() int {
	from := s.pos
	for s.pos < len(s.raw) && '0' <= s.raw[s.pos] && s.raw[s.pos] <= '9' {
		s.pos++
	}
	return s.pos - from
}

// string reads a string; with keep, its value.
func (s *scanner) string(keep bool) ([]byte, error) {
	s.pos++
	from, escaped := s.pos, false
	for s.pos < len(s.raw) {
		switch c := s.raw[s.pos]; {
		case c == '"':
			raw := s.raw[from:s.pos]
			s.pos++
			if !keep || !escaped {
				return raw, nil
			}
			return []byte(text(s.raw[from-1 : s.pos])), nil
		case c == '\\':
			escaped = true
			if err := s.escape(); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, s.fault("control character in a string")
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, size := utf8.DecodeRune(s.raw[s.pos:])
			if r == utf8.RuneError && size == 1 {
				s.note("invalid UTF-8")
			}
			s.pos += size
		}
	}
	return nil, s.fault("a string without an end")
}

func (s *scanner) escape() error {
	s.pos++
	c := s.peek()
	if c != 'u' {
		if c == 0 || bytes.IndexByte([]byte(`"\/bfnrt`), c) < 0 {
			return s.fault("unknown escape")
		}
		s.pos++
		return nil
	}
	r, ok := s.hex4()
	if !ok {
		return s.fault("unknown escape")
	}
	if !utf16.IsSurrogate(r) {
		return nil
	}
	if at := s.pos; s.take('\\') && s.peek() == 'u' {
		if low, ok := s.hex4(); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
			return nil
		}
		s.pos = at
	} else {
		s.pos = at
	}
	s.note("lone surrogate")
	return nil
}

// hex4 reads u and four hexadecimal digits.
func (s *scanner) hex4() (rune, bool) {
	if s.pos+5 > len(s.raw) {
		return 0, false
	}
	var r rune
	for _, c := range s.raw[s.pos+1 : s.pos+5] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	s.pos += 5
	return r, true
}

func (s *scanner) peek() byte {
	if s.pos < len(s.raw) {
		return s.raw[s.pos]
	}
	return 0
}

func (s *scanner) take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) space() {
	for s.pos < len(s.raw) && (s.raw[s.pos] == ' ' || s.raw[s.pos] == '\t' || s.raw[s.pos] == '\r' || s.raw[s.pos] == '\n') {
		s.pos++
	}
}
