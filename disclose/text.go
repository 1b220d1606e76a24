package disclose

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// oneLine is s with each run of white space as one space. What is invisible in other
// ways is left for package display.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// joined joins the parts that are not empty.
func joined(sep string, parts ...string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, sep)
}

// sentence is where the first sentence of s ends, or 0 when it does not. A full stop
// before a small letter is that of an abbreviation.
func sentence(s string) int {
	for i, r := range s {
		end := i + utf8.RuneLen(r)
		switch r {
		case '。', '！', '？':
			return end
		case '.', '!', '?':
			if end == len(s) {
				return end
			}
			if next, ok := strings.CutPrefix(s[end:], " "); ok {
				if after, _ := utf8.DecodeRuneInString(next); !unicode.IsLower(after) {
					return end
				}
			}
		}
	}
	return 0
}

// beginning is at most the first n bytes of s, without a part of a character.
func beginning(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for back := 0; back < utf8.UTFMax-1 && n > 0 && !utf8.RuneStart(s[n]); back++ {
		n--
	}
	return s[:n]
}

// cut is s, or where it is more than so many tokens the beginning of it with "…". It
// cuts between words where there are any.
func cut(s string, tokens int) string {
	var c counter
	end := 0 // of what fits together with "…"
	for i := 0; i < len(s); {
		i = c.piece(s, i)
		if c.tokens() <= tokens-3 {
			end = i
		}
		if c.tokens() > tokens {
			// In one long word the bytes are counted: none is more than a token.
			return strings.TrimSpace(beginning(s, max(end, tokens/2))) + "…"
		}
	}
	return s
}
