package egress

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"net"
	"time"
)

// beginWithin is how long a client may take to say what it wants, where clients speak
// first; silentFor is how long before the server is given the chance to, elsewhere.
const (
	beginWithin = 15 * time.Second
	silentFor   = 500 * time.Millisecond
)

// A kind is what a connection begins as.
type kind int

const (
	isNothing kind = iota
	isTLS
	isHTTP
	isOther
	isSilent // so far
)

// peeked is a connection of which something was looked at.
type peeked struct {
	net.Conn
	first   *bufio.Reader
	late    bool    // what comes first is still to be looked at, since it may not be TLS or HTTP
	opening opening // of that, what came so far
	refused bool    // it was
}

// kind looks at how a connection begins. What could be a request is taken for one, and
// read by a parser that is strict about it.
func (p *peeked) kind(wait time.Duration) kind {
	p.SetReadDeadline(time.Now().Add(wait))
	b, err := p.first.Peek(1)
	p.SetReadDeadline(time.Time{})
	switch {
	case isTimeout(err):
		return isSilent
	case err != nil:
		return isNothing
	case b[0] == 22:
		return isTLS
	case b[0] == 'S' && p.begins("SSH-"):
		return isOther
	case isText(b[0]):
		return isHTTP
	}
	return isOther
}

func isText(b byte) bool {
	return 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z' || b == '_' || b == '\r' || b == '\n' || b == ' ' || b == '\t'
}

// begins waits for as much as a text has, and compares.
func (p *peeked) begins(text string) bool {
	p.SetReadDeadline(time.Now().Add(beginWithin))
	b, err := p.first.Peek(len(text))
	p.SetReadDeadline(time.Time{})
	return err == nil && string(b) == text
}

// methods are how requests begin, whose host would have to be looked at.
var methods = [][]byte{[]byte("GET "), []byte("HEAD "), []byte("POST "), []byte("PUT "), []byte("PATCH "), []byte("DELETE "), []byte("OPTIONS "), []byte("TRACE "), []byte("CONNECT "), []byte("PRI ")}

var errLate = errors.New("it is TLS or HTTP after all")

// Read is of a connection that is handed over. One that is neither TLS nor HTTP at first
// does not become so later.
func (p *peeked) Read(b []byte) (int, error) {
	if p.late {
		return p.readLate(b)
	}
	if p.first.Buffered() > 0 {
		return p.first.Read(b)
	}
	return p.Conn.Read(b)
}

// readLate looks at what it reads.
func (p *peeked) readLate(b []byte) (int, error) {
	if !p.opening.begun {
		if other, err := p.other(); err != nil || !other {
			p.refused = err == nil
			return 0, cmp.Or(err, errLate)
		}
		p.opening.begun = true
	}
	n, err := p.first.Read(b)
	if p.opening.asks(b[:n]) {
		p.refused = true
		return 0, errLate
	}
	p.late = !p.opening.over
	return n, err
}

// mostHello2 is the first byte of the longest hello that a server of TLS takes in the way of
// SSL 2, which names nobody. Its third is 1.
const mostHello2 = 0x80 | 1<<14>>8 | 3

// other reads as much of a beginning as it takes to tell that it is neither TLS nor HTTP.
func (p *peeked) other() (bool, error) {
	for n := 1; ; n++ {
		head, err := p.first.Peek(n)
		if err != nil {
			return false, err
		}
		if b := head[0]; 20 <= b && b <= 24 || b == 0x80 || b == '\r' || b == '\n' {
			return false, nil
		} else if 0x80 < b && b <= mostHello2 {
			head, err = p.first.Peek(3)
			return err == nil && head[2] != 1, err
		}
		may := false
		for _, m := range methods {
			if len(head) == len(m) && bytes.Equal(head, m) {
				return false, nil
			}
			may = may || bytes.HasPrefix(m, head)
		}
		if !may {
			return true, nil
		}
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}
