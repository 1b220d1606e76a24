package display

import (
	"fmt"
	"strconv"
	"strings"
)

// The least a page can be: a row has room for the widest unit.
const (
	leastRows = 1
	leastText = mostColumns + 4
)

// marginColumns are those of " │ "; the bar is two wide on some terminals.
const marginColumns = 4

// Pages is a text in pages that fit on a screen, as safe text. Each row begins with a
// margin that the text cannot reach, so it cannot imitate one: the line's number
// and "│ ", or "↪ " where the row goes on with the line of the row before. A line
// that is too long is continued, never cut. The zero value has no pages.
//
// Only the places where pages begin are kept; a page is made when it is asked for.
type Pages struct {
	text   string
	safe   bool    // it is; otherwise what is shown of it is made so
	starts []place // of the pages
	rows   int     // on a page
	digits int     // of the highest line number
	lines  int
	bytes  int

	here setter // where it has got to, while it is divided
	row  int    // the number of that row, from 0
}

// A place is where a row begins.
type place struct {
	at        int
	marks     int // a reader's
	line      int // its number, from 1
	continued bool
}

// Paginate divides a safe text into pages of so many rows, each at most width
// columns wide with its margin. A page of less than one row or a row with less
// than 16 columns of text cannot be: those are then taken. An empty text is one
// page, and a newline at the end shows as an empty line after it.
func Paginate(safe string, rows, width int) Pages {
	p := divide(safe, rows, width)
	p.safe = true
	for r := p.reader(place{}); r.at < len(safe); {
		from := r.at
		p.see(from, noBase, p.next(&r))
	}
	return *p
}

// divide is a text of which no character was seen yet.
func divide(text string, rows, width int) *Pages {
	p := &Pages{text: text, rows: max(rows, leastRows), lines: lineCount(text)}
	p.digits = len(strconv.Itoa(p.lines))
	p.here = setter{columns: max(width-p.digits-marginColumns, leastText), row: place{line: 1, marks: noBase}, closed: true}
	p.starts = []place{p.here.row}
	return p
}

// see is shown each character in turn, where it stands, and a reader's marks before it.
func (p *Pages) see(at, marks int, g glyph) {
	p.bytes += g.stands
	if !p.here.put(at, marks, g) {
		return
	}
	if p.row++; p.row%p.rows == 0 {
		p.starts = append(p.starts, p.here.row)
	}
}

func (p *Pages) reader(at place) reader { return reader{text: p.text, at: at.at, marks: at.marks} }

// next goes on by what the text shows as one character.
func (p *Pages) next(r *reader) glyph {
	from := r.at
	if !p.safe {
		return glyphOf(r, from, r.next())
	}
	if p.text[from] == '\n' {
		r.at++
		return glyph{0, 1, newline}
	}
	u := firstUnit(p.text[from:])
	r.at += u.size
	return glyph{u.columns, u.stands, letter}
}

// Count is how many pages there are.
func (p Pages) Count() int { return len(p.starts) }

// Page is the rows of page n, from 1, each ending in a newline; "" when there is
// no such page.
func (p Pages) Page(n int) string {
	if n < 1 || n > len(p.starts) {
		return ""
	}
	var b []byte
	t := setter{columns: p.here.columns, row: p.starts[n-1], closed: true}
	r := p.reader(t.row)
	for left := p.rows; left > 0; {
		row, end := t.row, len(p.text)
		if r.at < len(p.text) {
			at, marks := r.at, r.marks
			if !t.put(at, marks, p.next(&r)) {
				continue
			}
			end = t.row.at
		} else {
			left = 1
		}
		left--
		b = p.appendRow(b, row, end)
	}
	return string(b)
}

// appendRow appends the row that goes from a place to where the next begins.
func (p *Pages) appendRow(b []byte, from place, end int) []byte {
	if from.continued {
		b = fmt.Appendf(b, "%*s ↪ ", p.digits, "")
	} else {
		b = fmt.Appendf(b, "%*d │ ", p.digits, from.line)
	}
	text := strings.TrimSuffix(p.text[from.at:end], "\n")
	if p.safe {
		return append(append(b, text...), '\n')
	}
	r := p.reader(from)
	return append(r.until(b, from.at+len(text)), '\n')
}

// Title says where page n stands: "page 2 of 7, lines 41–80 of 260, 12,345 bytes".
// The bytes are those of the whole text before it was made safe. It is "" when
// there is no such page.
func (p Pages) Title(n int) string {
	if n < 1 || n > len(p.starts) {
		return ""
	}
	first, last := p.starts[n-1].line, p.lines
	if n < len(p.starts) {
		last = p.starts[n].line
		if !p.starts[n].continued {
			last--
		}
	}
	lines := "line " + grouped(first)
	if last > first {
		lines = "lines " + grouped(first) + "–" + grouped(last)
	}
	return fmt.Sprintf("page %s of %s, %s of %s, %s", grouped(n), grouped(len(p.starts)), lines, grouped(p.lines), counted(p.bytes, "byte"))
}

// lineCount is one more than there are newlines.
func lineCount(s string) int { return strings.Count(s, "\n") + 1 }
