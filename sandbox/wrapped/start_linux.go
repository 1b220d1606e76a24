package wrapped

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
	"golang.org/x/sys/unix"
)

// A Launch is a wrapper that is to run Command.
type Launch struct {
	Args    []string // of the wrapper, whose file is the first
	Env     []string // of the wrapper
	Program string   // this program
	Files   []*os.File
	User    *syscall.Credential // nil: this one
	// Arrange, where there is one, is called on the thread that starts the wrapper, which
	// is used for nothing else: it may enter namespaces. It may replace Files.
	Arrange func([]*os.File) error
	// Explain makes an error of what a wrapper said that ended without starting.
	Explain func(said string) error
}

// startWithin bounds how long a box may take to be ready.
const startWithin = 20 * time.Second

// Start starts a box. check is called once it is made and before anything of the command
// has begun; its error ends the box, and so does the end of the context until then. The
// time limit counts from when the command runs. The files of the launch stay the caller's.
func Start(ctx context.Context, l Launch, j Job, spec sandbox.Spec, wall, grace time.Duration, check func() error) (sandbox.Box, error) {
	if err := ctx.Err(); err != nil {
		return nil, writ.Fail(writ.Stopped, "stopped before the command started", err)
	}
	b, err := l.launch(spec)
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+l.Args[0]+" could not be started; check that it can be executed", err)
	}
	b.grace = grace
	ready := make(chan error, 1)
	go func() { ready <- b.handshake(j, func() error { return errors.Join(ctx.Err(), check()) }) }()
	tooLong := time.NewTimer(startWithin)
	defer tooLong.Stop()
	// A command that may have begun is not given up when the context ends: Wait ends it
	// then, and tells how it ended.
	select {
	case err = <-ready:
	case <-tooLong.C:
		b.kill()
		<-ready
		err = errors.New("no answer from inside the box: does the program call wrapped.Main?")
	}
	if err != nil {
		b.kill()
		b.collect()
		return nil, b.why(err)
	}
	b.began = time.Now()
	b.watch(wall)
	return b, nil
}

// launch starts the wrapper with its pipes and the copying of output.
func (l Launch) launch(spec sandbox.Spec) (*box, error) {
	b := &box{explain: l.Explain, began: time.Now(), said: sandbox.NewTail(4 << 10), gone: make(chan struct{}), over: make(chan struct{})}
	program, err := os.OpenFile(l.Program, unix.O_PATH, 0)
	if err != nil {
		return nil, err
	}
	theirs := []*os.File{program}
	var ours []*os.File
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
		b.cmd = &exec.Cmd{Path: l.Args[0], Args: l.Args, Dir: "/", Env: l.Env, Stdout: theirs[6], Stderr: theirs[6]}
		b.cmd.ExtraFiles = append([]*os.File{theirs[1], theirs[2], theirs[3], theirs[4], theirs[5], program}, l.Files...)
		b.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: l.User}
		err = b.run(l.Arrange)
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

// run starts the wrapper from a thread that lives as long as that: a wrapper that dies
// with its parent dies with the thread that started it.
func (b *box) run(arrange func([]*os.File) error) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if arrange == nil {
			defer runtime.UnlockOSThread()
		} // else the thread ends with this: it is not what it was
		err := error(nil)
		if arrange != nil {
			err = arrange(b.cmd.ExtraFiles[FirstFile-fdControl:])
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
	var f *failure
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return writ.Fail(writ.Stopped, "stopped before the command started", err)
	case errors.As(err, &f):
		return f.explain()
	case errors.Is(err, errGone):
		return b.explain(b.said.String())
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the box could not be set up", err)
}

func (f *failure) explain() error {
	switch f.Step {
	case stepLandlock:
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: Landlock ABI 6 is needed; use Linux 6.12 or later with landlock in the lsm= list of the kernel", f)
	case stepSeccomp:
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: seccomp filters are needed; use a kernel with CONFIG_SECCOMP_FILTER on amd64 or arm64", f)
	case stepHide:
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+f.Cause+"; something moved it while the box was made, try again", f)
	case stepSeal:
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+f.Step+": "+f.Cause, f)
	case stepDir:
		return writ.Fail(writ.Invalid, "the working directory cannot be entered by the user of the box; check the modes of the directories above it", f)
	case stepExec:
		return writ.Fail(writ.Invalid, "the command cannot be executed: "+f.Cause, f)
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the box could not be set up ("+f.Step+")", f)
}
