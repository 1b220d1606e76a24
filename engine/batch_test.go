package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
)

// stage records when probes run, and lets a test hold them.
type stage struct {
	mu    sync.Mutex
	log   []string
	now   int
	most  int // probes at once
	alone bool
	holds map[int]chan struct{} // by argument n
	began chan int
}

func newStage() *stage {
	return &stage{holds: map[int]chan struct{}{}, began: make(chan int, 1000), alone: true}
}

func (s *stage) run(kind string) func(context.Context, json.RawMessage) (writ.Result, error) {
	return func(_ context.Context, raw json.RawMessage) (writ.Result, error) {
		var a struct{ N int }
		if err := json.Unmarshal(raw, &a); err != nil {
			return writ.Result{}, err
		}
		s.mu.Lock()
		s.now++
		s.most = max(s.most, s.now)
		if kind == "write" && s.now > 1 {
			s.alone = false
		}
		s.log = append(s.log, fmt.Sprintf("%s%d", kind[:1], a.N))
		hold := s.holds[a.N]
		s.mu.Unlock()
		s.began <- a.N
		if hold != nil {
			<-hold
		}
		s.mu.Lock()
		if kind == "write" && s.now > 1 {
			s.alone = false
		}
		s.now--
		s.mu.Unlock()
		return text("%d", a.N), nil
	}
}

func (s *stage) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Join(s.log, " ")
}

func (s *stage) options() Options {
	return Options{Tools: []Tool{
		probe("look", "code:read", s.run("read")), probe("touch", "code:write", s.run("write")), probe("erase", "code:delete", s.run("write")),
		probe("burst", "code:read", func(context.Context, json.RawMessage) (writ.Result, error) { panic("secret") }),
	}}
}

const asking = `version: 1
listen: 127.0.0.1:0
store: {path: $DIR/state}
workspaces: {main: {path: $DIR/ws}}
agents:
  coder: {workspace: main, overrides: {requires_approval: ["code:delete"]}}
`

