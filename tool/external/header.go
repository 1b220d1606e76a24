package external

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/writ-run/writ/egress"
)

// framing is what HTTP itself needs of a request, or what says where it came from or
// goes: nobody but the client writes these. A part of an answer may be a part of a credential
// in it, which nobody knows for one.
var framing = []string{
	"accept-encoding", "alt-used", "client-ip", "connection", "content-length", "expect", "forwarded", "front-end-https", "host", "http2-settings", "if-range", "keep-alive",
	"max-forwards", "proxy-connection", "range", "request-range", "te", "trailer", "transfer-encoding", "true-client-ip", "upgrade", "via", "x-client-ip", "x-cluster-client-ip", "x-host",
	"x-original-host", "x-original-url", "x-real-ip", "x-rewrite-url",
}

// credentials are headers that prove who sends a request, by themselves or as a part of
// their name. An agent's own are dropped: with them the same host would take it for
// another account.
var credentials = []string{"authorization", "cookie", "api-key", "apikey", "auth-token", "access-token", "private-token", "session-token", "security-token", "client-secret", "password", "x-auth", "x-amz-"}

// CheckHeader refuses what cannot be the name of a header that an operator has
// credentials in.
func CheckHeader(name string) error {
	if !token(name) {
		return errors.New("it is not the name of a header; write one such as X-Api-Key")
	}
	if slices.Contains(framing, egress.Folded(name)) || egress.Overrides(name) || strings.HasPrefix(egress.Folded(name), "x-forwarded-") {
		return errors.New("the header is the client's own and holds no credential; name another")
	}
	return nil
}

const (
	maxHeaders = 32
	maxHeader  = 8 << 10
)

// headers is what an agent may send of what it wrote, and the names of what was
// dropped: the credentials, which are the connection's.
func (c *Connection) headers(given map[string]string) (kept http.Header, dropped []string, err error) {
	if len(given) > maxHeaders {
		return nil, nil, fmt.Errorf("there are more than %d", maxHeaders)
	}
	kept = http.Header{}
	for name, value := range given {
		switch low := egress.Folded(name); {
		case !token(name) || len(name) > 128:
			return nil, nil, errors.New("a name has letters, digits and -, at most 128")
		case len(value) > maxHeader || control(strings.ReplaceAll(value, "\t", "")) || strings.ContainsFunc(value, func(r rune) bool { return r > '~' }):
			return nil, nil, fmt.Errorf("the value of %s has a line break, a control character, what is not ASCII, or more than %d bytes", name, maxHeader)
		case c.credential(low):
			dropped = append(dropped, http.CanonicalHeaderKey(name))
		case slices.Contains(framing, low) || egress.Overrides(name) || strings.HasPrefix(low, "x-forwarded-") || strings.HasPrefix(low, "proxy-"):
			return nil, nil, fmt.Errorf("%s is not for agents to write; leave it out", name)
		case kept.Get(name) != "":
			return nil, nil, fmt.Errorf("%s is there twice, in other letters; write it once", name)
		default:
			kept.Set(name, value)
		}
	}
	slices.Sort(dropped)
	return kept, dropped, nil
}

// credential says whether a header, folded, proves who sends a request.
func (c *Connection) credential(low string) bool {
	return slices.ContainsFunc(credentials, func(part string) bool { return strings.Contains(low, part) }) || low == "token" || slices.Contains(c.Auth.headers(), low)
}

// token is the grammar of a header's name (RFC 9110, 5.6.2).
func token(s string) bool {
	return s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~") == ""
}
