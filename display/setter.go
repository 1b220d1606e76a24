package display

import "unicode/utf8"

// A glyph is how one character shows, or one unit of a safe text.
type glyph struct {
	columns int
	stands  int // for so many bytes of the text
	sort    sort
}

type sort uint8

const (
	letter  sort = iota
	onto         // a mark: stays with what is before it, as long as it fits
	escaped      // takes no marks
	newline
)

// glyphOf is how the character shows that a reader came past.
func glyphOf(r *reader, from int, spelled bool) glyph {
	switch stands := r.at - from; {
	case spelled:
		return glyph{escapeSize(r.char, stands), stands, escaped}
	case r.char == '\n':
		return glyph{0, stands, newline}
	case markOf(r.char) != noMark:
		return glyph{columns(r.char), stands, onto}
	default:
		return glyph{columns(r.char), stands, letter}
	}
}

// escapeSize is how long the escape of a character of so many bytes is.
func escapeSize(r rune, bytes int) int {
	switch {
	case r == utf8.RuneError && bytes == 1:
		return len("<0xFF>")
	case r > 0xFFFFF:
		return len("<U+10FFFF>")
	case r > 0xFFFF:
		return len("<U+1FFFF>")
	}
	return len("<U+FFFF>")
}

// A setter puts one character after the other into rows.
type setter struct {
	columns   int   // of text in a row
	row       place // where the row begins
	used      int   // columns of it before the last unit
	unit      int   // where that begins
	unitMarks int   // a reader's, there
	wide      int   // its columns
	closed    bool  // it takes no marks
}

// put reports whether the character at a place, or the unit that it belongs to, begins a
// new row, or ends one as a newline does; the new row is then t.row. marks are a reader's
// before it.
func (t *setter) put(at, marks int, g glyph) bool {
	if g.sort == newline {
		*t = setter{columns: t.columns, row: place{at: at + g.stands, marks: noBase, line: t.row.line + 1}, closed: true}
		return true
	}
	if g.sort == onto && !t.closed && t.wide+g.columns <= mostColumns {
		t.wide += g.columns
	} else {
		t.used += t.wide
		t.unit, t.unitMarks, t.wide = at, marks, g.columns
	}
	t.closed = g.sort == escaped
	if t.used+t.wide <= t.columns {
		return false
	}
	t.used = 0
	t.row = place{at: t.unit, marks: t.unitMarks, line: t.row.line, continued: true}
	return true
}
