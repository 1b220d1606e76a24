package wire

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// text reads a string whose opening quote is the current byte. The unescaped
// text is returned when keep is set, as a part of the input where it can be.
func (s *scanner) text(keep bool) ([]byte, *fault) {
	opened := s.pos
	s.pos++
	from := s.pos // what is not in out yet
	var out []byte
	for s.pos < len(s.raw) {
		switch c := s.raw[s.pos]; {
		case c == '"':
			rest := s.raw[from:s.pos]
			s.pos++
			if out == nil {
				return rest, nil
			}
			return append(out, rest...), nil
		case c == '\\':
			before := s.raw[from:s.pos]
			r, f := s.escape()
			if f != nil {
				return nil, f
			}
			if keep {
				out = utf8.AppendRune(append(out, before...), r)
			}
			from = s.pos
		case c < ' ':
			return nil, fail(s.pos, "control character in a string", fmt.Sprintf(`write it as \u%04x`, c))
		case c < utf8.RuneSelf:
			s.pos++
		default:
			r, size := utf8.DecodeRune(s.raw[s.pos:])
			if r == utf8.RuneError && size == 1 {
				return nil, s.badUTF8()
			}
			s.pos += size
		}
	}
	return nil, fail(opened, "string without an end", "close it with a double quote")
}

// escape reads one escape sequence, or the two of a surrogate pair.
func (s *scanner) escape() (rune, *fault) {
	at := s.pos
	s.pos++
	c := s.peek()
	s.pos++
	switch c {
	case '"', '\\':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case '/':
		s.canonical = false
		return '/', nil
	case 'u':
		return s.codePoint(at)
	}
	return 0, fail(at, "unknown escape sequence", `write a backslash as \\`)
}

func (s *scanner) codePoint(at int) (rune, *fault) {
	r, ok := s.hex4()
	if !ok {
		return 0, fail(at, `\u without four hexadecimal digits`, `write \u and four of 0-9, a-f`)
	}
	if utf16.IsSurrogate(r) {
		low := rune(-1)
		if s.take('\\') && s.take('u') {
			low, _ = s.hex4()
		}
		pair := utf16.DecodeRune(r, low)
		if pair == utf8.RuneError {
			return 0, fail(at, "lone surrogate", "write both halves of the pair, the high one first")
		}
		s.canonical = false
		return pair, nil
	}
	s.replaced = s.replaced || r == utf8.RuneError
	s.canonical = s.canonical && string(s.raw[at:s.pos]) == controls[min(r, ' ')]
	return r, nil
}

func (s *scanner) hex4() (rune, bool) {
	var r rune
	for range 4 {
		c := s.peek()
		switch {
		case isDigit(c):
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1, false
		}
		r = r<<4 | rune(c)
		s.pos++
	}
	return r, true
}

// controls is how canonical form writes U+0000 to U+001F, and nothing for U+0020.
var controls = [...]string{
	`\u0000`, `\u0001`, `\u0002`, `\u0003`, `\u0004`, `\u0005`, `\u0006`, `\u0007`,
	`\b`, `\t`, `\n`, `\u000b`, `\f`, `\r`, `\u000e`, `\u000f`,
	`\u0010`, `\u0011`, `\u0012`, `\u0013`, `\u0014`, `\u0015`, `\u0016`, `\u0017`,
	`\u0018`, `\u0019`, `\u001a`, `\u001b`, `\u001c`, `\u001d`, `\u001e`, `\u001f`,
	``,
}

// compare orders UTF-8 texts by their UTF-16 code units, as RFC 8785 sorts keys.
// That is byte order but for one case: characters beyond U+FFFF (first byte F0 or
// higher) are written as surrogates and sort below U+E000 to U+FFFF (EE, EF).
func compare[T string | []byte](a, b T) int {
	n := min(len(a), len(b))
	for i := range n {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xEE && y >= 0xEE && (x >= 0xF0) != (y >= 0xF0) {
			x, y = y, x
		}
		return int(x) - int(y)
	}
	return len(a) - len(b)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
