package seatbelt

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-run/writ"
)

// check refuses a path that a rule cannot be about.
func check(p string) error {
	control := strings.ContainsFunc(p, unicode.IsControl)
	if !path.IsAbs(p) || path.Clean(p) != p || control || !utf8.ValidString(p) {
		return writ.Fail(writ.SandboxUnavailable, fmt.Sprintf("sandbox_unavailable: driver seatbelt cannot name %q; use an absolute clean path without control characters", p), nil)
	}
	return nil
}

// quote is a string of the language: a quote or a backslash in it does not end or change
// it.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// literal is a regular expression that matches s alone.
func literal(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`.^$*+?()[]{}|\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// folded matches a name in any case.
func folded(name string) string {
	var b strings.Builder
	for _, r := range name {
		if lower, upper := unicode.ToLower(r), unicode.ToUpper(r); lower != upper {
			b.WriteString("[" + string(lower) + string(upper) + "]")
		} else {
			b.WriteString(literal(string(r)))
		}
	}
	return b.String()
}
