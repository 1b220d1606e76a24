package api

import (
	"net"
	"sync"

	"github.com/writ-run/writ"
)

// atMost holds a listener to n open connections; the next waits in the kernel's
// queue. Without it idle connections would use up the daemon's descriptors.
func atMost(l net.Listener, n int) net.Listener { return &limited{l, make(chan struct{}, n)} }

type limited struct {
	net.Listener
	open chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	l.open <- struct{}{}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &counted{Conn: c, done: func() { <-l.open }}, nil
}

type counted struct {
	net.Conn
	once sync.Once
	done func()
}

func (c *counted) Close() error {
	defer c.once.Do(c.done)
	return c.Conn.Close()
}

// begin counts a request of one token; the returned function counts it out.
func (s *Server) begin(session string) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy[session] >= maxTokenRequests {
		return nil, writ.Fail(writ.Conflict, "this token has too many calls under way; wait for some to end", nil)
	}
	s.busy[session]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.busy[session]--; s.busy[session] == 0 {
			delete(s.busy, session)
		}
	}, nil
}
