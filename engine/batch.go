package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
)

// MaxBatch is how many calls one batch may have.
const MaxBatch = 128

// maxBatchBytes is what the results of one batch may have in all: they are kept until
// the last call has ended.
const maxBatchBytes = 32 << 20

// Order says how the calls of a batch run.
type Order string

const (
	// InOrder runs consecutive read-only calls in parallel and a mutating call
	// alone, in the order of the batch: two writes of one turn would race otherwise.
	InOrder Order = "in_order"
	// Concurrent runs all at once.
	Concurrent Order = "concurrent"
)

// Batch is several calls of one turn.
type Batch struct {
	Calls          []Call
	Order          Order // empty: InOrder
	MaxConcurrency int   // zero: as many as there are
}

// Answer is what came of one call of a batch: a result, or the error that kept it
// from one.
type Answer struct {
	Outcome
	Err error
}

// DoAll makes the calls of a batch. Answers keep the order of the calls. A failing
// call never cancels its siblings. A panic of the runtime itself is collected and
// returned after all of them have ended: the one there was, or all joined. A call
// that waits for a person holds back only the later mutating calls; where it is left
// pending, those are refused, because they were meant to come after it.
func (e *Engine) DoAll(ctx context.Context, b Batch) ([]Answer, error) {
	if err := b.check(); err != nil {
		return nil, err
	}
	s := e.schedule(b)
	var kept atomic.Int64
	answers, panics := make([]Answer, len(b.Calls)), make([]error, len(b.Calls))
	var all sync.WaitGroup
	for i := range b.Calls {
		all.Go(func() {
			defer s.finish(i)
			defer func() {
				if p := recover(); p != nil {
					panics[i] = fmt.Errorf("call %d of the batch: %v", i, p)
					answers[i].Err = writ.Fail(writ.Internal, "the runtime failed unexpectedly", panics[i])
				}
			}()
			answers[i] = e.batched(ctx, s, i, b.Calls[i])
			if n := int64(len(answers[i].Content)); kept.Add(n) > maxBatchBytes {
				answers[i].Content, answers[i].IsError = fmt.Sprintf("[the call ran; its %d bytes are left out, because the batch's results have more than %d: make fewer calls at once]", n, int64(maxBatchBytes)), true
			}
		})
	}
	all.Wait()
	return answers, errors.Join(panics...)
}

func (b *Batch) check() error {
	switch {
	case len(b.Calls) == 0:
		return writ.Fail(writ.Invalid, "a batch has at least one call", nil)
	case len(b.Calls) > MaxBatch:
		return writ.Fail(writ.TooLarge, fmt.Sprintf("a batch has at most %d calls, not %d; send several", MaxBatch, len(b.Calls)), nil)
	case b.Order != "" && b.Order != InOrder && b.Order != Concurrent:
		return writ.Fail(writ.Invalid, fmt.Sprintf("order: %q is none of in_order, concurrent", clip(string(b.Order))), nil)
	case b.MaxConcurrency < 0:
		return writ.Fail(writ.Invalid, "max_concurrency is at least 1; leave it out for no bound", nil)
	}
	return nil
}

func (e *Engine) batched(ctx context.Context, s *schedule, i int, c Call) Answer {
	id := approval.NewID(e.ledger.Time())
	if err := s.start(ctx, i); err != nil {
		return Answer{Outcome{CallID: id}, err}
	}
	defer s.release()
	if err := s.heldBack(i); err != nil {
		call := writ.Call{ID: id, Agent: c.Agent, Door: c.Door}
		return Answer{Outcome{CallID: id}, e.refuse(ctx, call, writ.Decision{}, "", err)}
	}
	e.turns.add(id, &turn{s: s, i: i})
	defer e.turns.remove(id)
	out, err := e.do(ctx, c, id)
	var w *writ.Error
	if errors.As(err, &w) && w.Kind == writ.Pending {
		s.leave(i, w.Ref)
	}
	return Answer{out, err}
}

// schedule is who of a batch may go when.
type schedule struct {
	order   Order
	mutates []bool
	slots   chan struct{} // nil: no bound
	alone   sync.RWMutex  // held by a mutating call while it runs, shared by the others

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever a state changes
	done    []bool
	waiting []bool   // for a person
	pending []string // the request that a call left pending, where it did
}

func (e *Engine) schedule(b Batch) *schedule {
	n := len(b.Calls)
	s := &schedule{order: b.Order, mutates: make([]bool, n), done: make([]bool, n), waiting: make([]bool, n), pending: make([]string, n), changed: make(chan struct{})}
	if b.MaxConcurrency > 0 {
		s.slots = make(chan struct{}, b.MaxConcurrency)
	}
	r := e.at()
	for i, c := range b.Calls {
		s.mutates[i] = r.mutates(c)
	}
	return s
}

