package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/writ-run/writ"
)

// stops is the kill switch in memory: who is stopped, and what runs now. The
// store holds the same, so that it survives restarts.
type stops struct {
	mu      sync.Mutex
	stopped map[string]bool // by agent; "*" is everybody
	ended   map[string]bool // delegated agents that have ended; their names are never used again
	revoked map[string]bool // ids of tokens
	running map[*run]bool
}

// run is one call that runs.
type run struct {
	call          string
	chain         []string // its agent and those above it, as they were when the call arrived
	token         string
	session, task string
	cancel        context.CancelCauseFunc
	ended         chan struct{}
}

// is reports which of a chain of agents is stopped, "" when none is.
func (s *stops) is(chain []string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.which(chain)
}

func (s *stops) which(chain []string) string {
	if s.stopped["*"] {
		return "*"
	}
	for _, a := range chain {
		if s.stopped[a] {
			return a
		}
	}
	return ""
}

// begin lets a run start unless one of its agents is stopped. A stop that comes
// later finds it and ends its context: there is no moment in between.
func (s *stops) begin(ctx context.Context, r *run) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if who := s.which(r.chain); who != "" {
		return nil, nil, stoppedError(who)
	}
	if len(r.chain) == 0 || s.revoked[r.token] || slices.ContainsFunc(r.chain, func(a string) bool { return s.ended[a] }) {
		return nil, nil, errRevoked
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.ended = make(chan struct{})
	if s.running == nil {
		s.running = map[*run]bool{}
	}
	s.running[r] = true
	return ctx, func() {
		r.cancel(nil)
		s.mu.Lock()
		delete(s.running, r)
		s.mu.Unlock()
		close(r.ended)
	}, nil
}

// set stops an agent, or lifts its stop. Stopping ends what it and those below it run.
func (s *stops) set(agent string, stopped bool) {
	s.mu.Lock()
	if s.stopped == nil {
		s.stopped = map[string]bool{}
	}
	if stopped {
		s.stopped[agent] = true
	} else {
		delete(s.stopped, agent)
	}
	s.mu.Unlock()
	if stopped {
		s.cancel(stoppedError(agent), func(r *run) bool { return agent == "*" || slices.Contains(r.chain, agent) })
	}
}

var errRevoked = writ.Fail(writ.Unauthenticated, "the token or the agent of the call has ended meanwhile", nil)

// end lets nothing more begin of delegated agents, and ends what they run.
func (s *stops) end(agents map[string]bool) (wait func()) {
	s.mu.Lock()
	if s.ended == nil {
		s.ended = map[string]bool{}
	}
	for a := range agents {
		s.ended[a] = true
	}
	s.mu.Unlock()
	return s.cancel(errEnded, func(r *run) bool {
		return slices.ContainsFunc(r.chain, func(a string) bool { return agents[a] })
	})
}

// revoke lets nothing more begin with a token, and ends what runs with it.
func (s *stops) revoke(token string) (wait func()) {
	s.mu.Lock()
	if s.revoked == nil {
		s.revoked = map[string]bool{}
	}
	s.revoked[token] = true
	s.mu.Unlock()
	return s.cancel(errRevoked, func(r *run) bool { return r.token == token })
}

// has reports whether something of an agent, or of one below it, runs.
func (s *stops) has(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for r := range s.running {
		if slices.Contains(r.chain, agent) {
			return true
		}
	}
	return false
}

// cancel ends the runs that match, and returns without waiting for them; wait waits.
func (s *stops) cancel(why error, match func(*run) bool) (wait func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var hit []*run
	for r := range s.running {
		if match(r) {
			r.cancel(why)
			hit = append(hit, r)
		}
	}
	return func() {
		for _, r := range hit {
			<-r.ended
		}
	}
}

// cancelCall ends one call and waits for it; false: it does not run.
func (s *stops) cancelCall(id string) bool {
	found := false
	s.cancel(errCancelled, func(r *run) bool {
		found = found || r.call == id
		return r.call == id
	})()
	return found
}

// cancelAll ends what runs and waits for it; used when the engine closes.
func (s *stops) cancelAll() { s.cancel(nil, func(*run) bool { return true })() }

func stoppedError(agent string) error {
	if agent == "*" {
		return writ.Fail(writ.Stopped, "everybody is stopped; a person lifts it with: writ stop --lift --all --as NAME", nil)
	}
	return writ.Fail(writ.Stopped, fmt.Sprintf("agent %s is stopped; a person lifts it with: writ stop --lift %s --as NAME", agent, agent), nil)
}
