// Package display makes text from agents and tools fit for a person to decide on:
// what is seen is what runs, with nothing hidden, reordered, cut silently or made
// to look like something else (I4, approval spoofing).
//
// A character that does not show, or that changes how others show, is spelled out
// as <U+202E>, a byte that is not UTF-8 as <0xFF>. Different texts are always
// shown differently: text that is itself written like such an escape has its "<"
// spelled out. Text made this way is called safe below.
//
// What stays: a right-to-left script is still laid out from right to left, and a
// word in one foreign script can look like another word. [Arguments] warns of the
// first and [Lookalikes] of mixtures; neither refuses anything. Safe text is for
// terminals and plain text, not for HTML or a shell. The package does no I/O, and
// all functions may be called concurrently.
package display

import (
	"strings"
	"unicode/utf8"
)

// mostMarks on one character is enough for every living script; more of them climb
// over the lines above and below.
const mostMarks = 4

// Visible is s as safe text. Newlines and tabs stay. Text that is safe as it is
// comes back without a copy; safe text must not be made safe again, which would
// spell out its escapes.
func Visible(s string) string { return show(s, false) }

// Line is s as safe text of one line: newlines and tabs are spelled out too.
func Line(s string) string { return show(s, true) }

func show(s string, oneLine bool) string {
	r := reader{text: s, oneLine: oneLine, marks: noBase}
	for r.at < len(s) {
		if from := r.at; r.next() {
			b := make([]byte, 0, len(s)+len(s)/8+32)
			b = spell(append(b, s[:from]...), s[from:r.at])
			return string(r.until(b, len(s)))
		}
	}
	return s
}

// A reader goes through a text character by character and says which ones cannot
// be shown as they are.
type reader struct {
	text    string
	at      int
	oneLine bool
	marks   int  // on the last character, or noBase
	char    rune // the last character; utf8.RuneError also for what is not UTF-8
	known   *traits
}

// noBase is when a mark would fall on something that is not part of the text: what
// a program printed before it, or one of our escapes.
const noBase = -1

// next goes one character on, or one byte where it is not UTF-8, and reports
// whether it has to be spelled out.
func (r *reader) next() bool {
	spelled := r.step()
	if spelled {
		r.marks = noBase
	}
	return spelled
}

func (r *reader) step() bool {
	if c := r.text[r.at]; c < utf8.RuneSelf {
		r.at++
		r.char, r.marks = rune(c), 0
		if c == '\n' || c == '\t' {
			r.marks = noBase
			return r.oneLine
		}
		return c < ' ' || c == 0x7F || c == '<' && likeEscape(r.text[r.at:])
	}
	c, size := utf8.DecodeRuneInString(r.text[r.at:])
	r.at += size
	r.char = c
	if r.known == nil {
		r.known = known()
	}
	is := r.known.of[c]
	if c == utf8.RuneError && size == 1 || is&graphic == 0 {
		return true
	}
	switch markIn(is) {
	case noMark:
		r.marks = 0
	case stacked:
		if r.marks == noBase || r.marks == mostMarks {
			return true
		}
		r.marks++
	case spacing:
		return r.marks == noBase
	}
	return false
}

// until appends what comes before end, as safe text.
func (r *reader) until(b []byte, end int) []byte {
	for r.at < end {
		from := r.at
		if r.next() {
			b = spell(b, r.text[from:r.at])
		} else {
			b = append(b, r.text[from:r.at]...)
		}
	}
	return b
}

// spell appends the escape of one character, or of one byte that is not UTF-8.
func spell(b []byte, char string) []byte {
	const digits = "0123456789ABCDEF"
	c, size := utf8.DecodeRuneInString(char)
	if c == utf8.RuneError && size == 1 {
		return append(b, '<', '0', 'x', digits[char[0]>>4], digits[char[0]&15], '>')
	}
	b = append(b, "<U+"...)
	for shift := 20; shift >= 0; shift -= 4 {
		if shift < 16 || c>>shift > 0 {
			b = append(b, digits[c>>shift&15])
		}
	}
	return append(b, '>')
}

// likeEscape reports whether a person would read "<" and what follows it as an
// escape. It is wider than what we write: <u+202e> and digits of another script
// would fool a reader as well.
func likeEscape(after string) bool {
	const longest = len("U+10FFFF>") + 3
	if len(after) < 3 || after[:2] != "U+" && after[:2] != "u+" && after[:2] != "0x" && after[:2] != "0X" {
		return false
	}
	end := strings.IndexAny(after[:min(len(after), longest)], "> \t\n<")
	return end > 2 && after[end] == '>'
}
