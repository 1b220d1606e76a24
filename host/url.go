package host

import (
	"strings"
	"unicode"
)

// ParseURL gives the endpoint that an absolute http or https URL names; no port
// means 80 or 443.
//
// The host is cut out and read by the grammar of [Parse], not by net/url, so
// there is no second opinion on it. What URL parsers disagree about is refused
// wherever it stands: user information, backslashes, control characters, spaces
// and broken percent escapes. Whatever is accepted, net/url reads the same way.
func ParseURL(s string) (Endpoint, error) {
	if strings.ContainsFunc(s, func(r rune) bool { return r == ' ' || unicode.IsControl(r) }) {
		return Endpoint{}, fail("URL", s, "has a control character or a space; percent-encode it")
	}
	// Browsers read \ as /, others as part of the host: http://evil\@allowed.
	if strings.Contains(s, `\`) {
		return Endpoint{}, fail("URL", s, "has a backslash; write a slash or %5C")
	}
	scheme, rest, _ := strings.Cut(s, "://")
	port := uint16(0)
	switch lowerASCII(scheme) {
	case "http":
		port = 80
	case "https":
		port = 443
	}
	if port == 0 || !strings.Contains(s, "://") {
		return Endpoint{}, fail("URL", s, "does not start with http:// or https://; write one of them")
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	// http://allowed@evil is evil. The part before the @ may be a password, so the
	// error leaves it out (I7).
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		return Endpoint{}, fail("URL with host", authority[at+1:], "has user information before the host; remove everything up to the @")
	}
	if authority == "" {
		return Endpoint{}, fail("URL", s, "has no host; write one, such as https://example.com/")
	}
	endpoint, err := parseEndpoint(authority, port)
	if err != nil {
		return Endpoint{}, err
	}
	if badEscape(rest[len(authority):]) {
		return Endpoint{}, fail("URL", s, "has a % without two hexadecimal digits after it; write %25")
	}
	return endpoint, nil
}

func badEscape(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			continue
		}
		if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
			return true
		}
	}
	return false
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
