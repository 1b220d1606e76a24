package engine

import (
	"context"
	"sync"

	"github.com/writ-run/writ"
)

// maxRunning is how many calls of one agent, with all below it, run at once. More
// wait: a batch has up to 128, and an agent may send many.
const maxRunning = 128

// places are what calls run in, by the agent at the top of their chain.
type places struct {
	mu     sync.Mutex
	byRoot map[string]chan struct{}
}

// take waits for a place, until ctx ends.
func (p *places) take(ctx context.Context, root string) (leave func(), err error) {
	p.mu.Lock()
	if p.byRoot == nil {
		p.byRoot = map[string]chan struct{}{}
	}
	slots := p.byRoot[root]
	if slots == nil {
		slots = make(chan struct{}, maxRunning)
		p.byRoot[root] = slots
	}
	p.mu.Unlock()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, writ.Fail(writ.Denied, "denied: the caller gave up before there was room to run", context.Cause(ctx))
	}
}
