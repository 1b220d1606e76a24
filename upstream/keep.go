package upstream

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// run keeps the server until Close.
func (s *Server) run() {
	defer close(s.over)
	defer func() { s.set(State{Phase: Closed}, nil) }()
	select {
	case <-s.need:
	case <-s.life.Done():
		return
	}
	var renewed time.Time
	for failures := 0; ; {
		s.set(State{Phase: Starting, Failures: failures}, nil)
		stood, err := s.once()
		err = hiding(err, s.spec.Options.Hide)
		if s.life.Err() != nil {
			return
		}
		if errors.Is(err, ErrSession) && time.Since(renewed) > shortestWait { // a new one will do, and callers wait for it
			renewed = time.Now()
			continue
		}
		if failures++; stood > longestWait {
			failures = 1
		}
		wait := backoff(failures)
		s.spec.Options.Log.Warn("an MCP server is not connected", "server", s.spec.Name, "err", err, "again_in", wait)
		s.set(State{Phase: Failed, Err: err, Failures: failures, Next: time.Now().Add(wait)}, nil)
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-s.life.Done():
			timer.Stop()
			return
		}
	}
}

// once is one connection, from its beginning to its end: how long it was of use, and
// why it ended.
func (s *Server) once() (stood time.Duration, err error) {
	defer func() { // what a server sent must not end the program
		if p := recover(); p != nil {
			s.spec.Options.Log.Error("keeping an MCP server panicked", "server", s.spec.Name, "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	ctx, cancel := context.WithTimeout(s.life, s.spec.ConnectTimeout)
	conn, err := s.spec.Connect(ctx, s.spec.Options)
	cancel()
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	select {
	case <-s.dirty: // everything is about to be read
	default:
	}
	if err := s.load(conn); err != nil {
		return 0, err
	}
	began := time.Now()
	s.set(State{Phase: Ready, Version: conn.Version()}, conn)
	err = s.stay(conn)
	return time.Since(began), err
}

// stay reads the lists again whenever they change, until the connection ends.
func (s *Server) stay(conn *Conn) error {
	last := time.Now()
	for {
		select {
		case <-s.life.Done():
			return ErrClosed
		case <-conn.Done():
			return conn.Err()
		case <-s.dirty:
		}
		pause := time.NewTimer(refreshEvery - time.Since(last))
		select {
		case <-s.life.Done():
			pause.Stop()
			return ErrClosed
		case <-conn.Done():
			pause.Stop()
			return conn.Err()
		case <-pause.C:
		}
		select {
		case <-s.dirty: // what came meanwhile is covered by this reading
		default:
		}
		last = time.Now()
		if err := s.load(conn); err != nil {
			return err
		}
	}
}

// load reads what is offered, and tells of it if it is not what it was.
func (s *Server) load(conn *Conn) error {
	offer, err := read(s.life, conn, func(name string) bool { return Wanted(name, s.spec.Enabled, s.spec.Disabled) })
	if err != nil {
		return err
	}
	headers := map[string][]headerParam{}
	for _, t := range offer.Tools {
		if t.headers != nil {
			headers[t.Name] = t.headers
		}
	}
	conn.params.Store(&headers)
	s.mu.Lock()
	same := s.offer != nil && s.offer.Digest == offer.Digest
	s.offer = &offer
	s.mu.Unlock()
	if !same && s.spec.OnChange != nil {
		s.spec.OnChange(offer)
	}
	return nil
}

func (s *Server) set(state State, conn *Conn) {
	state.Since = time.Now()
	s.mu.Lock()
	s.state, s.conn = state, conn
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
	if s.spec.OnState != nil {
		s.spec.OnState(state)
	}
}

// hidden is an error whose text nobody is to see as it is.
type hidden struct {
	error
	text string
}

func (h hidden) Error() string { return h.text }
func (h hidden) Unwrap() error { return h.error }

// hiding takes out of an error's text what is taken out of messages.
func hiding(err error, hide func([]byte) []byte) error {
	if err == nil || hide == nil {
		return err
	}
	if text := string(hide([]byte(err.Error()))); text != err.Error() {
		return hidden{err, text}
	}
	return err
}
