package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// imitated is which ASCII sign a character looks like.
var imitated = map[rune]byte{
	0x2044: '/', 0x2215: '/', 0x2571: '/', 0x29F8: '/', 0xFF0F: '/',
	0x2216: '\\', 0x29F5: '\\', 0xFE68: '\\', 0xFF3C: '\\',
	0x2024: '.', 0x3002: '.', 0xA4F8: '.', 0xFE52: '.', 0xFF0E: '.', 0xFF61: '.',
	0x02D0: ':', 0x02F8: ':', 0x2236: ':', 0xA789: ':', 0xFE55: ':', 0xFF1A: ':',
	0x037E: ';', 0xFE54: ';', 0xFF1B: ';',
	0x2010: '-', 0x2011: '-', 0x2212: '-', 0xFE63: '-', 0xFF0D: '-',
	0x2223: '|', 0x01C0: '|', 0xFF5C: '|',
	0x01C3: '!', 0xFF01: '!',
	0xFE6B: '@', 0xFF20: '@', 0xFE60: '&', 0xFF06: '&', 0xFE69: '$', 0xFF04: '$', 0xFF1D: '=',
}

// signs names each sign that imitates an ASCII one right after an ASCII character: in a
// path, a host or a command, and not in Chinese prose, where a fullwidth colon is a
// colon. It is shown each character in turn.
type signs struct {
	text   string
	before rune
	seen   map[rune]bool
	found  []falseSign // the last of them in a part whose end was not seen yet
	ended  int         // how many of them are in parts whose end was
}

type falseSign struct {
	sign  rune
	looks byte
	at    int
	end   int // of the part without spaces that it is in
}

func (f *signs) see(at int, r rune, is trait) {
	if is&space != 0 {
		f.endPart(at)
	}
	if r >= utf8.RuneSelf && '!' <= f.before && f.before <= '~' {
		if looks, ok := imitated[r]; ok && !f.seen[r] {
			if f.seen == nil {
				f.seen = map[rune]bool{}
			}
			f.seen[r] = true
			f.found = append(f.found, falseSign{sign: r, looks: looks, at: at})
		}
	}
	f.before = r
}

func (f *signs) endPart(at int) {
	for ; f.ended < len(f.found); f.ended++ {
		f.found[f.ended].end = at
	}
}

// end is the warnings, once all of the text was seen.
func (f *signs) end() []string {
	f.endPart(len(f.text))
	var out []string
	for _, s := range f.found {
		part := f.text[partBefore(f.text, s.at):s.end]
		out = append(out, fmt.Sprintf(`"%s" holds %U, which looks like "%c"`, Preview(part, 60), s.sign, s.looks))
	}
	return out
}

// partBefore is where the part without spaces that position at lies in begins, or not
// far before it.
func partBefore(s string, at int) int {
	from := max(0, at-24)
	for from < at && !utf8.RuneStart(s[from]) {
		from++
	}
	return from + lastSpace(s[from:at])
}

// lastSpace is where the last space of s ends; 0 when there is none.
func lastSpace(s string) int {
	at := strings.LastIndexFunc(s, unicode.IsSpace)
	if at < 0 {
		return 0
	}
	_, size := utf8.DecodeRuneInString(s[at:])
	return at + size
}
