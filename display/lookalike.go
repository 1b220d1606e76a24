package display

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// mostNamed is how many words a warning names; the rest are counted.
const mostNamed = 3

// Lookalikes warns of text made to look like other text, a sentence each, in safe
// text: words that mix letters of several scripts, such as "раypal.com" with a
// Cyrillic р, and signs that look like those paths, hosts and commands are made
// of, such as U+2215 for "/". Scripts that are written together (Japanese, Chinese
// and Korean, with Latin) do not count as mixed. A word in one script alone is
// never named, whatever it looks like. Nil when there is nothing to say.
func Lookalikes(s string) []string {
	if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0 {
		return nil
	}
	return append(mixedWords(s), falseSigns(s)...)
}

func mixedWords(s string) []string {
	known := scripts{}
	seen := map[string]bool{}
	var out []string
	unnamed := 0
	for name := range strings.FieldsFuncSeq(s, func(r rune) bool { return !strings.ContainsRune(".-_", r) && !inWord(r) }) {
		for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return !inWord(r) }) {
			mix := known.mixed(word)
			if mix == "" || seen[name] {
				continue
			}
			seen[name] = true
			if len(out) == mostNamed {
				unnamed++
				continue
			}
			out = append(out, fmt.Sprintf(`"%s" mixes %s letters`, Preview(name, 60), mix))
		}
	}
	if unnamed > 0 {
		out = append(out, counted(unnamed, "more word")+" with letters of several scripts")
	}
	return out
}

// inWord includes invisible characters, which would otherwise divide a word into
// parts of one script each.
func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.In(r, unicode.M, unicode.Cf)
}

// scripts remembers what was looked up, since finding a rare script takes long.
type scripts map[rune]string

// together are scripts that people write in one word, as in UTS 39 ("highly
// restrictive").
var together = [][]string{
	{"Han", "Hiragana", "Katakana", "Latin"},
	{"Han", "Hiragana", "Katakana", "fullwidth"},
	{"Bopomofo", "Han", "Latin"},
	{"Bopomofo", "Han", "fullwidth"},
	{"Han", "Hangul", "Latin"},
	{"Han", "Hangul", "fullwidth"},
}

// mixed is "Cyrillic and Latin" when the letters of a word are of scripts that do
// not belong together, else "".
func (k scripts) mixed(word string) string {
	var in []string
	for _, r := range word {
		if name := k.of(r); name != "" && !slices.Contains(in, name) {
			in = append(in, name)
		}
	}
	if len(in) < 2 || slices.ContainsFunc(together, func(set []string) bool { return subset(in, set) }) {
		return ""
	}
	slices.Sort(in)
	last := len(in) - 1
	return strings.Join(in[:last], ", ") + " and " + in[last]
}

func subset(part, whole []string) bool {
	return !slices.ContainsFunc(part, func(s string) bool { return !slices.Contains(whole, s) })
}

// of is the script of a letter, and "" for what is written with any. Letters that
// Unicode made for symbols or for another width are scripts of their own here: they
// look like plain ones and are not.
func (k scripts) of(r rune) string {
	switch {
	case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
		return "Latin"
	case r < utf8.RuneSelf || !unicode.IsLetter(r) && !unicode.Is(unicode.Nl, r):
		return ""
	case 0xFF21 <= r && r <= 0xFF5A:
		return "fullwidth"
	case 0x1D400 <= r && r <= 0x1D7FF:
		return "mathematical"
	case 0x2100 <= r && r <= 0x218F:
		return "letterlike"
	}
	name, ok := k[r]
	if !ok {
		name = scriptOf(r)
		k[r] = name
	}
	return name
}

func scriptOf(r rune) string {
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			if name == "Common" || name == "Inherited" {
				return ""
			}
			return strings.ReplaceAll(name, "_", " ")
		}
	}
	return ""
}
