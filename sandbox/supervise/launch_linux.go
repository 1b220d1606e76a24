package supervise

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"syscall"

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
	Terms
}

// Start starts a box for a job, which is what the supervisor's [Up] takes. Until the
// command may have begun, the end of the context ends it. The files of the launch stay the
// caller's.
func Start(ctx context.Context, l Launch, job any, spec sandbox.Spec) (sandbox.Box, error) {
	if err := stopped(ctx); err != nil {
		return nil, err
	}
	link, err := l.launch()
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+l.Args[0]+" could not be started; check that it can be executed", err)
	}
	return Over(ctx, link, l.Terms, job, spec)
}

// launch starts it with its pipes.
func (l Launch) launch() (*Link, error) {
	link := &Link{}
	var err error
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
	control, status := pipe(true), pipe(false)
	stdin, stdout, stderr, said := pipe(true), pipe(false), pipe(false), pipe(false)
	if err == nil {
		cmd := &exec.Cmd{Path: l.Args[0], Args: l.Args, Dir: "/", Env: l.Env, Stdout: theirs[5], Stderr: theirs[5]}
		cmd.ExtraFiles = append(theirs[:5:5], l.Files...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: l.User}
		gone := make(chan struct{})
		*link = Link{control, status, stdin, stdout, stderr, said, nil, gone, nil}
		err = l.run(cmd, gone)
		link.Measure = func() (func() (usage.Use, error), error) {
			before, err := usage.Tree(cmd.Process.Pid) // the supervisor, and what it is wrapped in, are launchers
			return func() (usage.Use, error) { return usage.Of(cmd.Process.Pid, before...) }, err
		}
		if l.Holds {
			link.Kill = func() { cmd.Process.Kill() }
		}
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
	return link, nil
}

// run starts it from a thread that lives as long as that: a wrapper that dies
// with its parent dies with the thread that started it.
func (l Launch) run(cmd *exec.Cmd, gone chan<- struct{}) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := error(nil)
		if l.Arrange == nil {
			defer runtime.UnlockOSThread()
		} else { // the thread ends with this: it is not what it was
			err = l.Arrange(cmd.ExtraFiles[FirstFile-fdControl:])
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
		if err == nil {
			cmd.Wait() // its exit status says nothing that the supervisor does not
			close(gone)
		}
	}()
	return <-started
}
