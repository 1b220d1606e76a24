package display

import (
	"fmt"
	"strings"
	"unicode"
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

// falseSigns names each sign that imitates an ASCII one right after an ASCII
// character: in a path, a host or a command, and not in Chinese prose, where a
// fullwidth colon is a colon.
func falseSigns(s string) []string {
	var out []string
	seen := map[rune]bool{}
	var before rune
	for i, r := range s {
		sign, ok := imitated[r]
		if ok && '!' <= before && before <= '~' && !seen[r] {
			seen[r] = true
			out = append(out, fmt.Sprintf(`"%s" holds %U, which looks like "%c"`, Preview(around(s, i), 60), r, sign))
		}
		before = r
	}
	return out
}

// around is the part without spaces of s that position at lies in, from not far
// before it.
func around(s string, at int) string {
	from := strings.LastIndexFunc(s[:at], unicode.IsSpace) + 1
	for from < at && (s[from]&0xC0 == 0x80 || at-from > 24) {
		from++
	}
	part := s[from:]
	if end := strings.IndexFunc(part[at-from:], unicode.IsSpace); end >= 0 {
		part = part[:at-from+end]
	}
	return part
}
