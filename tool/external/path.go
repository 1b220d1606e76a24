package external

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/writ-run/writ/egress"
	"github.com/writ-run/writ/policy"
)

// maxPath bounds path and query together.
const maxPath = 8 << 10

// address is the URL of a request: the connection's own scheme, host, port and prefix,
// and below it a path that every reader reads alike (R10).
func (c *Connection) address(path string) (*url.URL, error) {
	path, query, asks := strings.Cut(path, "?")
	decoded, err := checkPath(path)
	if err != nil {
		return nil, err
	}
	if err := checkQuery(query); err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(c.Paths, func(glob string) bool { return policy.Match(glob, decoded) }) {
		return nil, fmt.Errorf("connection %s does not go there; it goes to %s", c.Name, strings.Join(c.Paths, ", "))
	}
	text := c.Base + path
	if asks {
		text += "?" + query
	}
	u, err := url.Parse(text)
	base, baseErr := url.Parse(c.Base)
	if err != nil || baseErr != nil || u.Scheme != base.Scheme || u.Host != base.Host || u.User != nil || u.Fragment != "" || u.EscapedPath() != base.EscapedPath()+path {
		return nil, errors.New("it does not make an address below the connection's; write it plainly, as /v1/things?page=2")
	}
	return u, nil
}

// checkPath refuses whatever could mean another place to somebody: segments of dots in
// any spelling, separators that are encoded, empty segments. It returns the path decoded.
func checkPath(path string) (string, error) {
	switch {
	case !strings.HasPrefix(path, "/"):
		return "", errors.New("it begins with /, below the connection's address; scheme, host and port are the connection's")
	case len(path) > maxPath:
		return "", fmt.Errorf("it has more than %d bytes", maxPath)
	case !plain(path):
		return "", errors.New("it has a space, a control character or what is not ASCII; percent-encode that")
	case strings.ContainsAny(path, `\#`):
		return "", errors.New(`it has a backslash or #; leave them out`)
	case strings.Contains(path, "//"):
		return "", errors.New("it has an empty segment (//); write one /")
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return "", errors.New("it has a % without two hexadecimal digits after it; write %25")
	}
	if strings.Count(decoded, "/") != strings.Count(path, "/") || strings.ContainsRune(decoded, '\\') || control(decoded) {
		return "", errors.New("it has an encoded slash, backslash or control character; leave them out")
	}
	if again, err := url.PathUnescape(decoded); err == nil && again != decoded && (control(again) || strings.ContainsAny(strings.ReplaceAll(again, "/", ""), `\`) || strings.Count(again, "/") != strings.Count(path, "/") || dots(again)) {
		return "", errors.New("it has an encoded separator or dot segment within an encoding; leave it out")
	}
	if dots(decoded) {
		return "", errors.New("it has a dot segment (. or ..); write where it leads")
	}
	return decoded, nil
}

// dots reports a segment that some reader takes for . or .., such as "..;x", which
// servers with path parameters do.
func dots(path string) bool {
	for segment := range strings.SplitSeq(path, "/") {
		name, _, _ := strings.Cut(segment, ";")
		if name = strings.TrimSpace(name); name == "." || name == ".." {
			return true
		}
	}
	return false
}

// checkQuery refuses credentials of the agent's own: with them a request would go to
// another account at the same host, where whoever gave them reads what was sent.
func checkQuery(query string) error {
	if len(query) > maxPath || !plain(query) || strings.Contains(query, "#") {
		return fmt.Errorf("the query has more than %d bytes, a space, a control character, # or what is not ASCII; percent-encode it", maxPath)
	}
	for pair := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' }) {
		name, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(name)
		if err != nil {
			return errors.New("the query has a % without two hexadecimal digits after it; write %25")
		}
		if slices.Contains(credentialParameters, egress.Folded(name)) {
			return fmt.Errorf("the query has %s, which is a credential; the connection has its own, so leave it out", egress.Folded(name))
		}
	}
	return nil
}

var credentialParameters = []string{
	"access-token", "accesstoken", "api-key", "apikey", "auth-token", "authtoken", "client-secret", "oauth-token", "password", "private-token", "x-api-key", "token", "key",
}

func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

func control(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
