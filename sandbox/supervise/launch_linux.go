package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/usage"
)

// A Launch is how a supervisor is started: as what it is, or by a wrapper around it.
type Launch struct {
	Args, Env []string // the first is the file to execute
	Files     []*os.File
	User      *syscall.Credential // nil: this one
	// Arrange, where there is one, is called on the thread that starts it, which
	// is used for nothing else: it may enter namespaces. It may replace Files.
	Arrange func([]*os.File) error
	// Check, where there is one, is called once the supervisor is up and before anything
	// of the command has begun; its error ends the box.
	Check func() error
	// Explain makes an error of what was said by what ended without a supervisor.
	Explain func(said string) error
	// Holds says that killing what is started ends everything in the box. Where it does
	// not, only the supervisor can, and is let go of instead.
	Holds bool

	Wall  time.Duration // from when the command runs; none: as long as it takes
	Grace time.Duration // between asking and killing
	Use   usage.Limits  // of all that is started
}

// startWithin bounds how long a box may take to be ready.
const startWithin = 20 * time.Second

// Start starts a box for a job, which is what the supervisor's [Up] takes. Until the
// command may have begun, the end of the context ends it. The files of the launch stay the
// caller's.
func Start(ctx context.Context, l Launch, job any, spec sandbox.Spec) (sandbox.Box, error) {
	if err := ctx.Err(); err != nil {
		return nil, writ.Fail(writ.Stopped, "stopped before the command started", err)
	}
	text, err := encode(job)
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the box could not be described", err)
	}
	b, err := l.launch(spec)
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+l.Args[0]+" could not be started; check that it can be executed", err)
	}
	ready := make(chan error, 1)
	go func() { ready <- b.handshake(ctx, text) }()
	tooLong := time.NewTimer(startWithin)
	defer tooLong.Stop()
	// A command that may have begun is not given up when the context ends: Wait ends it
	// then, and tells how it ended.
	select {
	case err = <-ready:
	case <-tooLong.C:
		b.kill()
		<-ready
		err = errors.New("no answer from inside the box: does the program call the Main of its driver first?")
	}
	if err != nil {
		b.kill()
		b.collect()
		return nil, b.why(err)
	}
	b.watch()
	return b, nil
}

// launch starts it with its pipes and the copying of output.
func (l Launch) launch(spec sandbox.Spec) (b *box, err error) {
	b = &box{launch: l, said: sandbox.NewTail(4 << 10), gone: make(chan struct{}), over: make(chan struct{})}
	var ours, theirs []*os.File
	pipe := func(toBox bool) *os.File {
		r, w, e := os.Pipe()
		if e != nil {
			err = e
			return nil
		}
		if toBox {
			r, w = w, r
		}
		ours, theirs = append(ours, r), append(theirs, w)
		return r
	}
	b.control, b.status = pipe(true), pipe(false)
	stdin, stdout, stderr, said := pipe(true), pipe(false), pipe(false), pipe(false)
	if err == nil {
		b.cmd = &exec.Cmd{Path: l.Args[0], Args: l.Args, Dir: "/", Env: l.Env, Stdout: theirs[5], Stderr: theirs[5]}
		b.cmd.ExtraFiles = append(theirs[:5:5], l.Files...)
		b.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: l.User}
		err = b.run()
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		for _, f := range ours {
			f.Close()
		}
		return nil, err
	}
	b.decode = json.NewDecoder(io.LimitReader(b.status, 1<<20))
	go sandbox.Feed(stdin, spec.Stdin)
	b.copies.Go(func() { b.taken(sandbox.Drain(spec.Stdout, stdout)) })
	b.copies.Go(func() { b.taken(sandbox.Drain(spec.Stderr, stderr)) })
	b.copies.Go(func() { sandbox.Drain(b.said, said) })
	return b, nil
}

// run starts it from a thread that lives as long as that: a wrapper that dies
// with its parent dies with the thread that started it.
func (b *box) run() error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := error(nil)
		if b.launch.Arrange == nil {
			defer runtime.UnlockOSThread()
		} else { // the thread ends with this: it is not what it was
			err = b.launch.Arrange(b.cmd.ExtraFiles[FirstFile-fdControl:])
		}
		if err == nil {
			err = b.cmd.Start()
		}
		started <- err
		if err == nil {
			b.cmd.Wait() // its exit status says nothing that the supervisor does not
			close(b.gone)
		}
	}()
	return <-started
}

// why turns a failed start into an error with something to do.
func (b *box) why(err error) error {
	var known *writ.Error
	var f *Failure
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return writ.Fail(writ.Stopped, "stopped before the command started", err)
	case errors.As(err, &f):
		return f.explain()
	case errors.Is(err, errGone):
		return b.launch.Explain(b.said.String())
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the box could not be set up", err)
}
