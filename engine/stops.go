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
	running map[*run]bool
}

// run is one call that runs.
type run struct {
	chain         []string // its agent and those above it
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

// cancelAll ends what runs and waits for it; used when the engine closes.
func (s *stops) cancelAll() { s.cancel(nil, func(*run) bool { return true })() }

func stoppedError(agent string) error {
	if agent == "*" {
		return writ.Fail(writ.Stopped, "everybody is stopped; a person lifts it with: writ stop --all --lift", nil)
	}
	return writ.Fail(writ.Stopped, fmt.Sprintf("agent %s is stopped; a person lifts it with: writ stop %s --lift", agent, agent), nil)
}
