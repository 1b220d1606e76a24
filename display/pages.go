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

// Pages is a safe text in pages that fit on a screen. Each row begins with a
// margin that the text cannot reach, so it cannot imitate one: the line's number
// and "│ ", or "↪ " where the row goes on with the line of the row before. A line
// that is too long is continued, never cut. The zero value has no pages.
type Pages struct {
	text    string
	starts  []place // of the pages
	rows    int     // on a page
	columns int     // of text in a row
	digits  int     // of the highest line number
	lines   int
	bytes   int
}

// A place is where a row begins.
type place struct {
	at        int
	line      int // its number, from 1
	continued bool
}

// Paginate divides a safe text into pages of so many rows, each at most width
// columns wide with its margin. A page of less than one row or a row with less
// than 16 columns of text cannot be: those are then taken. An empty text is one
// page, and a newline at the end shows as an empty line after it.
func Paginate(safe string, rows, width int) Pages {
	p := Pages{text: safe, rows: max(rows, leastRows), lines: lineCount(safe)}
	p.digits = len(strconv.Itoa(p.lines))
	p.columns = max(width-p.digits-marginColumns, leastText)
	at, more := place{line: 1}, true
	for n := 0; more; n++ {
		if n%p.rows == 0 {
			p.starts = append(p.starts, at)
		}
		var stands int
		_, stands, at, more = p.row(at)
		p.bytes += stands
	}
	return p
}

// row is the text of the row that begins at from, for how many bytes it and its
// newline stand, and where the next row begins, if there is one.
func (p *Pages) row(from place) (text string, stands int, next place, more bool) {
	used := 0
	for at := from.at; at < len(p.text); {
		if p.text[at] == '\n' {
			return p.text[from.at:at], stands + 1, place{at + 1, from.line + 1, false}, true
		}
		u := firstUnit(p.text[at:])
		if used += u.columns; used > p.columns {
			return p.text[from.at:at], stands, place{at, from.line, true}, true
		}
		at, stands = at+u.size, stands+u.stands
	}
	return p.text[from.at:], stands, place{}, false
}

// Count is how many pages there are.
func (p Pages) Count() int { return len(p.starts) }

// Page is the rows of page n, from 1, each ending in a newline; "" when there is
// no such page.
func (p Pages) Page(n int) string {
	if n < 1 || n > len(p.starts) {
		return ""
	}
	var b strings.Builder
	at, more := p.starts[n-1], true
	for i := 0; i < p.rows && more; i++ {
		var text string
		here := at
		text, _, at, more = p.row(at)
		if here.continued {
			fmt.Fprintf(&b, "%*s ↪ %s\n", p.digits, "", text)
		} else {
			fmt.Fprintf(&b, "%*d │ %s\n", p.digits, here.line, text)
		}
	}
	return b.String()
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
