package approval

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/policy"
)

// matches holds one argument against its pattern: a path as it resolves, any other
// text as it is.
func matches(c writ.Call, name, pattern, text string) bool {
	for _, t := range c.Targets {
		if t.Pointer != "/"+name {
			continue
		}
		if t.Kind != writ.TargetPath {
			return t.Problem == "" && matchText(pattern, text)
		}
		if !filepath.IsAbs(pattern) {
			pattern = filepath.Join(c.Dir, pattern)
		}
		return t.Problem == "" && policy.Match(pattern, t.Path)
	}
	return matchText(pattern, text)
}

func checkPattern(pattern string, path bool) error {
	if path {
		return policy.CheckGlob(pattern)
	}
	switch {
	case strings.Contains(pattern, "**"):
		return fmt.Errorf("** is for paths; * stands for one word")
	case strings.Trim(pattern, "* ") == "":
		return fmt.Errorf("it would match anything; write out what does not vary, as in \"git log *\", where * is one word")
	case strings.Count(pattern, "*") > maxStars:
		return fmt.Errorf("it has more than %d *; write out what does not vary", maxStars)
	}
	return nil
}

// maxStars is how many words of a text may vary. Each costs a pass over every text that
// is held against the pattern, and agents write those.
const maxStars = 8

// matchText matches a text against a pattern in which * stands for one plain word:
// letters, digits and ._/:@%+=,- but no option, and nothing that a shell reads as more
// than a word. "git log *" covers "git log main", not "git log --output=x" and not
// "git log x; rm y".
//
// It goes once over the text for each * and keeps every place that the pattern can have
// come to, instead of trying one after the other: that takes time without end when a
// text is made for it.
func matchText(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	last := len(parts) - 1
	if last == 0 {
		return pattern == text
	}
	end := len(text) - len(parts[last])
	if end < len(parts[0]) || !strings.HasPrefix(text, parts[0]) || !strings.HasSuffix(text, parts[last]) {
		return false
	}
	at, next := make([]bool, end+1), make([]bool, end+1)
	at[len(parts[0])] = true
	for n, before := range parts[:last] {
		if n > 0 {
			literal(next, at, text[:end], before)
			at, next = next, at
		}
		word(at, text[:end], before)
	}
	return at[end]
}

// word turns the places where a word can begin into those where it can end. Where it
// begins a word of the text, and does not go on with what is before it, it is neither an
// option nor a file of options nor an assignment.
func word(at []bool, text, before string) {
	whole := before == "" || !plain(before[len(before)-1])
	within := false
	for i := range at {
		begins := at[i]
		at[i] = within
		if i == len(text) {
			return
		}
		c := text[i]
		within = (within || begins && (!whole || strings.IndexByte(":@%+=,-", c) < 0)) && plain(c) && (!whole || c != '=')
	}
}

// literal sets the places that a literal part of a pattern leads to, from those that it
// can begin at. It finds every place where the part stands in one pass (Knuth, Morris and
// Pratt).
func literal(next, at []bool, text, part string) {
	if part == "" {
		copy(next, at)
		return
	}
	falls := make([]int, len(part)+1) // by how much of the part stood there: how much still does where it does not go on
	falls[0] = -1
	for i, stood := 0, -1; i < len(part); i++ {
		for stood >= 0 && part[i] != part[stood] {
			stood = falls[stood]
		}
		stood++
		falls[i+1] = stood
	}
	next[0] = false
	stands := 0
	for i := range len(text) {
		if stands == len(part) {
			stands = falls[stands]
		}
		for stands >= 0 && text[i] != part[stands] {
			stands = falls[stands]
		}
		stands++
		next[i+1] = stands == len(part) && at[i+1-len(part)]
	}
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._/:@%+=,-", c) >= 0
}
