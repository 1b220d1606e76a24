package disclose

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// words calls each with the words of s, at most so many: split where a letter or digit
// is not followed by one and where camelCase begins a word, folded to one case, without
// the endings of plurals. Scripts that put no spaces between words are taken two
// characters at a time.
func words(s string, most int, each func(string)) {
	pair := false // the character before is in a pair
	for i := 0; i < len(s) && most > 0; {
		r, size := utf8.DecodeRuneInString(s[i:])
		next, more := utf8.DecodeRuneInString(s[i+size:])
		switch {
		case dense(r) && dense(next):
			each(s[i : i+size+more])
			most--
		case dense(r) && !pair:
			each(s[i : i+size])
			most--
		case inWord(r) && !dense(r):
			size = wordEnd(s, i) - i
			each(singular(fold(beginning(s[i:i+size], 64))))
			most--
		}
		pair = dense(r)
		i += size
	}
}

// wordEnd is where the word that begins at i ends.
func wordEnd(s string, i int) int {
	before, size := utf8.DecodeRuneInString(s[i:])
	for i += size; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		after, _ := utf8.DecodeRuneInString(s[i+size:])
		if !inWord(r) || dense(r) || unicode.IsUpper(r) && (!unicode.IsUpper(before) || unicode.IsLower(after)) {
			return i
		}
		before = r
	}
	return i
}

func inWord(r rune) bool { return unicode.In(r, unicode.L, unicode.N, unicode.M) }

// dense reports whether r is of a script without spaces between words.
func dense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar)
}

// fold is one form of letters that differ by case alone.
func fold(s string) string {
	return strings.Map(func(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }, s)
}

// singular takes the ending of an English plural off, the same for those who write a
// description and those who search: what it makes need not be a word.
func singular(s string) string {
	switch {
	case len(s) < 4 || !strings.HasSuffix(s, "s") || strings.HasSuffix(s, "ss") || strings.HasSuffix(s, "us") || strings.HasSuffix(s, "is"):
		return s
	case strings.HasSuffix(s, "ies") && len(s) > 4:
		return s[:len(s)-3] + "y"
	case strings.HasSuffix(s, "sses") || strings.HasSuffix(s, "xes") || strings.HasSuffix(s, "ches") || strings.HasSuffix(s, "shes"):
		return s[:len(s)-2]
	}
	return s[:len(s)-1]
}
