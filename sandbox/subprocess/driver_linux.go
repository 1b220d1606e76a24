package subprocess

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// Driver starts boxes as confined processes of this host.
type Driver struct {
	opts Options

	mu     sync.Mutex
	probed sandbox.Features // of the first probe that succeeded
}

// startWithin bounds how long a box may take to be ready.
const startWithin = 20 * time.Second

// Start implements sandbox.Driver. Stdin is read until it ends or the box does;
// a reader that blocks forever keeps one goroutine. Writers must not block
// forever: a box whose output nobody takes is not waited out.
func (d *Driver) Start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, error) {
	if err := sandbox.Admit(ctx, d, w); err != nil {
		return nil, err
	}
	return d.start(ctx, w, spec, nil)
}

// start starts a box for a writ whose demands have been checked.
func (d *Driver) start(ctx context.Context, w writ.Writ, spec sandbox.Spec, show []mount) (*box, error) {
	j, err := d.plan(w, spec, show)
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(j)
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the box could not be described", err)
	}
	b, err := launch(j.Launcher, spec)
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the supervisor of the box could not be started", err)
	}
	ready := make(chan error, 1)
	go func() { ready <- b.handshake(append(line, '\n')) }()
	tooLong := time.NewTimer(startWithin)
	defer tooLong.Stop()
	select {
	case err = <-ready:
	case <-ctx.Done():
		b.abandon()
		<-ready
		err = ctx.Err()
	case <-tooLong.C:
		b.abandon()
		<-ready
		err = errors.New("no answer from the supervisor: does the launcher call subprocess.Main?")
	}
	if err != nil {
		b.abandon()
		b.collect()
		return nil, explain(err)
	}
	b.watch(j.Wall)
	return b, nil
}

// launch starts the supervisor with its pipes and the copying of output.
func launch(launcher []string, spec sandbox.Spec) (b *box, err error) {
	b = &box{began: time.Now(), over: make(chan struct{})}
	var theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
	}()
	pipe := func(toBox bool) (ours *os.File) {
		r, w, e := os.Pipe()
		if e != nil {
			err = e
			return nil
		}
		if toBox {
			theirs = append(theirs, r)
			return w
		}
		theirs = append(theirs, w)
		return r
	}
	stdin, stdout, stderr := pipe(true), pipe(false), pipe(false)
	b.control, b.status = pipe(true), pipe(false)
	ours := []*os.File{stdin, stdout, stderr, b.control, b.status}
	if err == nil {
		argv := append(append([]string{}, launcher...), "supervise")
		b.cmd = exec.Command(argv[0], argv[1:]...)
		b.cmd.Dir, b.cmd.Env = "/", launcherEnv
		b.cmd.Stdin, b.cmd.Stdout, b.cmd.Stderr = theirs[0], theirs[1], theirs[2]
		b.cmd.ExtraFiles = theirs[3:]
		b.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		err = b.cmd.Start()
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
	return b, nil
}

// explain turns the failure of a step into an error with something to do.
func explain(err error) error {
	var f *failure
	if !errors.As(err, &f) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return writ.Fail(writ.Stopped, "stopped before the command started", err)
		}
		return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the box could not be set up", err)
	}
	kind, msg := writ.SandboxUnavailable, "sandbox_unavailable: the box could not be set up ("+f.Step+")"
	switch f.Step {
	case stepSpace:
		msg = "sandbox_unavailable: no user or mount namespace can be made; as an ordinary user allow unprivileged user namespaces (user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns), in a container give CAP_SYS_ADMIN"
	case stepMount:
		msg = "sandbox_unavailable: the box's mounts cannot be made; each writable root must exist and be reached without symlinks, and user namespaces must be allowed to mount (on Ubuntu: an AppArmor profile with userns)"
	case stepHide:
		msg = "sandbox_unavailable: " + f.Cause
	case stepLandlock:
		msg = "sandbox_unavailable: Landlock ABI 6 is needed; use Linux 6.12 or later with landlock in the lsm= list of the kernel"
	case stepSeccomp:
		msg = "sandbox_unavailable: seccomp filters are needed; use a kernel with CONFIG_SECCOMP_FILTER on amd64 or arm64"
	case stepDir:
		kind, msg = writ.Invalid, "the working directory cannot be entered by the user of the box; check the modes of the directories above it"
	case stepExec:
		kind, msg = writ.Invalid, "the command cannot be executed: "+f.Cause
	}
	return writ.Fail(kind, msg, err)
}
