package host

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/idna"
)

const (
	tooLong = "is longer than 253 bytes; shorten it"
	notIDNA = "is not in IDNA normal form; write plain ASCII or a valid A-label (xn--...)"
)

// parseName reads a DNS name by RFC 1123 into lower-case A-labels.
func parseName(s string) (string, error) {
	if problem := badCharacter(s); problem != "" {
		return "", fail("host", s, problem)
	}
	// A trailing dot makes the same name a different string, so that it passes a
	// deny rule and still resolves.
	switch {
	case s[0] == '.':
		return "", fail("host", s, "starts with a dot; remove it")
	case s[len(s)-1] == '.':
		return "", fail("host", s, "ends with a dot; remove it")
	case strings.Contains(s, ".."):
		return "", fail("host", s, "has an empty label; remove the extra dot")
	}
	name, ok := toALabels(lowerASCII(s))
	if !ok {
		return "", fail("host", s, notIDNA)
	}
	if len(name) > 253 {
		return "", fail("host", s, tooLong)
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		switch {
		case len(label) > 63:
			return "", fail("host", s, "has a label longer than 63 bytes; shorten it")
		case label[0] == '-' || label[len(label)-1] == '-':
			return "", fail("host", s, "has a label that starts or ends with a hyphen; remove the hyphen")
		}
		last = label
	}
	// inet_aton and many URL parsers read such a name as an IPv4 address, so as a
	// name it would pass the rules and reach 127.0.0.1.
	if isNumber(last) {
		return "", fail("host", s, "ends in a number but is not an IPv4 address; write four decimal numbers without leading zeros, such as 192.0.2.1")
	}
	return name, nil
}

// badCharacter says which byte of s can be in no name. NUL ends the string for
// half of all parsers; @, #, ?, /, \ and % end or rewrite the host for the others.
func badCharacter(s string) string {
	if !utf8.ValidString(s) {
		return "is not valid UTF-8; write plain ASCII or a valid A-label (xn--...)"
	}
	for _, r := range s {
		switch {
		case r >= utf8.RuneSelf || r == '.' || r == '-':
		case '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
		case r < ' ' || r == 0x7f:
			return "has a control character; remove it"
		case r == ' ':
			return "has a space; remove it"
		default:
			return fmt.Sprintf("has %q; use letters, digits, hyphens and dots only", r)
		}
	}
	return ""
}

// lowerASCII leaves everything beyond ASCII alone: strings.ToLower would turn the
// Kelvin sign into the letter k.
func lowerASCII(s string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, s)
}

// toALabels turns each Unicode label into its A-label and checks each A-label.
//
// IDNA maps before it encodes, and the mapping is where names are smuggled: it
// turns U+3002 and full-width dots into dots and full-width digits into digits,
// and drops soft hyphens and zero-width characters. So a label must already be
// what the mapping makes of it: decoded again it has to equal what was written.
// And it has letters, marks and digits only: UTS 46 lets symbols through, among
// them U+2044, which looks like a slash. An A-label may hold them, since it looks
// like nothing else.
func toALabels(s string) (string, bool) {
	if !strings.HasPrefix(s, "xn--") && !strings.Contains(s, ".xn--") && isASCII(s) {
		return s, true
	}
	encoded, err := idna.Lookup.ToASCII(s)
	if err != nil {
		return "", false
	}
	decoded, err := idna.Lookup.ToUnicode(encoded)
	if err != nil {
		return "", false
	}
	written, a, u := strings.Split(s, "."), strings.Split(encoded, "."), strings.Split(decoded, ".")
	if len(a) != len(written) || len(u) != len(written) {
		return "", false
	}
	for i, label := range written {
		if strings.HasPrefix(label, "xn--") {
			if label != a[i] {
				return "", false
			}
		} else if label != u[i] || strings.ContainsFunc(label, isSymbol) {
			return "", false
		}
	}
	return encoded, isASCII(encoded)
}

func isASCII(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

func isSymbol(r rune) bool {
	return r >= utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r)
}

// isNumber reports whether a resolver could take the label for one part of an
// IPv4 address: digits only, or hexadecimal after 0x.
func isNumber(label string) bool {
	if hex, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(hex, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}
