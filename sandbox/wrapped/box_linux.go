package wrapped

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// errGone says that the wrapper ended without a word from the supervisor.
var errGone = errors.New("the wrapper ended before the command was started")

// A box is a wrapper, the supervisor in it, and the pipes to that.
type box struct {
	cmd     *exec.Cmd
	explain func(said string) error
	control *os.File
	status  *os.File
	decode  *json.Decoder
	grace   time.Duration
	copies  sync.WaitGroup
	said    *sandbox.Tail // by the wrapper itself
	began   time.Time
	gone    chan struct{} // closed when the wrapper has ended
	over    chan struct{} // closed when the next three are set

	end     status
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

// handshake hands the job over and waits until the command runs. check is called when
// the wrapper has done its work, and before anything of the command has begun.
func (b *box) handshake(j Job, check func() error) error {
	s, err := b.hear()
	if err == nil && !s.Up {
		err = fmt.Errorf("%w: it is not our supervisor", errGone)
	}
	if err != nil {
		return err
	}
	if err := check(); err != nil {
		return err
	}
	text, err := j.encode()
	if err != nil {
		return err
	}
	if _, err := b.control.Write(text); err != nil {
		return err
	}
	if s, err = b.hear(); err == nil && !s.Started {
		err = errors.New("the supervisor did not start the command")
	}
	return err
}

// kill ends the box without asking the supervisor.
func (b *box) kill() {
	b.control.Close()
	b.cmd.Process.Kill()
}

// collect waits for the wrapper and for the end of all output.
func (b *box) collect() {
	<-b.gone
	b.copies.Wait()
	b.control.Close()
	b.status.Close()
}

// watch ends the box at its time limit, where there is one, and notes how it ended.
func (b *box) watch(wall time.Duration) {
	timer := func() bool { return false }
	if wall > 0 { // else as long as it takes
		timer = time.AfterFunc(wall, func() { b.stop("timeout", msgTerm) }).Stop
	}
	go func() {
		defer close(b.over)
		b.end, b.endErr = b.hear()
		b.elapsed = time.Since(b.began)
		timer()
		b.mu.Lock()
		b.ended = true
		b.mu.Unlock()
		b.collect()
	}()
}

// insist is how long the supervisor may take to end everything, before the wrapper, and
// all with it, is killed from outside.
const insist = 5 * time.Second

// stop tells the supervisor to end the box; the first reason is the one told.
func (b *box) stop(limit string, msg byte) {
	b.mu.Lock()
	if b.limit == "" && !b.ended {
		b.limit = limit
	}
	b.mu.Unlock()
	tell := func(msg byte) { b.control.Write([]byte{msg}) } // fails only when it has ended
	tell(msg)
	last := time.Duration(0)
	if msg == msgTerm {
		last = b.grace
		time.AfterFunc(b.grace, func() { tell(msgKill) })
	}
	time.AfterFunc(last+insist, func() {
		select {
		case <-b.gone:
		default:
			b.kill()
		}
	})
}

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
	exit := sandbox.Exit{Code: b.end.Code, Signal: b.end.Signal, Limit: cmp.Or(b.limit, b.end.Limit), Elapsed: b.elapsed, CPU: b.end.CPU}
	switch {
	case b.endErr != nil && b.limit != "": // it was killed from outside
		exit.Code, exit.Signal = -1, "killed"
	case b.endErr != nil:
		exit.Code = -1
		return exit, writ.Fail(writ.Internal, "the supervisor of the box ended without a report; its processes ended with it", fmt.Errorf("%w: %s", b.endErr, b.said))
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
