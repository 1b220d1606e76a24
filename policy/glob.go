package policy

import (
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Match reports whether an absolute clean path matches a glob. The commonest
// shape, a literal directory with all below, needs no matcher.
func Match(glob, p string) bool {
	if dir, ok := strings.CutSuffix(glob, "/**"); ok && !strings.ContainsAny(dir, `*?[{\`) {
		return Below(p, dir)
	}
	ok, err := doublestar.Match(glob, p)
	return ok && err == nil
}

// Below reports whether p is dir or lies below it; both absolute and clean.
// The root is written "" or "/".
func Below(p, dir string) bool {
	dir = strings.TrimSuffix(dir, "/")
	return strings.HasPrefix(p, dir) && (len(p) == len(dir) || p[len(dir)] == '/')
}

// Contains reports whether every path that narrow matches is matched by wide. It
// proves or gives up: false means "could not be shown narrower", and whoever asks
// treats that as wider.
func Contains(wide, narrow string) bool {
	if wide == narrow {
		return true
	}
	wides, ok1 := alternatives(wide)
	narrows, ok2 := alternatives(narrow)
	if !ok1 || !ok2 {
		return false
	}
	for _, n := range narrows {
		if !containedInOne(wides, n) {
			return false
		}
	}
	return true
}

func containedInOne(wides []string, narrow string) bool {
	n := strings.Split(narrow, "/")
	for _, w := range wides {
		if segmentsContain(strings.Split(w, "/"), n) {
			return true
		}
	}
	return false
}

// maxAlternatives bounds brace expansion: {a,b}{a,b}… doubles with each pair.
const maxAlternatives = 64

// alternatives expands braces, so that what follows deals with *, ? and **
// only. Character classes and escapes are not taken apart.
func alternatives(glob string) ([]string, bool) {
	if strings.ContainsAny(glob, `[\`) {
		return nil, false
	}
	open := strings.IndexByte(glob, '{')
	if open < 0 {
		return []string{glob}, !strings.ContainsRune(glob, '}')
	}
	depth, start := 0, open+1
	var parts []string
	for i := open; i < len(glob); i++ {
		switch glob[i] {
		case '{':
			depth++
		case '}':
			depth--
		}
		if depth == 1 && glob[i] == ',' || depth == 0 {
			parts = append(parts, glob[start:i])
			start = i + 1
		}
		if depth == 0 {
			return expand(glob[:open], parts, glob[i+1:])
		}
	}
	return nil, false
}

func expand(before string, parts []string, after string) ([]string, bool) {
	var out []string
	for _, part := range parts {
		more, ok := alternatives(before + part + after)
		if !ok || len(out)+len(more) > maxAlternatives {
			return nil, false
		}
		out = append(out, more...)
	}
	return out, true
}

func segmentsContain(wide, narrow []string) bool {
	if len(wide) == 0 {
		return len(narrow) == 0
	}
	if wide[0] == "**" {
		return segmentsContain(wide[1:], narrow) || len(narrow) > 0 && segmentsContain(wide, narrow[1:])
	}
	if len(narrow) == 0 || narrow[0] == "**" {
		return false
	}
	return segmentContains(wide[0], narrow[0]) && segmentsContain(wide[1:], narrow[1:])
}

// segmentContains compares two segments of literals, * and ?, where "**" inside
// a longer segment means what * means: each step of narrow must be absorbed by
// wide, and a * of narrow only by a * of wide.
func segmentContains(wide, narrow string) bool {
	if wide == "" {
		return narrow == ""
	}
	if wide[0] == '*' {
		return segmentContains(wide[1:], narrow) || narrow != "" && segmentContains(wide, narrow[1:])
	}
	if narrow == "" || narrow[0] == '*' {
		return false
	}
	if wide[0] == '?' {
		// ? stands for one character; a byte of a longer one is not one.
		return narrow[0] < 0x80 && segmentContains(wide[1:], narrow[1:])
	}
	return wide[0] == narrow[0] && segmentContains(wide[1:], narrow[1:])
}
