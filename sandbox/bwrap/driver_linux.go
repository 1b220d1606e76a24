package bwrap

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/wrapped"
)

// Driver starts boxes with bubblewrap.
type Driver struct {
	opts Options

	mu     sync.Mutex
	probed sandbox.Features // of the first probe that succeeded
}

const install = "install bubblewrap (Debian: apt-get install bubblewrap)"

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
func (d *Driver) start(ctx context.Context, w writ.Writ, spec sandbox.Spec, show map[string]string) (sandbox.Box, error) {
	var shown []string
	for at := range show {
		shown = append(shown, at)
	}
	p, err := reach.Of(w, spec, d.opts.Options, shown...)
	if err != nil {
		return nil, err
	}
	bwrap, err := wrapped.Find(Name, install)
	if err != nil {
		return nil, err
	}
	program, err := d.program()
	if err != nil {
		return nil, err
	}
	if show[p.Path] != "" {
		p.Path = wrapped.Self
	}
	v := &view{plan: p}
	defer v.close()
	if err := v.build(); err != nil {
		return nil, refused(err)
	}
	args, err := v.options()
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the box could not be described", err)
	}
	l := wrapped.Launch{
		Args: append([]string{bwrap, "--args", args, "--"}, wrapped.Command...), Env: []string{},
		Program: program, Files: v.files, Explain: explain,
	}
	if p.Root {
		l.User, l.Arrange = &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.GID)}, v.stage
	}
	return wrapped.Start(ctx, l, v.job(), spec, p.Wall, p.Grace, v.check)
}

func (d *Driver) program() (string, error) {
	if d.opts.Program != "" {
		return d.opts.Program, nil
	}
	program, err := os.Executable()
	if err != nil {
		return "", writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: this program's own file cannot be found", err)
	}
	return program, nil
}

// Probe implements sandbox.Driver. The first result is kept; an error is not.
func (d *Driver) Probe(ctx context.Context) (sandbox.Features, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.probed != nil {
		return d.probed, nil
	}
	if wrapped.LandlockABI() < wrapped.NeedABI {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver bwrap needs Landlock ABI 6; use Linux 6.12 or later with landlock in the lsm= list of the kernel", nil)
	}
	program, err := d.program()
	if err != nil {
		return nil, err
	}
	found, err := probe.Run(ctx, program, d.start,
		sandbox.Finding{Feature: sandbox.HostAllowlist, Evidence: "not claimed: a box has no network but its own; reaching single hosts needs the egress broker, which is not built into this version"},
		sandbox.Finding{Feature: sandbox.Containerized, Enforced: true, Evidence: "process table, network, mounts, users, IPC, host name and cgroups are its own"})
	if err != nil {
		return nil, err
	}
	d.probed = found
	return found, nil
}

// refused is the error for a box that cannot be shown what it is to see.
func refused(err error) error {
	var known *writ.Error
	if errors.As(err, &known) {
		return err
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
}

// explain turns what bubblewrap said into an error with something to do.
func explain(said string) error {
	msg := "the box could not be set up by bubblewrap; look at what it said in the log of the daemon"
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(said, w) {
				return true
			}
		}
		return false
	}
	switch {
	case has("Unknown option"):
		msg = "bubblewrap is too old; install one that has --bind-fd (0.10, or an update of an older one for CVE-2024-42472)"
	case has("Creating new namespace failed", "No permissions to create", "setting up uid map", "loopback: Failed"):
		msg = "bubblewrap can make no namespaces; allow unprivileged user namespaces (user.max_user_namespaces, kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, on Ubuntu an AppArmor profile for bwrap with userns)"
	case has("Can't mount proc"):
		msg = "bubblewrap cannot mount /proc; in a container do not mask /proc"
	case has("execvp"):
		msg = "bubblewrap cannot execute this program inside; its file must be executable for every user"
	case has("Can't mkdir", "Can't create file", "Can't find source path"):
		msg = "there is no place in a box for something that it is to see; name a directory above it"
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+msg, errors.New(strings.TrimSpace(said)))
}
