package sandbox

import (
	"context"
	"slices"
	"time"
)

// turn is, for one key, how many boxes are being readied, and the callers who wait for one
// of them: that is sooner done than making another. Each has a box handed to it, in the order
// in which they came, or nil where it has to make one after all.
type turn struct {
	renewing int
	waiting  []chan *entry
	changed  chan struct{} // closed when one is ready, or will not be; nil: nobody looks
}

// idle takes a box that nobody uses, and waits for one that is being readied where
// nobody else does; nil: another one has to be made.
func (b *Boxes) idle(ctx context.Context, k key) *entry {
	b.mu.Lock()
	for e := range b.live {
		if e.timer != nil && !e.doomed && e.key == k { // most are in use
			e.timer.Stop()
			e.timer = nil
			b.mu.Unlock()
			return e
		}
	}
	t := b.turns[k]
	if t == nil || t.renewing <= len(t.waiting) || ctx.Err() != nil {
		b.mu.Unlock()
		return nil
	}
	handed := make(chan *entry, 1)
	t.waiting = append(t.waiting, handed)
	b.mu.Unlock()
	select {
	case e := <-handed:
		return e
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := slices.Index(t.waiting, handed); at >= 0 {
		t.waiting = slices.Delete(t.waiting, at, at+1)
		return nil
	}
	return <-handed // it was handed over meanwhile, and nobody else knows of it
}

// renewing notes that a box of a key is being readied.
func (b *Boxes) renewing(k key) {
	t := b.turns[k]
	if t == nil {
		t = &turn{}
		b.turns[k] = t
	}
	t.renewing++
}

// renewed notes that one is ready, or will not be (nil), and reports whether somebody who
// waited has it now.
func (b *Boxes) renewed(k key, e *entry) bool {
	t := b.turns[k]
	t.renewing--
	if t.changed != nil {
		close(t.changed)
		t.changed = nil
	}
	var next chan *entry
	if len(t.waiting) > 0 && (e != nil || len(t.waiting) > t.renewing) {
		next, t.waiting = t.waiting[0], t.waiting[1:]
		next <- e
	}
	if t.renewing == 0 && len(t.waiting) == 0 {
		delete(b.turns, k)
	}
	return next != nil
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
		b.renewing(e.key)
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
		if over {
			b.renewed(e.key, nil)
		} else if !b.renewed(e.key, e) {
			b.linger(e)
		}
		b.mu.Unlock()
		if over {
			b.drop(e)
		}
	}()
}

// linger keeps a box that is ready and that nobody waits for.
func (b *Boxes) linger(e *entry) {
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

func (b *Boxes) drop(e *entry) {
	b.mu.Lock()
	b.forget(e)
	b.mu.Unlock()
	e.kept.Close()
}
