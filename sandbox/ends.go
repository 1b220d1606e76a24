package sandbox

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"
)

// end ends the kept boxes that are meant: those that are idle after a while, if nobody
// has taken them by then; and those in use when their call is over.
func (b *Boxes) end(meant func(*entry) bool, after time.Duration) {
	b.mu.Lock()
	var now []*entry
	for e := range b.live {
		if e.kept == nil || !meant(e) {
			continue
		}
		switch {
		case e.timer == nil:
			e.doomed = true
		case after > 0:
			e.timer.Reset(after)
		default:
			e.timer.Stop()
			b.forget(e)
			now = append(now, e)
		}
	}
	b.mu.Unlock()
	var wg sync.WaitGroup
	for _, e := range now {
		wg.Go(func() { e.kept.Close() })
	}
	wg.Wait()
}

// EndTask lets go of what a task had; what an agent has goes on.
func (b *Boxes) EndTask(task string) {
	b.end(func(e *entry) bool { return e.key.task != "" && e.key.task == task }, 0)
}

// EndSession lets go of what a session had, after the grace.
func (b *Boxes) EndSession(session string) {
	b.mu.Lock()
	grace := b.keep.Grace
	b.mu.Unlock()
	b.end(func(e *entry) bool { return e.key.session == session }, grace)
}

// EndAgent lets go of what an agent had, at once; "*": of everything.
func (b *Boxes) EndAgent(agent string) {
	b.end(func(e *entry) bool { return agent == "*" || e.key.agent == agent }, 0)
}

// List is what there is now, the oldest first.
func (b *Boxes) List() []Live {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []Live{}
	for e := range b.live {
		out = append(out, e.Live)
	}
	slices.SortFunc(out, func(x, y Live) int { return cmp.Or(x.Since.Compare(y.Since), strings.Compare(x.ID, y.ID)) })
	return out
}

// Kill ends a box and what runs in it. It reports false when there is no such box.
func (b *Boxes) Kill(id string) bool {
	b.mu.Lock()
	found := b.find(id)
	if found != nil && found.Call != "" {
		found.doomed = true
		found.kill()
	}
	b.mu.Unlock()
	if found != nil {
		b.end(func(e *entry) bool { return e == found }, 0)
	}
	return found != nil
}

// Close ends every box that is kept, all at once. Those in use end with their calls.
func (b *Boxes) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.EndAgent("*")
	return nil
}
