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

// begin counts a request of one token; the returned function, which is never nil,
// counts it out.
func (s *Server) begin(token string) (func(), error) {
	return s.count(s.busy, token, s.limits.tokenRequests, "this token has too many requests under way; wait for some to end")
}

// beginStream counts a stream at its door and of its token.
func (s *Server) beginStream(d door, token string) (func(), error) {
	all := "agents"
	if d == operatorDoor {
		all = "operator"
	}
	left, err := s.count(s.streams, "door "+all, s.limits.streams, "too many streams are open here; try again later")
	if err != nil || token == "" {
		return left, err
	}
	mine, err := s.count(s.streams, token, s.limits.tokenStreams, "this token has too many streams open; close some")
	if err != nil {
		left()
		return mine, err
	}
	return func() { mine(); left() }, nil
}

func (s *Server) count(of map[string]int, key string, most int, full string) (func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of[key] >= most {
		return func() {}, writ.Fail(writ.Conflict, full, nil)
	}
	of[key]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if of[key]--; of[key] == 0 {
			delete(of, key)
		}
	}, nil
}
