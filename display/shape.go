package display

import (
	"fmt"
	"unicode/utf8"
)

// From here on a person is told: a text can be moved out of sight without any
// special character.
const (
	longLine   = 500 // characters
	longGap    = 40  // spaces before more text on a line
	blankLines = 10  // before more text
)

// shape looks for what the shape of a text can hide. It is shown each character in turn.
type shape struct {
	number int // of the line, from 0
	empty  int // lines before it

	characters  int
	gap         int  // columns of spaces since the last text
	text        bool // there is some
	carriage    bool // the last character may belong to the end of the line
	afterGap    bool
	rightToLeft bool
	other       bool // letters or digits that go the other way

	long, gaps, trailing, blank, mixed lines
}

func (s *shape) see(r rune) {
	if s.carriage && r != '\n' { // it was in the middle of one
		s.carriage = false
		s.put()
	}
	switch r {
	case '\n':
		s.endLine()
	case '\r':
		s.carriage = true
	case ' ':
		s.characters++
		s.gap++
	case '\t':
		s.characters++
		s.gap += 8
	default:
		s.put()
		s.direction(r)
	}
}

// put sees a character that is no space.
func (s *shape) put() {
	s.characters++
	s.afterGap = s.afterGap || s.gap >= longGap
	s.gap, s.text = 0, true
}

// direction notes letters of a right-to-left script, and letters or digits that go the
// other way: where a line has both, a terminal moves the parts, and the signs between
// them, around.
func (s *shape) direction(r rune) {
	if r < utf8.RuneSelf {
		s.other = s.other || 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9'
		return
	}
	switch is := known().of[r]; {
	case is&rightToLeft != 0:
		s.rightToLeft = true
	case is&alnum != 0:
		s.other = true
	}
}

func (s *shape) endLine() {
	s.number++
	s.long.note(s.number, s.characters > longLine)
	s.trailing.note(s.number, s.gap > 0)
	s.gaps.note(s.number, s.afterGap)
	s.mixed.note(s.number, s.rightToLeft && s.other)
	if s.text {
		s.blank.note(s.number, s.empty >= blankLines)
		s.empty = 0
	} else {
		s.empty++
	}
	s.characters, s.gap, s.text, s.carriage, s.afterGap, s.rightToLeft, s.other = 0, 0, false, false, false, false, false
}

// end is the warnings, once all of the text was seen: of each kind the first line, and
// how many more there are.
func (s *shape) end() []string {
	s.endLine()
	var out []string
	for _, kind := range []struct {
		found lines
		what  string
	}{
		{s.trailing, "spaces at the end"},
		{s.long, fmt.Sprintf("more than %d characters long", longLine)},
		{s.gaps, fmt.Sprintf("text after %d spaces or more", longGap)},
		{s.blank, fmt.Sprintf("text after %d empty lines or more", blankLines)},
		{s.mixed, "right-to-left letters beside others: the order shown may not be the order in the text"},
	} {
		if kind.found.count > 0 {
			out = append(out, kind.found.String()+": "+kind.what)
		}
	}
	return out
}

// lines is where something was found.
type lines struct{ first, count int }

func (l *lines) note(number int, found bool) {
	if !found {
		return
	}
	if l.count++; l.count == 1 {
		l.first = number
	}
}

func (l lines) String() string {
	if l.count == 1 {
		return "line " + grouped(l.first)
	}
	return fmt.Sprintf("line %s and %s", grouped(l.first), counted(l.count-1, "more line"))
}