// mutates reports whether a call may change something: all do whose action is not
// known to read.
func (r *rules) mutates(c Call) bool {
	t, ok := r.catalog.Lookup(c.Tool)
	if !ok {
		return false // it will not run
	}
	_, value, err := t.Args(c.Args)
	if err != nil {
		return false
	}
	return t.Class == writ.ClassWrite || !t.ActionOf(value).Reads()
}

// start waits for a call's turn, and takes a slot.
func (s *schedule) start(ctx context.Context, i int) error {
	for s.order != Concurrent {
		s.mu.Lock()
		changed, free := s.changed, s.free(i)
		s.mu.Unlock()
		if free {
			break
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return errGaveUp(ctx)
		}
	}
	if ctx.Err() != nil {
		return errGaveUp(ctx)
	}
	return s.take(ctx)
}

func errGaveUp(ctx context.Context) error {
	return writ.Fail(writ.Denied, "denied: the caller gave up before its turn", ctx.Err())
}

// free reports whether a call may go: a mutating one when all before it are over,
// another when each mutating one before it is over or waits for a person.
func (s *schedule) free(i int) bool {
	for j := range i {
		if !s.done[j] && (s.mutates[i] || s.mutates[j] && !s.waiting[j]) {
			return false
		}
	}
	return true
}

// leave notes that a call was left pending: the caller's patience ended before a
// person answered.
func (s *schedule) leave(i int, request string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pending[i] = request
}

// heldBack is why a change does not run: one before it, which its caller wanted
// done first, still waits for a person.
func (s *schedule) heldBack(i int) error {
	if s.order == Concurrent || !s.mutates[i] {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for j, request := range s.pending[:i] {
		if request != "" {
			return &writ.Error{Kind: writ.Conflict, Ref: request, Msg: fmt.Sprintf(
				"held back: call %d of the batch, a change before this one, waits for a person (request %s); make this call again after it", j+1, request)}
		}
	}
	return nil
}

func (s *schedule) take(ctx context.Context) error {
	if s.slots == nil {
		return nil
	}
	select {
	case s.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return errGaveUp(ctx)
	}
}

func (s *schedule) release() {
	if s.slots != nil {
		<-s.slots
	}
}

func (s *schedule) set(states []bool, i int, v bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	states[i] = v
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *schedule) finish(i int) { s.set(s.done, i, true) }

// turns are the calls under way that belong to a batch, by their ids. The gate does
// not know of batches; its approver and its runner find here whom to tell.
type turns struct {
	mu     sync.Mutex
	byCall map[string]*turn
}

type turn struct {
	s  *schedule
	i  int
	as string // the other id it goes on under
}

func (t *turns) add(id string, one *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byCall == nil {
		t.byCall = map[string]*turn{}
	}
	t.byCall[id] = one
}

func (t *turns) remove(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one, ok := t.byCall[id]; ok {
		delete(t.byCall, one.as)
	}
	delete(t.byCall, id)
}

// also says that a call of a batch goes on under another id: it takes up a request
// that was made before.
func (t *turns) also(id, as string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one, ok := t.byCall[id]; ok {
		one.as = as
		t.byCall[as] = one
	}
}

func (t *turns) of(id string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byCall[id]
}

// wait says that a call waits for a person from now until the returned function
// is called: the batch goes on around it, and its slot is free.
func (t *turns) wait(id string) (resume func()) {
	one := t.of(id)
	if one == nil {
		return func() {}
	}
	one.s.release()
	one.s.set(one.s.waiting, one.i, true)
	return func() {
		one.s.set(one.s.waiting, one.i, false)
		if one.s.slots != nil {
			one.s.slots <- struct{}{}
		}
	}
}

// run lets a call of a batch run: alone where it mutates, after the ones that run
// now. A call that waited for a person meets others here that did not.
func (t *turns) run(ctx context.Context, id string) (leave func(), err error) {
	one := t.of(id)
	if one == nil || one.s.order == Concurrent {
		return func() {}, nil
	}
	leave = one.s.alone.RUnlock
	if one.s.mutates[one.i] {
		one.s.alone.Lock()
		leave = one.s.alone.Unlock
	} else {
		one.s.alone.RLock()
	}
	if ctx.Err() != nil {
		leave()
		return nil, errGaveUp(ctx)
	}
	return leave, nil
}
