package tool

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// mostServerName leaves room for a tool's own name in what model APIs take.
const mostServerName = 32

var serverName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z0-9][a-z0-9-]*(_[a-z0-9-]+)*$`) })

// CheckServerName refuses a name from which, or beside which, a tool's name could not
// be told: the first double underscore ends a server's name.
func CheckServerName(s string) error {
	switch {
	case len(s) > mostServerName:
		return fmt.Errorf("server name %q is longer than %d characters; shorten it", short(s), mostServerName)
	case !serverName().MatchString(s):
		return fmt.Errorf("server name %q: use a-z, 0-9, - and single _ between them, such as my_server", short(s))
	case s == "builtin" || strings.HasPrefix(s, "writ"):
		return fmt.Errorf("server name %q is writ's own; choose another", s)
	}
	return nil
}
