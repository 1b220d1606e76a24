package web

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/egress"
)

// userAgent says who asks.
const userAgent = "writ"

// notTheirs are headers that say where a request goes, how it is carried, or that it is
// another one than it looks like. They are made by what sends it, or by nobody.
var notTheirs = map[string]string{
	"host":              "the URL says the host",
	"content-length":    "it follows from the body",
	"accept-encoding":   "what comes compressed is unpacked for you",
	"connection":        "it is for one connection",
	"keep-alive":        "it is for one connection",
	"te":                "it is for one connection",
	"trailer":           "it is for one connection",
	"transfer-encoding": "it is for one connection",
	"upgrade":           "it is for one connection",
	"http2-settings":    "it is for one connection",
	"expect":            "it is for one connection",
}

// headerOf reads the headers that an agent wants to send.
func headerOf(given map[string]string) (http.Header, error) {
	out := http.Header{"User-Agent": {userAgent}}
	seen := map[string]bool{}
	for name, value := range given {
		key := egress.Folded(name)
		if why := refuses(key, name, value); why != "" {
			return nil, failf("header %s: %s", display.Preview(name, 80), why)
		}
		if seen[key] {
			return nil, failf("header %s is given twice; give it once", display.Preview(name, 80))
		}
		seen[key] = true
		out.Set(name, value)
	}
	return out, nil
}

// refuses is why a header is not sent.
func refuses(key, name, value string) string {
	if name == "" || strings.Trim(name, tokenChars) != "" {
		return "a name has letters, digits and - alone"
	}
	if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
		return "the value has a line break or another control character; leave it out"
	}
	if why, ok := notTheirs[key]; ok {
		return fmt.Sprintf("it cannot be set: %s; leave it out", why)
	}
	if strings.HasPrefix(key, "proxy-") {
		return "it cannot be set: there is no proxy; leave it out"
	}
	if egress.Overrides(name) {
		return "it would make another request of it; name that method itself"
	}
	return ""
}

// tokenChars are those of a header's name (RFC 9110).
const tokenChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

// ownHeader is what goes along to a host that the agent did not name: nothing of what it
// gave but what it can take.
func ownHeader(h http.Header) http.Header {
	out := http.Header{}
	for _, name := range []string{"User-Agent", "Accept", "Accept-Language"} {
		if v := h.Values(name); v != nil {
			out[name] = v
		}
	}
	return out
}

// Bounds of what is shown of an answer's headers.
const (
	mostHeaders     = 60
	mostHeaderValue = 500
)

// headerText is the headers of an answer, a line each.
func headerText(h http.Header) string {
	var names []string
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	lines := 0
	for _, name := range names {
		for _, value := range h[name] {
			if lines++; lines > mostHeaders {
				continue
			}
			fmt.Fprintf(&b, "%s: %s\n", strings.ToLower(display.Preview(name, 100)), display.Preview(value, mostHeaderValue))
		}
	}
	if lines > mostHeaders {
		fmt.Fprintf(&b, "[cut: %d more headers]\n", lines-mostHeaders)
	}
	return b.String()
}
