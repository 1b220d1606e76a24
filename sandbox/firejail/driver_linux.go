package firejail

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/wrapped"
)

// Driver starts boxes with firejail.
type Driver struct {
	opts Options

	mu     sync.Mutex
	probed sandbox.Features // of the first probe that succeeded
}

const install = "install firejail (Debian: apt-get install firejail)"

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
	if show[p.Path] != "" {
		p.Path = wrapped.Self
	}
	jail, err := wrapped.Find(Name, install)
	if err != nil {
		return nil, err
	}
	program, err := d.program()
	if err != nil {
		return nil, err
	}
	f, err := newProfile(p)
	if err != nil {
		return nil, refused(err)
	}
	file, err := f.file()
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the box could not be described", err)
	}
	defer file.Close()
	job, err := f.job()
	if err != nil {
		return nil, refused(err)
	}
	l := wrapped.Launch{
		Args: append([]string{jail, "--quiet", fmt.Sprintf("--profile=/proc/self/fd/%d", wrapped.FirstFile), "--keep-fd=all", "--"}, wrapped.Command...),
		// The user's shell, which firejail starts commands with, may be none.
		Env:     []string{"PATH=/usr/bin:/bin", "SHELL=/bin/sh"},
		Program: program, Files: []*os.File{file}, Explain: explain,
	}
	if p.Root {
		l.User = &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.GID)}
	}
	return wrapped.Start(ctx, l, job, spec, p.Wall, p.Grace, f.check)
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

// own is how many processes firejail itself has as the user of the box.
const own = 2

// job is what becomes of the process inside. Since the box sees the host's tree, Landlock
// allows only what the plan names.
func (f *profile) job() (wrapped.Job, error) {
	p, any := f.plan, !f.plan.Listed
	sealed, err := wrapped.FileSystems(kernels)
	if err != nil {
		return wrapped.Job{}, err
	}
	var grants []wrapped.Grant
	add := func(paths []string, g wrapped.Grant) {
		for _, g.Path = range paths {
			grants = append(grants, g)
		}
	}
	add(reach.GlobAll(reach.SystemFiles), wrapped.Grant{Read: true})
	add([]string{"/proc"}, wrapped.Grant{Read: true}) // of the box's own processes
	add(reach.SystemDevices, wrapped.Grant{Device: true})
	add(p.System, wrapped.Grant{Read: true, Exec: any})
	add(reach.PrivateDirs, wrapped.Grant{Write: true, Exec: any})
	add(p.Read, wrapped.Grant{Read: true, Exec: any, Strict: true})
	add(p.Write, wrapped.Grant{Write: true, Exec: any, Strict: true})
	if p.List {
		add([]string{"/"}, wrapped.Grant{List: true})
	}
	if p.Listed {
		add(append(slices.Clone(p.Programs), p.Path), wrapped.Grant{Read: true, Exec: true})
		add(reach.GlobAll(reach.Loaders), wrapped.Grant{Read: true, Exec: true})
	}
	limits := p.Limits
	limits.Pids += wrapped.ThreadsOf(p.UID) + own
	return wrapped.Job{
		Path: p.Path, Argv: p.Argv, Env: p.Env, Dir: p.Dir, Listed: p.Listed, Limits: limits,
		Grants: grants, Make: []string{reach.PrivateHome}, Watch: reach.PrivateDirs, Hidden: f.hidden, Sealed: sealed, Writable: p.Write,
	}, nil
}

// Probe implements sandbox.Driver. The first result is kept; an error is not.
func (d *Driver) Probe(ctx context.Context) (sandbox.Features, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.probed != nil {
		return d.probed, nil
	}
	if wrapped.LandlockABI() < wrapped.NeedABI {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver firejail needs Landlock ABI 6; use Linux 6.12 or later with landlock in the lsm= list of the kernel", nil)
	}
	program, err := d.program()
	if err != nil {
		return nil, err
	}
	found, err := probe.Run(ctx, program, d.start,
		sandbox.Finding{Feature: sandbox.HostAllowlist, Evidence: "not claimed: no socket can be made at all; reaching single hosts needs the egress broker, which is not built into this version"},
		sandbox.Finding{Feature: sandbox.Containerized, Evidence: "not claimed: the box sees the names in the host's tree; use driver native or bwrap, or code_execution: process"})
	if err != nil {
		return nil, err
	}
	d.probed = found
	return found, nil
}

// refused is the error for a box that firejail cannot make.
func refused(err error) error {
	var known *writ.Error
	if errors.As(err, &known) {
		return err
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
}

// explain turns what firejail said into an error with something to do.
func explain(said string) error {
	msg := "the box could not be set up by firejail; look at what it said in the log of the daemon"
	switch {
	case strings.Contains(said, "not allowed to use Firejail"):
		msg = "firejail does not take this user; add it to /etc/firejail/firejail.users"
	case strings.Contains(said, "clone"), strings.Contains(said, "unshare"):
		msg = "firejail can make no namespaces; check that it is set-user-ID root, in a container give CAP_SYS_ADMIN"
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+msg, errors.New(strings.TrimSpace(said)))
}
