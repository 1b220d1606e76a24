package wire

import (
	"strconv"

	"github.com/gowebpki/jcs"
)

// number reads a number and refuses one that canonical form would change.
func (s *scanner) number() *fault {
	at := s.pos
	s.take('-')
	first := s.pos
	n := s.digits()
	if n == 0 {
		return s.unexpected("write a digit here")
	}
	if n > 1 && s.raw[first] == '0' {
		return fail(first, "number with a leading zero", "leave the zero out")
	}
	whole := true
	if s.take('.') {
		whole = false
		if s.digits() == 0 {
			return s.unexpected("write a digit after the point")
		}
	}
	if s.take('e') || s.take('E') {
		whole = false
		if !s.take('+') {
			s.take('-')
		}
		if s.digits() == 0 {
			return s.unexpected("write a digit in the exponent")
		}
	}
	// Fifteen digits always fit a float, and print as they are.
	if whole && n <= 15 && (s.raw[first] != '0' || first == at) {
		return nil
	}
	return s.survives(s.raw[at:s.pos], at)
}

func (s *scanner) digits() int {
	from := s.pos
	for s.pos < len(s.raw) && isDigit(s.raw[s.pos]) {
		s.pos++
	}
	return s.pos - from
}

// survives compares the decimal value written with the decimal value that
// canonical form prints, which is the shortest one that reads back as the same
// float. Comparing with the float's own exact value would refuse 0.1.
func (s *scanner) survives(literal []byte, at int) *fault {
	written := decimalOf(literal)
	if written.n == 0 {
		if written.negative {
			return fail(at, "negative zero, which canonical form turns into 0,", "write 0")
		}
		s.canonical = false
		return nil
	}
	const fix = "send it as a string"
	if written.long {
		return fail(at, "number with more digits than a 64-bit float keeps", fix)
	}
	float, err := strconv.ParseFloat(string(literal), 64)
	if err != nil || float == 0 {
		return fail(at, "number outside the range of a 64-bit float", fix)
	}
	var shortest [32]byte
	if decimalOf(strconv.AppendFloat(shortest[:0], float, 'e', -1, 64)) != written {
		return fail(at, "number that a 64-bit float does not keep", fix)
	}
	if s.canonical {
		form, err := jcs.NumberToJSON(float)
		s.canonical = err == nil && form == string(literal)
	}
	return nil
}

// A decimal is a number in normal form: 0.digits × 10^exponent, with neither a
// leading nor a trailing zero among its digits, so that equal values are equal
// structs. Zero has no digits.
type decimal struct {
	negative bool
	long     bool // more digits than the shortest form of any float has
	digits   [17]byte
	n        int
	exponent int
}

// decimalOf reads a number of the JSON grammar.
func decimalOf(literal []byte) decimal {
	var d decimal
	fraction := false
	zeros := 0 // seen since the last digit that counts
	for i, c := range literal {
		switch {
		case c == '-':
			d.negative = true
		case c == '.':
			fraction = true
		case c == 'e' || c == 'E':
			d.exponent += exponentOf(literal[i+1:])
			return d
		case c == '0' && d.n == 0:
			if fraction {
				d.exponent--
			}
		default:
			if !fraction {
				d.exponent++
			}
			if c == '0' {
				zeros++
				continue
			}
			if d.n+zeros >= len(d.digits) {
				d.long = true
				zeros = 0
				continue
			}
			for ; zeros > 0; zeros-- {
				d.digits[d.n] = '0'
				d.n++
			}
			d.digits[d.n] = c
			d.n++
		}
	}
	return d
}

// exponentOf stops growing far beyond what the digits of an input can make up for.
func exponentOf(text []byte) int {
	const most = 1 << 40
	e := 0
	for _, c := range text {
		if isDigit(c) && e < most {
			e = e*10 + int(c-'0')
		}
	}
	if text[0] == '-' {
		return -e
	}
	return e
}
