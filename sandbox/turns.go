package sandbox

import (
	"context"
	"time"
)

// turn counts, for one key, the boxes that are being readied and the callers who wait
// for one of them: that is sooner done than making another.
type turn struct {
	renewing, waiting int
	changed           chan struct{} // closed and replaced when one is ready, or will not be
}

// idle takes a box that nobody uses, and waits for one that is being readied where
// nobody else does; nil: another one has to be made.
func (b *Boxes) idle(ctx context.Context, k key) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for e := range b.live {
			if e.key == k && e.timer != nil && !e.doomed {
				e.timer.Stop()
				e.timer = nil
				return e
			}
		}
		t := b.turns[k]
		if t == nil || t.renewing <= t.waiting || ctx.Err() != nil {
			return nil
		}
		t.waiting++
		changed := t.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		b.mu.Lock()
		t.waiting--
	}
}

// renewing notes that a box of a key is being readied (1), or not any more (-1).
func (b *Boxes) renewing(k key, by int) {
	t := b.turns[k]
	if t == nil {
		t = &turn{changed: make(chan struct{})}
		b.turns[k] = t
	}
	t.renewing += by
	if by < 0 {
		close(t.changed)
		t.changed = make(chan struct{})
	}
	if t.renewing == 0 && t.waiting == 0 {
		delete(b.turns, k)
	}
}

// room reports whether another box may be kept; the one idle the longest makes way.
func (b *Boxes) room() bool {
	b.mu.Lock()
	n, oldest := 0, (*entry)(nil)
	for e := range b.live {
		if e.kept == nil {
			continue
		}
		n++
		if e.timer != nil && (oldest == nil || e.Used.Before(oldest.Used)) {
			oldest = e
		}
	}
	if n >= most && oldest != nil {
		oldest.timer.Stop()
		oldest.timer = nil
		b.forget(oldest)
	}
	b.mu.Unlock()
	if n >= most && oldest != nil {
		oldest.kept.Close()
		return true
	}
	return n < most
}

// release keeps a box for the next call, or lets it go. Readying it takes a moment, for
// which nobody waits.
func (b *Boxes) release(e *entry, r Run) {
	b.mu.Lock()
	e.kill()
	e.remember(r)
	e.Call, e.Tool = "", ""
	over := e.kept == nil || e.doomed || b.closed
	if e.kept == nil {
		b.forget(e)
	}
	if !over {
		b.renewing(e.key, 1)
	}
	b.mu.Unlock()
	if e.kept == nil {
		return
	}
	if over {
		b.drop(e)
		return
	}
	go func() {
		err := e.kept.Renew(context.Background())
		b.mu.Lock()
		over := err != nil || e.doomed || b.closed
		if !over {
			idle := b.keep.Idle
			if idle == 0 {
				idle = 1 << 62
			}
			// One that fires while the box is taken, or after it was taken and released, is
			// of a time that is over: what counts is the timer that the box has now.
			var own *time.Timer
			own = time.AfterFunc(idle, func() { b.end(func(x *entry) bool { return x == e && x.timer == own }, 0) })
			e.timer = own
		}
		b.renewing(e.key, -1)
		b.mu.Unlock()
		if over {
			b.drop(e)
		}
	}()
}

func (b *Boxes) drop(e *entry) {
	b.mu.Lock()
	b.forget(e)
	b.mu.Unlock()
	e.kept.Close()
}
