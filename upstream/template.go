package upstream

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/yosida95/uritemplate/v3"
)

// mostVariables may stand in one template. What tells its URIs grows with them, and of
// more than a thousand the library makes none, and panics.
const mostVariables = 32

// matcher makes what tells the URIs of a template (RFC 6570) from others. It is made
// once, when the template is read: made for each question, one server's templates would
// hold up whoever reads the resources of another.
func matcher(template string) (fits *regexp.Regexp, err error) {
	defer func() { // what a server sent must not end the program
		if p := recover(); p != nil {
			fits, err = nil, fmt.Errorf("its uriTemplate cannot be matched: %v", p)
		}
	}()
	if n := variables(template); n > mostVariables {
		return nil, fmt.Errorf("its uriTemplate has %d variables, and %d are taken", n, mostVariables)
	}
	t, err := uritemplate.New(template)
	if err != nil {
		return nil, fmt.Errorf("its uriTemplate does not read: %w", err)
	}
	return t.Regexp(), nil
}

// variables counts every mention of one, unlike the library, which counts names.
func variables(template string) int {
	n := 0
	for rest := template; ; {
		_, after, ok := strings.Cut(rest, "{")
		if !ok {
			return n
		}
		var list string
		list, rest, _ = strings.Cut(after, "}")
		n += 1 + strings.Count(list, ",")
	}
}

// Fits reports whether a URI is one of a template's. It is none of a resource's.
func (r Resource) Fits(uri string) bool {
	return r.fits != nil && len(uri) <= mostURI && r.fits.MatchString(uri)
}
