package ledger

import "sync/atomic"

// watch wakes whoever follows the ledger. A commit costs one atomic swap when
// nobody does.
type watch struct {
	next atomic.Pointer[chan struct{}] // closed by the next commit; nil: nobody waits
}

// Grown returns a channel that is closed once something more has been committed.
// Ask for it before reading the store: then no entry can come between.
func (l *Ledger) Grown() <-chan struct{} {
	for {
		if next := l.watch.next.Load(); next != nil {
			return *next
		}
		made := make(chan struct{})
		if l.watch.next.CompareAndSwap(nil, &made) {
			return made
		}
	}
}

// wake is called after a commit is durable.
func (w *watch) wake() {
	if next := w.next.Swap(nil); next != nil {
		close(*next)
	}
}
