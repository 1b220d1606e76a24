package subprocess

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// A box is one supervisor and the pipes to it.
type box struct {
	cmd     *exec.Cmd
	control *os.File // to the supervisor; its end is the end of the box
	status  *os.File
	decode  *json.Decoder
	copies  sync.WaitGroup
	began   time.Time
	over    chan struct{} // closed when the next three are set

	end     status
	endErr  error
	elapsed time.Duration

	mu       sync.Mutex
	limit    string // why it is being ended
	writeErr error
}

// handshake hands the job over and waits until the command runs.
func (b *box) handshake(line []byte) error {
	if _, err := b.control.Write(line); err != nil {
		return err
	}
	var s status
	if err := b.decode.Decode(&s); err != nil {
		return err
	}
	if s.Failed != nil {
		return s.Failed
	}
	if !s.Started {
		return errors.New("the supervisor did not start the command")
	}
	return nil
}

// abandon kills the box by letting go of it.
func (b *box) abandon() { b.control.Close() }

// collect waits for the supervisor to end and its output with it.
func (b *box) collect() {
	b.copies.Wait()
	b.cmd.Wait() // its exit status says nothing that its report does not
	b.control.Close()
	b.status.Close()
}

// watch ends the box at its time limit, and notes how it ended.
func (b *box) watch(wall time.Duration) {
	timer := time.AfterFunc(wall-time.Since(b.began), func() { b.stop("timeout", msgTerm) })
	go func() {
		defer close(b.over)
		defer timer.Stop()
		b.endErr = b.decode.Decode(&b.end)
		if b.endErr == nil && b.end.Failed != nil {
			b.endErr = b.end.Failed
		}
		b.collect()
		b.elapsed = time.Since(b.began)
	}()
}

// stop tells the supervisor to end the box; the first reason is the one told.
func (b *box) stop(limit string, msg byte) {
	b.mu.Lock()
	if b.limit == "" {
		b.limit = limit
	}
	b.mu.Unlock()
	b.control.Write([]byte{msg}) // fails only when the supervisor has ended
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
	exit := sandbox.Exit{Code: b.end.Code, Signal: b.end.Signal, Limit: b.limit, Elapsed: b.elapsed, CPU: b.end.CPU}
	if b.endErr != nil {
		exit.Code = -1
		return exit, writ.Fail(writ.Internal, "the supervisor of the box ended without a report; processes of the box may be left", b.endErr)
	}
	if b.writeErr != nil {
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
