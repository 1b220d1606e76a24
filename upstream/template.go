package upstream

import "github.com/yosida95/uritemplate/v3"

// Fits reports whether a URI is one of a template's (RFC 6570).
func Fits(template, uri string) bool {
	t, err := uritemplate.New(template)
	return err == nil && len(uri) <= mostURI && t.Regexp().MatchString(uri)
}
