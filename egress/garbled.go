package egress

import (
	"crypto/tls"
	"net"
	"net/http"
	"sync/atomic"
)

// notRead is the detail of a connection on which something came that is no request.
const notRead = "it has a request that cannot be read"

// garbled serves the requests of one connection until it ends, and says whether one began there
// that never reached the handler. Such are answered (400, 501) by the server itself, which
// tells nobody; of HTTP/2 they are not noticed here either.
func garbled(s *http.Server, c net.Conn, ends *ending) bool {
	var begun atomic.Bool // and not yet handled
	own := &overheard{Conn: c}
	handler := s.Handler
	s.Handler = http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) {
		begun.Store(false)
		own.handled.Store(true)
		handler.ServeHTTP(rw, req)
	})
	s.ConnState = func(_ net.Conn, now http.ConnState) {
		if now == http.StateActive || now == http.StateIdle { // HTTP/2 is both before anything is asked
			begun.Store(now == http.StateActive)
		}
		if now == http.StateIdle { // and the answer was sent
			own.handled.Store(false)
		}
	}
	if t, ok := c.(*tls.Conn); !ok || t.ConnectionState().NegotiatedProtocol != "h2" { // which the server has to see, and says things between requests
		c = own
	}
	s.Serve(&single{conn: c, ends: ends}) // it ends with its one connection
	return begun.Load() || own.said.Load()
}

// overheard is a connection that notices what is said on it while no request is handled: of
// a request that came in one piece with the one before it, the server tells nothing else.
type overheard struct {
	net.Conn
	handled, said atomic.Bool
}

func (c *overheard) Write(b []byte) (int, error) {
	if !c.handled.Load() {
		c.said.Store(true)
	}
	return c.Conn.Write(b)
}

// CloseWrite is what the server does before it ends a connection on which more came, so that
// its answer is not lost with that.
func (c *overheard) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
