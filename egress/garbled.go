package egress

import (
	"net"
	"net/http"
	"sync/atomic"
)

// notRead is the detail of a connection on which something came that is no request.
const notRead = "it has a request that cannot be read"

// garbled serves requests until their connection ends, and says whether one began there that
// never reached the handler. Such are answered (400, 501) by the server itself, which tells
// nobody; one that came in a piece with the request before it is not noticed here either, nor
// is one of HTTP/2.
func garbled(s *http.Server, from net.Listener) bool {
	var begun atomic.Bool // and not yet handled
	handler := s.Handler
	s.Handler = http.HandlerFunc(func(rw http.ResponseWriter, req *http.Request) { begun.Store(false); handler.ServeHTTP(rw, req) })
	s.ConnState = func(_ net.Conn, now http.ConnState) {
		if now == http.StateActive || now == http.StateIdle { // HTTP/2 is both before anything is asked
			begun.Store(now == http.StateActive)
		}
	}
	s.Serve(from) // it ends with its one connection
	return begun.Load()
}
