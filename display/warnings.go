package display

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// mostKinds of hidden characters are listed.
const mostKinds = 5

func keyWarnings(pointer string) []string {
	k := kinds{}
	for r := (reader{text: pointer, oneLine: true, marks: noBase}); r.at < len(pointer); {
		from := r.at
		if r.next() {
			k.see(pointer[from:r.at], r.char)
		}
	}
	var out []string
	for _, warning := range append(k.end(), Lookalikes(pointer)...) {
		out = append(out, "key: "+warning)
	}
	return out
}

// kinds counts the characters that are spelled out. It is shown each in turn.
type kinds struct {
	first      [mostKinds]kind // in the order of their first
	others     *seenRunes
	total      int
	different  int
	imitations int
}

type kind struct {
	char  string
	times int
}

// seenRunes has a bit for each character and, after those, each byte that is not UTF-8:
// a text can have a million different ones.
type seenRunes [(utf8.MaxRune+1+256)/64 + 1]uint64

func (k *kinds) see(char string, r rune) {
	if char == "<" {
		k.imitations++
		return
	}
	k.total++
	for i := range min(k.different, mostKinds) {
		if k.first[i].char == char {
			k.first[i].times++
			return
		}
	}
	if k.different < mostKinds {
		k.first[k.different] = kind{char, 1}
		k.different++
		return
	}
	if r == utf8.RuneError && len(char) == 1 {
		r = utf8.MaxRune + 1 + rune(char[0])
	}
	if k.others == nil {
		k.others = new(seenRunes)
	}
	if bit := uint64(1) << (r % 64); k.others[r/64]&bit == 0 {
		k.others[r/64] |= bit
		k.different++
	}
}

// end is how many characters are spelled out and which.
func (k *kinds) end() []string {
	var out []string
	if k.total > 0 {
		out = append(out, counted(k.total, "hidden character")+", spelled out: "+k.listed())
	}
	if k.imitations > 0 {
		out = append(out, counted(k.imitations, "place")+` written like a spelled-out character but plain text, shown with <U+003C> for "<"`)
	}
	return out
}

// listed is "<U+202E> (reorders text) 2 times, <0xFF> (not UTF-8)".
func (k *kinds) listed() string {
	var said []string
	for _, one := range k.first[:min(k.different, mostKinds)] {
		what := "not UTF-8"
		if r, size := utf8.DecodeRuneInString(one.char); r != utf8.RuneError || size > 1 {
			what = nature(r)
		}
		text := fmt.Sprintf("%s (%s)", spell(nil, one.char), what)
		if one.times > 1 {
			text += " " + counted(one.times, "time")
		}
		said = append(said, text)
	}
	if more := k.different - mostKinds; more > 0 {
		said = append(said, counted(more, "other kind"))
	}
	return strings.Join(said, ", ")
}
