package display

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// From here on a person is told: a text can be moved out of sight without any
// special character.
const (
	longLine   = 500 // characters
	longGap    = 40  // spaces before more text on a line
	blankLines = 10  // before more text
	mostKinds  = 5   // of hidden characters are listed
)

func keyWarnings(pointer string) []string {
	var out []string
	for _, warning := range append(hiddenIn(pointer, true), Lookalikes(pointer)...) {
		out = append(out, "key: "+warning)
	}
	return out
}

func textWarnings(s string) []string {
	out := append(hiddenIn(s, false), Lookalikes(s)...)
	return append(out, layout(s)...)
}

// hiddenIn says how many characters are spelled out and which.
func hiddenIn(s string, oneLine bool) []string {
	r := reader{text: s, oneLine: oneLine, marks: noBase}
	times := map[string]int{}
	var kinds []string // in the order of their first
	total, imitations := 0, 0
	for r.at < len(s) {
		from := r.at
		if !r.next() {
			continue
		}
		char := s[from:r.at]
		if char == "<" {
			imitations++
			continue
		}
		if total++; times[char] == 0 {
			kinds = append(kinds, char)
		}
		times[char]++
	}
	var out []string
	if total > 0 {
		out = append(out, counted(total, "hidden character")+", spelled out: "+listed(kinds, times))
	}
	if imitations > 0 {
		out = append(out, counted(imitations, "place")+` written like a spelled-out character but plain text, shown with <U+003C> for "<"`)
	}
	return out
}

// listed is "<U+202E> (reorders text) 2 times, <0xFF> (not UTF-8)".
func listed(kinds []string, times map[string]int) string {
	var said []string
	for _, char := range kinds[:min(len(kinds), mostKinds)] {
		what := "not UTF-8"
		if r, size := utf8.DecodeRuneInString(char); r != utf8.RuneError || size > 1 {
			what = nature(r)
		}
		one := fmt.Sprintf("%s (%s)", spell(nil, char), what)
		if n := times[char]; n > 1 {
			one += " " + counted(n, "time")
		}
		said = append(said, one)
	}
	if more := len(kinds) - mostKinds; more > 0 {
		said = append(said, counted(more, "other kind"))
	}
	return strings.Join(said, ", ")
}

// layout warns of what the shape of a text can hide. Of each kind it names the
// first line and counts the rest.
func layout(s string) []string {
	var long, gap, trailing, blank, mixed lines
	number, empty, wide := 0, 0, strings.Repeat(" ", longGap)
	for line := range strings.SplitSeq(s, "\n") {
		number++
		line = strings.TrimSuffix(line, "\r")
		text := strings.TrimRight(line, " \t")
		long.note(number, len(line) > longLine && utf8.RuneCountInString(line) > longLine)
		trailing.note(number, text != line)
		gap.note(number, strings.Contains(strings.ReplaceAll(text, "\t", "        "), wide))
		mixed.note(number, bothDirections(text))
		if text == "" {
			empty++
			continue
		}
		blank.note(number, empty >= blankLines)
		empty = 0
	}
	var out []string
	for _, kind := range []struct {
		found lines
		what  string
	}{
		{trailing, "spaces at the end"},
		{long, fmt.Sprintf("more than %d characters long", longLine)},
		{gap, fmt.Sprintf("text after %d spaces or more", longGap)},
		{blank, fmt.Sprintf("text after %d empty lines or more", blankLines)},
		{mixed, "right-to-left letters beside others: the order shown may not be the order in the text"},
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

// bothDirections reports whether a line has letters of a right-to-left script and
// letters or digits that go the other way: a terminal then moves the parts, and
// the signs between them, around.
func bothDirections(line string) bool {
	rightToLeft, other := false, false
	for _, r := range line {
		switch {
		case r >= 0x590 && unicode.In(r, unicode.Hebrew, unicode.Arabic, unicode.Syriac, unicode.Thaana, unicode.Nko, unicode.Adlam, unicode.Mandaic, unicode.Samaritan):
			rightToLeft = true
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			other = true
		}
		if rightToLeft && other {
			return true
		}
	}
	return false
}
