package mcpserver

import (
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/engine"
)

// Guard is what the listener that a request came in by has to say while the request
// lasts. The zero Guard lets nobody stay.
type Guard struct {
	Again  func() error                    // why the caller is not who it was any more; nil: it is
	Stream func() (left func(), err error) // counts a stream of the caller's
}

// unwelcome is why a caller may be told nothing more, or nil.
func (x *exchange) unwelcome() error {
	if err := x.engine.Welcome(x.who); err != nil {
		return err
	}
	if x.guard.Again == nil {
		return writ.Fail(writ.Unauthenticated, "nobody knows who calls", nil)
	}
	return x.guard.Again()
}

// between is the time between two looks at who may stay, at least: many entries of the
// ledger are one look.
const between = 100 * time.Millisecond

// attend ends what callers have open who are stopped or revoked. Both are entries of
// the ledger, so that whoever waits for it to grow hears of them at once.
func (d *Door) attend() {
	for {
		grown := d.engine.Ledger().Grown() // before looking, so that none is missed
		d.endUnwelcome()
		for _, next := range []<-chan struct{}{grown, after(between)} {
			select {
			case <-next:
			case <-d.closing:
				return
			}
		}
	}
}

// after is closed when a time is over.
func after(t time.Duration) <-chan struct{} {
	over := make(chan struct{})
	time.AfterFunc(t, func() { close(over) })
	return over
}

// endUnwelcome ends sessions, streams and tasks of those who may not go on. What they
// run, and what waits for a person, the engine has ended.
func (d *Door) endUnwelcome() {
	known := map[string]bool{}
	gone := func(who engine.Caller) bool {
		is, asked := known[owner(who)]
		if !asked {
			is = d.engine.Welcome(who) != nil
			known[owner(who)] = is
		}
		return is
	}
	d.hub.end(gone)
	for _, t := range d.tasks.take(gone) {
		t.end("cancelled", nil, nil)
		t.cancel()
	}
	for _, v := range d.sessions.take(gone) {
		go func() { // it waits for what runs in it
			v.ss.Close()
			d.sessions.end(d.engine, v, "its caller was stopped or revoked")
		}()
	}
}

// end ends the streams of those who are gone.
func (h *hub) end(gone func(engine.Caller) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for s := range h.subs {
		if gone(s.who) {
			close(s.over)
			delete(h.subs, s)
		}
	}
}

// take forgets the tasks of those who are gone, and lists them.
func (t *tasks) take(gone func(engine.Caller) bool) (out []*task) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, one := range t.by {
		if gone(one.who) {
			delete(t.by, id)
			out = append(out, one)
		}
	}
	return out
}

// take forgets the sessions of those who are gone, and lists them.
func (s *sessions) take(gone func(engine.Caller) bool) (out []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, v := range s.byID {
		if gone(v.who) {
			delete(s.byID, id)
			out = append(out, v)
		}
	}
	return out
}
