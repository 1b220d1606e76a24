package egress

import "strings"

// An opening is the first line of what was taken for neither TLS nor HTTP, followed while it
// is handed over. There are servers that pass over control characters before a request, and
// that take methods which nobody has heard of (!GET, SSH-2.0-x) and go on with the request
// behind them: then it is HTTP after all. It is told by how such a line ends, which comes
// before any server could have read the request.
type opening struct {
	begun bool
	at    stage
	same  int // letters of protocol that have just been there
	over  bool
}

type stage int

const (
	beforeMethod stage = iota
	inMethod
	afterMethod
)

const protocol = "http/"

// asks says whether b, which comes next, makes a request of it.
func (o *opening) asks(b []byte) bool {
	for _, c := range b {
		switch {
		case o.over:
			return false
		case o.at == beforeMethod && (c <= ' ' || 0x7f <= c && c < 0xa0):
		case o.at <= inMethod && isToken(c):
			o.at = inMethod
		case o.at == inMethod && (c == ' ' || c == '\t' || c == '\v' || c == '\f' || c == '\r'): // RFC 9112, 3: some take them all for spaces
			o.at = afterMethod
		case o.at == afterMethod && c != '\n':
			if o.follows(c) {
				return true
			}
		default:
			o.over = true
		}
	}
	return false
}

// follows says whether the protocol's name ends with a letter.
func (o *opening) follows(c byte) bool {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	if c != protocol[o.same] {
		o.same = 0 // none of its letters is the first again
	}
	if c == protocol[o.same] {
		o.same++
	}
	return o.same == len(protocol)
}

// isToken says whether a method may have a character (RFC 9110, 5.6.2).
func isToken(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0
}