func batch(words string) []Call {
	var out []Call
	for i, w := range strings.Fields(words) {
		out = append(out, Call{Agent: "coder", Tool: w, Args: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	return out
}

// Results keep the order of the calls, reads run at once, writes alone and in order,
// and nothing that fails takes its siblings along.
func TestBatchInOrder(t *testing.T) {
	s := newStage()
	f := newFixture(t, agentsText, s.options())
	got, err := f.DoAll(t.Context(), Batch{Calls: batch("look look touch look nonsense burst touch touch look")})
	f.must(err)
	for i, a := range got {
		switch i {
		case 4:
			wants(t, a.Err, writ.NotFound, "there is no tool")
		case 5:
			wants(t, a.Err, writ.Internal, "the tool failed unexpectedly")
		default:
			if a.Err != nil || a.Content != fmt.Sprint(i) || a.CallID == "" {
				t.Errorf("%d: %+v", i, a)
			}
		}
	}
	if !s.alone {
		t.Error("a write did not run alone")
	}
	var order []string
	for w := range strings.SplitSeq(s.said(), " ") {
		if w[0] == 'w' {
			order = append(order, w)
		}
	}
	if want := []string{"w2", "w6", "w7"}; !slices.Equal(order, want) {
		t.Errorf("writes ran as %v", order)
	}
}

// Consecutive reads really run at once: each waits until all have begun.
func TestBatchReadsInParallel(t *testing.T) {
	s := newStage()
	f := newFixture(t, agentsText, s.options())
	for i := range 5 {
		s.holds[i] = make(chan struct{})
	}
	done := make(chan []Answer)
	go func() {
		got, _ := f.DoAll(t.Context(), Batch{Calls: batch("look look look look look touch")})
		done <- got
	}()
	for range 5 {
		<-s.began
	}
	if strings.Contains(s.said(), "w") {
		t.Error("a write began beside reads before it")
	}
	for i := range 5 {
		close(s.holds[i])
	}
	if got := <-done; len(got) != 6 || s.most != 5 || !s.alone {
		t.Errorf("%d answers, %d at once, alone %v", len(got), s.most, s.alone)
	}
}

func TestBatchMaxConcurrency(t *testing.T) {
	s := newStage()
	f := newFixture(t, agentsText, s.options())
	for _, order := range []Order{InOrder, Concurrent} {
		s.most = 0
		words := strings.Repeat("look ", 30)
		if _, err := f.DoAll(t.Context(), Batch{Calls: batch(words), MaxConcurrency: 3, Order: order}); err != nil {
			t.Fatal(err)
		}
		if s.most > 3 || s.most == 0 {
			t.Errorf("%s: %d at once", order, s.most)
		}
	}
}

// order: concurrent runs writes beside each other: both are inside at once.
func TestBatchConcurrent(t *testing.T) {
	s := newStage()
	f := newFixture(t, agentsText, s.options())
	s.holds[0], s.holds[1] = make(chan struct{}), make(chan struct{})
	done := make(chan error)
	go func() {
		_, err := f.DoAll(t.Context(), Batch{Calls: batch("touch touch"), Order: Concurrent})
		done <- err
	}()
	<-s.began
	<-s.began
	close(s.holds[0])
	close(s.holds[1])
	f.must(<-done)
}

// A call that waits for a person holds back only the later writes; when it runs, it
// runs alone all the same.
func TestBatchWaits(t *testing.T) {
	s := newStage()
	f := newFixture(t, asking, s.options())
	calls := batch("look erase look touch look")
	calls[1].Patience = 1 << 40
	done := make(chan []Answer)
	go func() {
		got, _ := f.DoAll(t.Context(), Batch{Calls: calls, MaxConcurrency: 1})
		done <- got
	}()
	for range 2 { // both reads that no write but the waiting one stands before
		<-s.began
	}
	if got := s.said(); got != "r0 r2" {
		t.Fatalf("while one waits, these ran: %s", got)
	}
	var id, digest string
	for id == "" { // asked a moment later than the read after it may run
		list := f.pending()
		if len(list) == 1 {
			id, digest = list[0].ID, list[0].Digest
		}
	}
	f.must(f.Decide(t.Context(), approval.Answer{ID: id, Digest: digest, Approve: true}, f.alice()))
	got := <-done
	if said := s.said(); said != "r0 r2 w1 w3 r4" || !s.alone {
		t.Errorf("ran %s, alone %v", said, s.alone)
	}
	for i, a := range got {
		if a.Err != nil || a.Content != fmt.Sprint(i) {
			t.Errorf("%d: %+v", i, a)
		}
	}
}

// One that is not waited for stays pending: reads go on, changes that were meant to
// come after it do not run; all at once, everything goes on.
func TestBatchPending(t *testing.T) {
	s := newStage()
	f := newFixture(t, asking, s.options())
	got, err := f.DoAll(t.Context(), Batch{Calls: batch("touch erase touch look")})
	f.must(err)
	wants(t, got[1].Err, writ.Pending, "a person has to approve")
	wants(t, got[2].Err, writ.Conflict, "held back: call 2 of the batch, a change before this one, waits for a person")
	if got[0].Err != nil || got[3].Err != nil || s.said() != "w0 r3" {
		t.Errorf("%+v %s", got, s.said())
	}
	got, err = f.DoAll(t.Context(), Batch{Calls: batch("erase touch"), Order: Concurrent})
	f.must(err)
	if wants(t, got[0].Err, writ.Pending, ""); got[1].Err != nil {
		t.Errorf("%+v", got)
	}
}

// A panic of the runtime itself is returned after all siblings have ended: the one
// there was, or all of them.
func TestBatchPanics(t *testing.T) {
	s := newStage()
	o := s.options()
	f := newFixture(t, agentsText, o)
	f.Engine.gate = writ.NewGate(panicking{}, approver{f.Engine}, f.desk, runner{f.Engine})
	got, err := f.DoAll(t.Context(), Batch{Calls: batch("look touch look"), MaxConcurrency: 2})
	if err == nil || strings.Count(err.Error(), "out of order") != 3 {
		t.Errorf("%v", err)
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) || len(joined.Unwrap()) != 3 {
		t.Errorf("not joined: %v", err)
	}
	for _, a := range got {
		wants(t, a.Err, writ.Internal, "the runtime failed unexpectedly")
	}
}

type panicking struct{}

func (panicking) Decide(context.Context, writ.Call) (writ.Decision, error) { panic("out of order") }

func TestBatchRefused(t *testing.T) {
	s := newStage()
	f := newFixture(t, agentsText, s.options())
	for _, tt := range []struct {
		b    Batch
		kind writ.Kind
		text string
	}{
		{Batch{}, writ.Invalid, "a batch has at least one call"},
		{Batch{Calls: batch(strings.Repeat("look ", MaxBatch+1))}, writ.TooLarge, "a batch has at most 128 calls, not 129; send several"},
		{Batch{Calls: batch("look"), Order: "random"}, writ.Invalid, `order: "random" is none of in_order, concurrent`},
		{Batch{Calls: batch("look"), MaxConcurrency: -1}, writ.Invalid, "max_concurrency is at least 1"},
	} {
		_, err := f.DoAll(t.Context(), tt.b)
		wants(t, err, tt.kind, tt.text)
	}
	if s.said() != "" {
		t.Errorf("something ran: %s", s.said())
	}
}

// A caller that goes away ends what waits for its turn.
func TestBatchCancelled(t *testing.T) {
	s := newStage()
	f := newFixture(t, agentsText, s.options())
	s.holds[0] = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan []Answer)
	go func() {
		got, _ := f.DoAll(ctx, Batch{Calls: batch("touch touch look")})
		done <- got
	}()
	<-s.began
	cancel()
	close(s.holds[0])
	got := <-done
	wants(t, got[1].Err, writ.Denied, "gave up")
	wants(t, got[2].Err, writ.Denied, "gave up")
	if s.said() != "w0" {
		t.Errorf("ran: %s", s.said())
	}
}
