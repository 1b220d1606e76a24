package display

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// A unit is a piece of safe text that stays together on one row: an escape, or a
// character with its marks.
type unit struct {
	size    int // in bytes of the safe text
	columns int // at most, on a terminal
	stands  int // for so many bytes of the text that was made safe
}

// mostColumns of one unit.
const mostColumns = 12

func firstUnit(safe string) unit {
	if size, stands := escape(safe); size > 0 {
		return unit{size, size, stands}
	}
	r, size := utf8.DecodeRuneInString(safe)
	u := unit{size, columns(r), size}
	for u.size < len(safe) {
		r, size := utf8.DecodeRuneInString(safe[u.size:])
		wider := u.columns + columns(r)
		if markOf(r) == noMark || wider > mostColumns {
			break
		}
		u.size, u.columns = u.size+size, wider
	}
	u.stands = u.size
	return u
}

// columns is the most that a terminal gives a character. Which ones are two wide
// differs between terminals, so all that may be are counted as such; a row is then
// shorter than it could be, never longer.
func columns(r rune) int {
	switch {
	case r == '\t':
		return 8
	case r < 0x300:
		return 1
	case markOf(r) == stacked && !conjoins(r):
		return 0
	case r < 0x1100:
		return 1
	}
	return 2
}

// escape is the size of the escape that a safe text begins with, and for how many
// bytes it stands; 0 when it begins with something else.
func escape(safe string) (size, stands int) {
	if !strings.HasPrefix(safe, "<U+") && !strings.HasPrefix(safe, "<0x") {
		return 0, 0
	}
	end := strings.IndexByte(safe[:min(len(safe), len("<U+10FFFF>"))], '>')
	if end < 0 {
		return 0, 0
	}
	digits := safe[3:end]
	n, err := strconv.ParseUint(digits, 16, 32)
	switch {
	case err != nil || digits != strings.ToUpper(digits):
		return 0, 0
	case safe[1] == '0' && len(digits) == 2:
		return end + 1, 1
	case safe[1] == 'U' && len(digits) >= 4 && utf8.RuneLen(rune(n)) > 0:
		return end + 1, utf8.RuneLen(rune(n))
	}
	return 0, 0
}

// Size is "12,345 bytes".
func Size(bytes int64) string { return counted(int(bytes), "byte") }

// counted is "1 byte", "12,345 bytes".
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return grouped(n) + " " + what + "s"
}

// grouped is a number that is not negative, its digits in threes.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
