package api

import (
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/writ-run/writ"
)

// patient waits where the kernel has no room for another connection just now: of descriptors,
// memory, or what it watches for this user (epoll), of which commands in boxes have a part. To
// end for it would take the kill switch away from whoever needs it then.
type patient struct {
	net.Listener
}

func (l patient) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		full := slices.ContainsFunc([]error{syscall.ENOSPC, syscall.ENOMEM, syscall.ENOBUFS, syscall.EMFILE, syscall.ENFILE}, func(e error) bool { return errors.Is(err, e) })
		if !full {
			return c, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// atMost holds a listener to n open connections. When all are taken, the one that has
// lain idle longest makes room; where none is idle, the next waits in the kernel's
// queue. Without it connections would use up the daemon's descriptors, and one
// caller's idle ones would keep everybody else out.
func atMost(l net.Listener, n int) *limited {
	return &limited{Listener: l, open: make(chan struct{}, n)}
}

type limited struct {
	net.Listener
	open chan struct{}

	mu   sync.Mutex
	idle []net.Conn // the longest first
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.open <- struct{}{}:
	default:
		l.makeRoom()
		l.open <- struct{}{}
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.open
		return nil, err
	}
	return &counted{Conn: c, done: func() { <-l.open }}, nil
}

// makeRoom closes the connection that has been idle longest.
func (l *limited) makeRoom() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.idle) > 0 {
		l.idle[0].Close()
		l.idle = l.idle[1:]
	}
}

// state follows a connection, as http.Server tells of it.
func (l *limited) state(c net.Conn, s http.ConnState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = slices.DeleteFunc(l.idle, func(o net.Conn) bool { return o == c })
	if s != http.StateIdle {
		return
	}
	l.idle = append(l.idle, c)
	if len(l.open) == cap(l.open) { // somebody may be waiting for this
		c.Close()
		l.idle = l.idle[:len(l.idle)-1]
	}
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

// begin counts a request of an agent, with all below the one at the top of its chain;
// the returned function, which is never nil, counts it out.
func (s *Server) begin(root string) (func(), error) {
	return s.count(s.busy, root, s.limits.agentRequests, "this agent has too many requests under way; wait for some to end")
}

// beginStream counts a stream at its door and of its agent, as begin does.
func (s *Server) beginStream(d door, root string) (func(), error) {
	all := "agents"
	if d == operatorDoor {
		all = "operator"
	}
	left, err := s.count(s.streams, "door "+all, s.limits.streams, "too many streams are open here; try again later")
	if err != nil || root == "" {
		return left, err
	}
	mine, err := s.count(s.streams, root, s.limits.agentStreams, "this agent has too many streams open; close some")
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
