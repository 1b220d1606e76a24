package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/writ-run/writ"
)

// stops is the kill switch in memory: who is stopped, and what runs now. The
// store holds the same, so that it survives restarts.
type stops struct {
	mu      sync.Mutex
	stopped map[string]bool // by agent; "*" is everybody
	running map[int64]run
	next    int64
	idle    sync.WaitGroup
}

type run struct {
	agent  string
	cancel context.CancelFunc
}

func (s *stops) is(agent string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped["*"] || s.stopped[agent]
}

// begin lets a run start unless its agent is stopped. A stop that comes later
// finds it and ends its context: there is no moment in between.
func (s *stops) begin(ctx context.Context, agent string) (context.Context, func(), error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped["*"] || s.stopped[agent] {
		return nil, nil, stoppedError(agent)
	}
	ctx, cancel := context.WithCancel(ctx)
	id := s.next
	s.next++
	if s.running == nil {
		s.running = map[int64]run{}
	}
	s.running[id] = run{agent, cancel}
	s.idle.Add(1)
	return ctx, func() {
		cancel()
		s.mu.Lock()
		delete(s.running, id)
		s.mu.Unlock()
		s.idle.Done()
	}, nil
}

func (s *stops) set(agent string, stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped == nil {
		s.stopped = map[string]bool{}
	}
	if !stopped {
		delete(s.stopped, agent)
		return
	}
	s.stopped[agent] = true
	for _, r := range s.running {
		if agent == "*" || r.agent == agent {
			r.cancel()
		}
	}
}

// cancelAll ends what runs and waits for it; used when the engine closes.
func (s *stops) cancelAll() {
	s.mu.Lock()
	for _, r := range s.running {
		r.cancel()
	}
	s.mu.Unlock()
	s.idle.Wait()
}

func stoppedError(agent string) error {
	return writ.Fail(writ.Stopped, fmt.Sprintf("agent %s is stopped; a person lifts it with: writ stop --lift", agent), nil)
}
