package native

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
)

// A box is one command in a cell.
type box struct {
	conn   *conn
	script *script
	grace  time.Duration
	copies sync.WaitGroup
	began  time.Time
	over   chan struct{} // closed when the next three are set

	exit    sandbox.Exit
	endErr  error
	elapsed time.Duration

	mu       sync.Mutex
	limit    string // why it is being ended
	writeErr error
}

// run starts the command of a cell, which is used up by it.
func (c *cell) run(p *reach.Plan, spec sandbox.Spec, show map[string]string) (*box, error) {
	b := &box{conn: c.conn, script: &script{}, grace: p.Grace, began: time.Now(), over: make(chan struct{})}
	var pipes [3][2]*os.File
	shut := func() {
		for _, pair := range pipes {
			for _, f := range pair {
				if f != nil {
					f.Close()
				}
			}
		}
	}
	for i := range pipes {
		var err error
		if pipes[i][0], pipes[i][1], err = os.Pipe(); err != nil {
			shut()
			return nil, err
		}
	}
	theirs := []*os.File{pipes[0][0], pipes[1][1], pipes[2][1]}
	r := &root{script: b.script, skeleton: c.kind, plan: p}
	r.private()
	err := r.showAll(show)
	if err == nil {
		r.finish()
		err = r.become(p, [3]int{fdOf(theirs[0]), fdOf(theirs[1]), fdOf(theirs[2])})
	}
	if err == nil {
		err = c.conn.send(b.script, inChild, 0, "", "")
	}
	if err == nil {
		_, err = c.conn.expect(saysReady, b.script)
	}
	if err != nil {
		shut()
		return nil, err
	}
	for _, f := range theirs {
		f.Close()
	}
	go sandbox.Feed(pipes[0][1], spec.Stdin)
	b.copies.Go(func() { b.taken(sandbox.Drain(spec.Stdout, pipes[1][0])) })
	b.copies.Go(func() { b.taken(sandbox.Drain(spec.Stderr, pipes[2][0])) })
	b.watch(p.Wall)
	return b, nil
}

func fdOf(f *os.File) int { return int(f.Fd()) }

// watch ends the box at its time limit, and notes how it ended.
func (b *box) watch(wall time.Duration) {
	timer := time.AfterFunc(wall-time.Since(b.began), func() { b.stop("timeout", 't') })
	go func() {
		defer close(b.over)
		defer timer.Stop()
		b.endErr = b.listen()
		b.copies.Wait()
		b.elapsed = time.Since(b.began)
		b.conn.close()
	}()
}

// listen hears how the command ended, and then that nothing of it is left.
func (b *box) listen() error {
	for {
		r, err := b.conn.next()
		if err != nil {
			return err
		}
		switch r.What {
		case saysFailed:
			return b.script.failure(r)
		case saysEnded:
			status := syscall.WaitStatus(r.A)
			b.exit.Code = status.ExitStatus()
			if status.Signaled() {
				b.exit.Code, b.exit.Signal = -1, status.Signal().String()
			}
		case saysCleared:
			b.exit.CPU = time.Duration(r.User+r.System) * time.Microsecond
			return nil
		}
	}
}

// stop tells the box to end, 't' with time to clean up or 'k' at once; the first reason
// is the one told.
func (b *box) stop(limit string, how byte) {
	b.mu.Lock()
	if b.limit == "" {
		b.limit = limit
	}
	b.mu.Unlock()
	b.conn.tell(how)
	if how == 't' {
		time.AfterFunc(b.grace, func() { b.conn.tell('k') })
	}
}

// Wait implements sandbox.Box.
func (b *box) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-b.over:
	case <-ctx.Done():
		b.stop("cancelled", 'k')
		<-b.over
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	exit := b.exit
	exit.Limit, exit.Elapsed = b.limit, b.elapsed
	var f *failure
	switch {
	case errors.As(b.endErr, &f):
		exit.Code = -1
		return exit, explain(b.endErr)
	case b.endErr != nil:
		exit.Code = -1
		return exit, writ.Fail(writ.Internal, "the launcher of the box ended without a report", b.endErr)
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
