package seatbelt

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// A box is one command in a process group of its own.
type box struct {
	cmd     *exec.Cmd
	private string
	grace   time.Duration
	began   time.Time
	copies  sync.WaitGroup
	over    chan struct{} // closed when elapsed is set
	elapsed time.Duration

	mu       sync.Mutex
	limit    string // why it is being ended
	writeErr error
}

func launch(argv, env []string, dir, private string, spec sandbox.Spec, wall, grace time.Duration) (*box, error) {
	b := &box{private: private, grace: grace, began: time.Now(), over: make(chan struct{})}
	b.cmd = &exec.Cmd{Path: argv[0], Args: argv, Dir: dir, Env: env, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	stdin, err := b.cmd.StdinPipe()
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the box has no pipes", err)
	}
	out, outTheirs, err := os.Pipe()
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the box has no pipes", err)
	}
	defer outTheirs.Close()
	errs, errsTheirs, err := os.Pipe()
	if err != nil {
		out.Close()
		return nil, writ.Fail(writ.Internal, "the box has no pipes", err)
	}
	defer errsTheirs.Close()
	b.cmd.Stdout, b.cmd.Stderr = outTheirs, errsTheirs
	if err := b.cmd.Start(); err != nil {
		out.Close()
		errs.Close()
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+sandboxExec+" could not be started; it is a part of macOS", err)
	}
	go sandbox.Feed(stdin, spec.Stdin)
	b.copies.Go(func() { b.taken(sandbox.Drain(spec.Stdout, out)) })
	b.copies.Go(func() { b.taken(sandbox.Drain(spec.Stderr, errs)) })
	timer := time.AfterFunc(wall, func() { b.stop("timeout", syscall.SIGTERM) })
	go func() {
		defer close(b.over)
		b.cmd.Wait() // how it ended is in its state
		timer.Stop()
		b.signal(syscall.SIGKILL) // what it left in its group
		b.copies.Wait()
		os.RemoveAll(b.private)
		b.elapsed = time.Since(b.began)
	}()
	return b, nil
}

func (b *box) signal(s syscall.Signal) { syscall.Kill(-b.cmd.Process.Pid, s) }

// stop ends the box; the first reason is the one told.
func (b *box) stop(limit string, s syscall.Signal) {
	b.mu.Lock()
	if b.limit == "" {
		b.limit = limit
	}
	b.mu.Unlock()
	b.signal(s)
	if s != syscall.SIGKILL {
		time.AfterFunc(b.grace, func() {
			select {
			case <-b.over: // the number may be another's by now
			default:
				b.signal(syscall.SIGKILL)
			}
		})
	}
}

// Wait implements sandbox.Box.
func (b *box) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-b.over:
	case <-ctx.Done():
		b.stop("cancelled", syscall.SIGKILL)
		<-b.over
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	state := b.cmd.ProcessState
	exit := sandbox.Exit{Code: state.ExitCode(), Limit: b.limit, Elapsed: b.elapsed, CPU: state.UserTime() + state.SystemTime()}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		exit.Code, exit.Signal = -1, ws.Signal().String()
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
