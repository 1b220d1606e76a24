package policy

import (
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Contains reports whether every absolute clean path that narrow matches is
// matched by wide. It proves or gives up: false means "could not be shown
// narrower", and whoever asks treats that as wider.
//
// The proof goes element by element, and holds for what the library matches, not
// for what a reader of the pattern expects: where the two differ (see the table
// in testdata/globs.txt) it gives up.
func Contains(wide, narrow string) bool {
	if wide == narrow {
		return true
	}
	if !plain(wide) || !plain(narrow) {
		return false
	}
	// The root is the one clean path with an empty element; below it a * of
	// narrow stands for at least one character.
	if Match(narrow, "/") && !Match(wide, "/") {
		return false
	}
	wides, ok1 := alternatives(wide, true)
	narrows, ok2 := alternatives(narrow, false)
	if !ok1 || !ok2 {
		return false
	}
	for _, n := range narrows {
		elements := strings.Split(n, "/")
		if !slices.ContainsFunc(wides, func(w string) bool { return pathContains(strings.Split(w, "/"), elements) }) {
			return false
		}
	}
	return true
}

// plain reports whether a glob is made of what is taken apart here: characters,
// *, ? and alternatives. Classes and escapes are not. Three stars in a row do not
// match what two or one do at the end of a path.
func plain(glob string) bool {
	return CheckGlob(glob) == nil && !strings.ContainsAny(glob, `[\`) && !strings.Contains(glob, "***")
}

// alternatives writes a glob out without braces. What narrow gives may match
// more than the glob; what wide gives must not, so that wide gives up where the
// library treats a brace otherwise than its alternatives written out: after a
// star, and where "/{**" ends the pattern and does not match the directory itself.
func alternatives(glob string, wide bool) ([]string, bool) {
	open := strings.IndexByte(glob, '{')
	if open < 0 {
		return []string{glob}, !strings.Contains(glob, "}") && path.Clean(glob) == glob
	}
	before := glob[:open]
	if wide && strings.HasSuffix(before, "*") {
		return nil, false
	}
	parts, after, ok := group(glob[open:])
	if !ok {
		return nil, false
	}
	var out []string
	for _, part := range parts {
		more, ok := alternatives(before+part+after, wide)
		if !ok || wide && strings.HasSuffix(before, "/") && slices.Contains(more, before+"**") {
			return nil, false
		}
		out = append(out, more...)
	}
	return out, true
}

// group splits what begins with a brace into its alternatives and what follows.
func group(s string) (parts []string, after string, ok bool) {
	depth, start := 0, 1
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 1 && s[i] == ',' || depth == 0 {
			parts = append(parts, s[start:i])
			start = i + 1
		}
		if depth == 0 {
			return parts, s[i+1:], true
		}
	}
	return nil, "", false
}

// pathContains compares by elements: ** of wide absorbs any number of elements,
// ** included, and ** of narrow is absorbed by nothing else. The table makes it
// quadratic; choosing at each ** would be exponential.
func pathContains(wide, narrow []string) bool {
	if n := len(wide); n > 1 && wide[n-1] == "**" && wide[n-2] == "**" {
		return false // "/a/**/**" does not match /a
	}
	return absorb(len(wide), len(narrow), func(i int) bool { return wide[i] == "**" }, func(i, j int) bool {
		if narrow[j] == "**" {
			return false
		}
		w := wide[i]
		// "/a*/**" does not match /a: where narrow may end here, a star before
		// the last ** has to stand for something.
		if i+2 == len(wide) && wide[i+1] == "**" && w != "*" && strings.HasSuffix(w, "*") && onlyStars(narrow[j+1:]) {
			w = strings.TrimRight(w, "*") + "?*"
		}
		return elementContains(w, narrow[j])
	})
}

func onlyStars(elements []string) bool {
	return !slices.ContainsFunc(elements, func(e string) bool { return e != "**" })
}

// elementContains compares two elements of characters, * and ?, where ** inside
// a longer element means what * means. A * of narrow is absorbed by a * of wide
// only. ? stands for one character; a byte of a longer one is not one.
func elementContains(wide, narrow string) bool {
	return absorb(len(wide), len(narrow), func(i int) bool { return wide[i] == '*' }, func(i, j int) bool {
		if wide[i] == '?' {
			return narrow[j] != '*' && narrow[j] < utf8.RuneSelf
		}
		return narrow[j] != '*' && narrow[j] != '?' && wide[i] == narrow[j]
	})
}

// absorb reports whether n steps of narrow are taken up by w steps of wide, of
// which a star takes any number and every other exactly one that it covers.
func absorb(w, n int, star func(i int) bool, covers func(i, j int) bool) bool {
	can := make([]bool, n+1) // whether wide[i+1:] takes up narrow[j:]
	can[n] = true
	for i := w - 1; i >= 0; i-- {
		next := make([]bool, n+1)
		for j := n; j >= 0; j-- {
			if star(i) {
				next[j] = can[j] || j < n && next[j+1]
			} else {
				next[j] = j < n && can[j+1] && covers(i, j)
			}
		}
		can = next
	}
	return can[0]
}
