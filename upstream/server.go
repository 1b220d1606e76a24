package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
)

// Spec is one upstream server, as an operator wrote it down.
type Spec struct {
	Name string
	// Connect makes a connection with these options, by Stdio or HTTP. It returns when
	// ctx ends.
	Connect func(ctx context.Context, o Options) (*Conn, error)

	ConnectTimeout time.Duration // default 10 s
	CallTimeout    time.Duration // default 30 s

	Enabled, Disabled []string // tools, as the server calls them; nothing enabled: all
	Lazy              bool     // connect when first needed
	Options           Options  // its Changed is the Server's own

	// OnChange is told what is offered when that has changed, and OnState every state.
	// Both are called one at a time and must not call Close.
	OnChange func(Offer)
	OnState  func(State)
}

// Phase is how a server is doing.
type Phase string

const (
	Idle     Phase = "idle" // not needed yet
	Starting Phase = "starting"
	Ready    Phase = "ready"
	Failed   Phase = "failed" // until Next
	Closed   Phase = "closed"
)

// State is a phase and what there is to say about it.
type State struct {
	Phase    Phase
	Since    time.Time
	Err      error     // why it failed, for the operator
	Next     time.Time // when it is tried again
	Failures int       // in a row
	Version  string    // of the protocol, when ready
}

// refreshEvery is how often at most the lists are read again.
const refreshEvery = 500 * time.Millisecond

// A Server keeps a connection with an upstream: it connects, reads what is offered,
// reads it again when it changes, and connects again when the connection ends. Safe
// for concurrent use.
type Server struct {
	spec  Spec
	life  context.Context
	stop  context.CancelFunc
	over  chan struct{} // closed when everything has ended
	dirty chan struct{} // the lists are to be read again
	need  chan struct{} // somebody wants a lazy server

	mu      sync.Mutex
	state   State
	changed chan struct{} // closed when state changes
	conn    *Conn         // when ready
	offer   *Offer        // the last one read
}

// Start begins to keep a server. Close ends it.
func Start(spec Spec) (*Server, error) {
	if err := tool.CheckServerName(spec.Name); err != nil {
		return nil, err
	}
	if spec.Connect == nil {
		return nil, fmt.Errorf("server %s has nothing to connect with", spec.Name)
	}
	spec.ConnectTimeout = cmp.Or(spec.ConnectTimeout, 10*time.Second)
	spec.CallTimeout = cmp.Or(spec.CallTimeout, 30*time.Second)
	if spec.Options.Log == nil {
		spec.Options.Log = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		spec: spec, over: make(chan struct{}), changed: make(chan struct{}),
		dirty: make(chan struct{}, 1), need: make(chan struct{}, 1),
		state: State{Phase: Idle, Since: time.Now()},
	}
	s.spec.Options.Changed = func(string) { s.Refresh() }
	s.life, s.stop = context.WithCancel(context.Background())
	if !spec.Lazy {
		s.need <- struct{}{}
	}
	go s.run()
	return s, nil
}

// Close ends the connection and everything that runs for the server.
func (s *Server) Close() error {
	s.stop()
	<-s.over
	return nil
}

// State is how the server is doing now.
func (s *Server) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// Offer is what the server offered when it was last read; false before that.
func (s *Server) Offer() (Offer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.offer == nil {
		return Offer{}, false
	}
	return *s.offer, true
}

// Refresh has the lists read again soon.
func (s *Server) Refresh() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// Ready waits until the server is ready, or has failed.
func (s *Server) Ready(ctx context.Context) error {
	_, err := s.ready(ctx)
	return err
}

// ready is the connection. While it is being made it waits; after a failure it says
// so at once, because waiting for the next attempt is the caller's to choose.
func (s *Server) ready(ctx context.Context) (*Conn, error) {
	for {
		s.mu.Lock()
		state, conn, changed := s.state, s.conn, s.changed
		s.mu.Unlock()
		switch state.Phase {
		case Idle:
			select {
			case s.need <- struct{}{}:
			default:
			}
		case Ready:
			if conn.Err() == nil {
				return conn, nil
			}
		case Failed:
			wait := max(time.Until(state.Next), 0).Round(time.Second)
			return nil, writ.Fail(writ.Internal, fmt.Sprintf("the server %s is not connected; nothing was done, and it is tried again in %s", s.spec.Name, wait), fmt.Errorf("%w: %w", ErrNotSent, state.Err))
		case Closed:
			return nil, writ.Fail(writ.Internal, fmt.Sprintf("the server %s was closed; nothing was done", s.spec.Name), ErrClosed)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, writ.Fail(writ.Cancelled, fmt.Sprintf("the server %s was not connected in time; nothing was done", s.spec.Name), fmt.Errorf("%w: %w", ErrNotSent, ctx.Err()))
		}
	}
}

// CallTool calls a tool by the name its server has for it. The result is as it came.
func (s *Server) CallTool(ctx context.Context, name string, args json.RawMessage, peer Peer) (json.RawMessage, error) {
	return s.Call(ctx, "tools/call", callParams(name, args), peer)
}

// Call makes one request, within the server's time for a call. An error of the
// server's is a *ServerError; any other is a *writ.Error, of kind Unknown where the
// request may have been carried out.
func (s *Server) Call(ctx context.Context, method string, params json.RawMessage, peer Peer) (json.RawMessage, error) {
	within, cancel := context.WithTimeout(ctx, s.spec.CallTimeout)
	defer cancel()
	for again := true; ; again = false {
		conn, err := s.ready(within)
		if err != nil {
			return nil, err
		}
		result, err := conn.Call(within, method, params, peer)
		// A session that the server has forgotten cannot have run anything.
		if again && errors.Is(err, ErrNotSent) && errors.Is(err, ErrSession) {
			continue
		}
		if err != nil {
			return nil, s.failed(ctx, err)
		}
		return result, nil
	}
}

// failed words what became of a call.
func (s *Server) failed(ctx context.Context, err error) error {
	var said *ServerError
	const unknown = "; whether it did anything is not known"
	switch {
	case errors.As(err, &said):
		return said
	case errors.Is(err, ErrNotSent):
		return writ.Fail(writ.Internal, fmt.Sprintf("the server %s did not take the call; nothing was done", s.spec.Name), err)
	case ctx.Err() != nil:
		return writ.Fail(writ.Cancelled, fmt.Sprintf("the call of the server %s was cancelled%s", s.spec.Name, unknown), err)
	case errors.Is(err, context.DeadlineExceeded):
		return writ.Fail(writ.Unknown, fmt.Sprintf("the server %s did not answer within %s (call_timeout)%s", s.spec.Name, s.spec.CallTimeout, unknown), err)
	}
	return writ.Fail(writ.Unknown, fmt.Sprintf("the server %s went away before it answered%s", s.spec.Name, unknown), err)
}
