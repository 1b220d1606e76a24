package ledger

import (
	"errors"
	"fmt"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
)

// change is one caller's part of a commit.
type change struct {
	make  func(*store.Tx) (Entry, error)
	plain bool      // make only returns an entry, and needs no transaction
	err   error     // how it went
	turn  chan bool // true: lead the next commit; false: it is done
}

// errPanic marks a change that panicked: what it did to the store is unknown, so
// nothing of its commit is kept.
var errPanic = errors.New("a change panicked")

// run makes the change. A panic must not take the lead with it: everybody behind
// would wait for ever.
func (c *change) run(tx *store.Tx) (e Entry, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = writ.Fail(writ.Internal, "a change of the store failed unexpectedly", fmt.Errorf("%w: %v", errPanic, p))
		}
	}()
	return c.make(tx)
}

// batchLimit bounds how many callers share one commit.
const batchLimit = 512

// group lets callers share commits. Whoever comes while nobody commits leads: it
// commits its own change and all that have queued up, and passes the lead on to
// the first that came meanwhile. One caller alone commits in its own goroutine,
// with no hand-over.
type group struct {
	commit func([]*change) // sets each change's err; one call at a time

	mu      sync.Mutex
	pending []*change
	leading bool
}

// do has the change committed and returns how it went.
func (g *group) do(c *change) error {
	c.turn = make(chan bool, 1)
	g.mu.Lock()
	g.pending = append(g.pending, c)
	lead := !g.leading
	g.leading = true
	g.mu.Unlock()
	if lead || <-c.turn {
		g.lead(c)
	}
	return c.err
}

// lead commits what is pending; c is the first of it. Those who are done are woken
// before the lead is passed on, so that what they ask for next can be in the
// next commit already.
func (g *group) lead(c *change) {
	g.mu.Lock()
	n := min(len(g.pending), batchLimit)
	batch := g.pending[:n:n]
	g.pending = g.pending[n:]
	g.mu.Unlock()
	g.commit(batch)
	for _, other := range batch {
		if other != c {
			other.turn <- false
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.pending) > 0 {
		g.pending[0].turn <- true
	} else {
		g.pending, g.leading = nil, false
	}
}
