package egress

import (
	"slices"
	"strings"
)

// Folded is the name of a header as the most lenient server reads it: those that hand
// headers on as variables take capitals for small letters, and some of them every character
// that is neither letter nor digit for the same one.
func Folded(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'A' <= r && r <= 'Z':
			return r + 'a' - 'A'
		case 'a' <= r && r <= 'z', '0' <= r && r <= '9':
			return r
		}
		return '-'
	}, name)
}

// Overrides says whether a header is one by which a request says that it is another one than
// its method. They have many names, in all of which that word is, or verb; the one of the
// question that browsers ask before they send something changes nothing.
func Overrides(name string) bool {
	folded := Folded(name)
	verb := slices.Contains(strings.FieldsFunc(folded, func(r rune) bool { return r == '-' }), "verb")
	return verb || strings.Contains(folded, "method") && folded != "access-control-request-method"
}
