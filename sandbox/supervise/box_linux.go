package supervise

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/usage"
)

// errGone says that what was started ended without a word from the supervisor.
var errGone = errors.New("it ended before the command was started")

// A box is what was started, the supervisor in it or which it is, and the pipes to that.
type box struct {
	link   *Link
	terms  Terms
	decode *json.Decoder
	used   func() (usage.Use, error) // nil: it is not measured from here
	copies sync.WaitGroup
	said   *sandbox.Tail // besides the output of the command
	began  time.Time
	over   chan struct{} // closed when the next three are set

	end     end
	endErr  error
	elapsed time.Duration

	mu       sync.Mutex
	limit    string // why it is being ended
	ended    bool   // it is too late for a reason
	writeErr error
}

// hear is the next word of the supervisor.
func (b *box) hear() (status, error) {
	var s status
	if err := b.decode.Decode(&s); err != nil {
		return s, errors.Join(errGone, err)
	}
	if s.Failed != nil {
		return s, s.Failed
	}
	return s, nil
}

// handshake hands the job over and waits until the command runs.
func (b *box) handshake(ctx context.Context, job []byte) error {
	s, err := b.hear()
	if err == nil && !s.Up {
		err = fmt.Errorf("%w: it is not our supervisor", errGone)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err == nil && b.terms.Check != nil {
		err = b.terms.Check()
	}
	if err == nil && b.link.Measure != nil {
		b.used, err = b.link.Measure()
	}
	if err != nil {
		return err
	}
	if _, err := b.link.Control.Write(job); err != nil {
		return err
	}
	if s, err = b.hear(); err == nil && !s.Started {
		err = errors.New("the supervisor did not start the command")
	}
	return err
}

// kill ends the box without asking the supervisor, as far as it can be done.
func (b *box) kill() {
	b.link.Control.Close()
	if b.link.Kill != nil {
		b.link.Kill()
	}
}

// collect waits for what was started and for the end of all output.
func (b *box) collect() {
	<-b.link.Gone
	b.copies.Wait()
	b.link.Control.Close()
	b.link.Status.Close()
}

// watch ends the box at its time limit, where there is one, and notes how it ended.
func (b *box) watch() {
	b.began = time.Now()
	timer := func() bool { return false }
	if b.terms.Wall > 0 { // else as long as it takes
		timer = time.AfterFunc(b.terms.Wall, func() { b.stop("timeout", msgTerm) }).Stop
	}
	if b.used != nil {
		b.terms.Use.Watch(b.over, b.used, func(limit string) { b.stop(limit, msgKill) })
	}
	go func() {
		defer close(b.over)
		s, err := b.hear()
		if err == nil && s.End == nil {
			err = errors.New("the supervisor did not say how the command ended")
		}
		if b.endErr = err; err == nil {
			b.end = *s.End
		} else if b.terms.Holds { // nobody is left who would end what it started
			b.kill()
		}
		b.elapsed = time.Since(b.began)
		timer()
		b.mu.Lock()
		b.ended = true
		b.mu.Unlock()
		b.collect()
	}()
}

// insist is how long the supervisor may take to end everything, before it is killed from
// outside, and all with it.
const insist = 5 * time.Second

// stop tells the supervisor to end the box; the first reason is the one told.
func (b *box) stop(limit string, msg byte) {
	b.mu.Lock()
	if b.limit == "" && !b.ended {
		b.limit = limit
	}
	b.mu.Unlock()
	tell := func(msg byte) { b.link.Control.Write([]byte{msg}) } // fails only when it has ended
	tell(msg)
	last := time.Duration(0)
	if msg == msgTerm {
		last = b.terms.Grace
		time.AfterFunc(last, func() { tell(msgKill) })
	}
	time.AfterFunc(last+insist, func() {
		select {
		case <-b.link.Gone:
		default:
			b.kill()
		}
	})
}

// ErrSilent is why nobody knows how a command ended: its supervisor is gone.
var ErrSilent = errors.New("the supervisor said nothing")

// Wait implements sandbox.Box.
func (b *box) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-b.over:
	case <-ctx.Done():
		b.stop("cancelled", msgKill)
		<-b.over
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	exit := sandbox.Exit{Code: b.end.Code, Signal: b.end.Signal, Limit: cmp.Or(b.limit, b.end.Limit), Elapsed: b.elapsed, CPU: b.end.CPU, Met: b.end.Met}
	if exit.Limit == "" && exit.Code != 0 {
		exit.Limit = exit.Met
	}
	switch {
	case b.endErr != nil && b.limit != "" && b.terms.Holds: // it was killed from outside
		exit.Code, exit.Signal = -1, "killed"
	case b.endErr != nil:
		exit.Code = -1
		left := "processes of the box may be left"
		if b.terms.Holds {
			left = "its processes ended with it"
		}
		return exit, writ.Fail(writ.Internal, "the supervisor of the box ended without a report; "+left, fmt.Errorf("%w: %w: %s", ErrSilent, b.endErr, b.said))
	case b.writeErr != nil:
		return exit, writ.Fail(writ.Internal, "the output of the command could not be delivered", b.writeErr)
	}
	return exit, nil
}

// taken notes that output could not be delivered.
func (b *box) taken(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writeErr = errors.Join(b.writeErr, err)
}
