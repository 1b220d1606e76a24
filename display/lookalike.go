package display

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// How many words a warning names, and how many more are told apart to be counted: a
// text can have a million.
const (
	mostNamed   = 3
	mostCounted = 1000
)

// Lookalikes warns of text made to look like other text, a sentence each, in safe
// text: words that mix letters of several scripts, such as "раypal.com" with a
// Cyrillic р, and signs that look like those paths, hosts and commands are made
// of, such as U+2215 for "/". Scripts that are written together (Japanese, Chinese
// and Korean, with Latin) do not count as mixed. A word in one script alone is
// never named, whatever it looks like. Nil when there is nothing to say.
func Lookalikes(s string) []string {
	if ascii(s) {
		return nil
	}
	w, f := words{text: s, from: outside}, signs{text: s}
	for at, r := range s {
		is := known().of[r]
		w.see(at, r, is)
		f.see(at, r, is)
	}
	return append(w.end(), f.end()...)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// words looks for words whose letters are of several scripts, and names what they stand
// in: a name goes on over ".-_", a word does not. It is shown each character in turn.
type words struct {
	text  string
	from  int               // where the name begins, or outside
	in    []uint8           // the scripts of the word
	mix   string            // of the first word of the name that mixes some
	mixes map[string]string // what was worked out before, by scripts
	seen  map[string]bool   // names that were told of
	more  bool              // there are others
	out   []string
}

const outside = -1

func (w *words) see(at int, r rune, is trait) {
	switch {
	case is&inWord != 0:
		if s := is.script(); s != 0 && !slices.Contains(w.in, s) {
			w.in = append(w.in, s)
		}
	case r == '.' || r == '-' || r == '_':
		w.endWord()
	default:
		w.endName(at)
		return
	}
	if w.from == outside {
		w.from = at
	}
}

func (w *words) endWord() {
	if len(w.in) > 1 && w.mix == "" {
		w.mix = w.mixed()
	}
	w.in = w.in[:0]
}

func (w *words) endName(at int) {
	w.endWord()
	if w.mix != "" {
		w.tell(w.text[w.from:at])
	}
	w.from, w.mix = outside, ""
}

func (w *words) tell(name string) {
	if w.seen[name] {
		return
	}
	if w.more = len(w.seen) == mostNamed+mostCounted; w.more {
		return
	}
	if w.seen == nil {
		w.seen = map[string]bool{}
	}
	w.seen[name] = true
	if len(w.seen) <= mostNamed {
		w.out = append(w.out, fmt.Sprintf(`"%s" mixes %s letters`, Preview(name, 60), w.mix))
	}
}

// end is the warnings, once all of the text was seen.
func (w *words) end() []string {
	w.endName(len(w.text))
	const what = " with letters of several scripts"
	switch unnamed := len(w.seen) - mostNamed; {
	case w.more:
		w.out = append(w.out, "more than "+counted(unnamed, "more word")+what)
	case unnamed > 0:
		w.out = append(w.out, counted(unnamed, "more word")+what)
	}
	return w.out
}

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

// mixed is "Cyrillic and Latin" when the letters of the word are of scripts that do not
// belong together, else "".
func (w *words) mixed() string {
	mix, ok := w.mixes[string(w.in)]
	if ok {
		return mix
	}
	var in []string
	for _, s := range w.in {
		in = append(in, known().scripts[s])
	}
	if !slices.ContainsFunc(together, func(set []string) bool { return subset(in, set) }) {
		slices.Sort(in)
		last := len(in) - 1
		mix = strings.Join(in[:last], ", ") + " and " + in[last]
	}
	if w.mixes == nil || len(w.mixes) == mostCounted {
		w.mixes = map[string]string{}
	}
	w.mixes[string(w.in)] = mix
	return mix
}

func subset(part, whole []string) bool {
	return !slices.ContainsFunc(part, func(s string) bool { return !slices.Contains(whole, s) })
}
