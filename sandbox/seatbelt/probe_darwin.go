package seatbelt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/unasked"
)

// notClaimed is what a profile cannot hold.
var notClaimed = sandbox.Features{
	{Feature: sandbox.WholeTreeDies, Evidence: "not claimed: a process in a session of its own outlives the command, and macOS has no namespace of processes; use driver docker"},
	{Feature: sandbox.Unprivileged, Evidence: "not claimed: nobody has shown yet what a set-id program may do under a profile"},
	{Feature: sandbox.OwnProcesses, Evidence: "not claimed: nobody has shown yet that no other way to a process of the same user is open"},
	{Feature: sandbox.ProcessTable, Evidence: "not claimed: the host's process table is shared"},
	{Feature: sandbox.LimitMemory, Evidence: "not claimed: macOS does not enforce RLIMIT_AS"},
	{Feature: sandbox.LimitPids, Evidence: "not claimed: processes of a user are counted together"},
	{Feature: sandbox.HostAllowlist, Evidence: "not claimed: a box has no network; driver native reaches single hosts"},
	{Feature: sandbox.SSHAgent, Evidence: sandbox.NoAgent},
	{Feature: sandbox.Containerized, Evidence: "not claimed: a profile is no container"},
}

// Probe implements sandbox.Driver. The first result is kept; an error is not.
func (d *Driver) Probe(ctx context.Context) (sandbox.Features, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.probed != nil {
		return d.probed, nil
	}
	dir, err := os.MkdirTemp("", "writ-probe-")
	if err == nil {
		defer os.RemoveAll(dir)
		dir, err = filepath.EvalSymlinks(dir)
	}
	r := &trial{driver: d, dir: dir}
	if err == nil {
		err = r.prepare()
	}
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the probe could not be prepared; the temporary directory must be writable", err)
	}
	defer r.listener.Close()
	found, err := r.all(ctx)
	if err != nil {
		return nil, err
	}
	d.probed = append(found, notClaimed...)
	return d.probed, nil
}

// A trial is a place to attack.
type trial struct {
	driver   *Driver
	dir      string
	listener net.Listener
}

func (r *trial) prepare() error {
	var err error
	for _, sub := range []string{"write", "read", "read/hidden"} {
		err = errors.Join(err, os.Mkdir(filepath.Join(r.dir, sub), 0o755))
	}
	for _, file := range []string{"secret", "read/file", "read/hidden/canary"} {
		err = errors.Join(err, os.WriteFile(filepath.Join(r.dir, file), []byte("canary"), 0o644))
	}
	if err == nil {
		r.listener, err = net.Listen("tcp", "127.0.0.1:0")
	}
	return err
}

// all tries, for each feature, what may be done and what may not.
func (r *trial) all(ctx context.Context) (sandbox.Features, error) {
	var out sandbox.Features
	for _, t := range []struct {
		feature         sandbox.Feature
		control, attack string
	}{
		{sandbox.FileRead, `cat "$1/read/file"`, `cat "$1/secret"`},
		{sandbox.FileWrite, `echo x >"$1/write/file"`, `echo x >"$1/read/file" || chmod 777 "$1/read/file" || touch -t 200101010000 "$1/read/file"`},
		{sandbox.StateHidden, `ls "$1/read"`, `cat "$1/read/hidden/canary" || ls "$1/read/hidden"`},
		{sandbox.ExecListed, `/bin/cat /dev/null`, `/usr/bin/id || { /bin/cp /bin/cat "$1/write/c" && "$1/write/c" /dev/null; }`},
		{sandbox.NoNetwork, `true`, `exec 3<>"/dev/tcp/127.0.0.1/$2"`},
	} {
		listed := t.feature == sandbox.ExecListed
		if exit, err := r.once(ctx, t.control, listed, 10*time.Second); err != nil || exit.Code != 0 {
			if err != nil {
				return nil, err
			}
			out = append(out, sandbox.Finding{Feature: t.feature, Evidence: fmt.Sprintf("inconclusive: %s: exit %d", t.control, exit.Code)})
			continue
		}
		exit, err := r.once(ctx, t.attack, listed, 10*time.Second)
		if err != nil {
			return nil, err
		}
		out = append(out, sandbox.Finding{Feature: t.feature, Enforced: exit.Code != 0, Evidence: fmt.Sprintf("%s: exit %d", t.attack, exit.Code)})
	}
	exit, err := r.once(ctx, "while :; do :; done", false, 100*time.Millisecond)
	if err != nil {
		return nil, err
	}
	return append(out,
		sandbox.Finding{Feature: sandbox.LimitWall, Enforced: exit.Limit == "timeout", Evidence: "a loop without end with a limit of 100 ms: ended by " + exit.Limit},
		sandbox.Finding{Feature: sandbox.LimitOutput, Enforced: true, Evidence: "output is streamed to the caller, who keeps a bounded part"}), nil
}

// once runs a built-in script, which touches nothing but what the probe made.
func (r *trial) once(ctx context.Context, script string, listed bool, wall time.Duration) (exit sandbox.Exit, err error) {
	c := writ.Confinement{
		Read: []string{filepath.Join(r.dir, "read")}, Write: []string{filepath.Join(r.dir, "write")}, Hide: []string{filepath.Join(r.dir, "read/hidden")},
		Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process, Limits: writ.Limits{Wall: wall, Grace: 10 * time.Millisecond},
	}
	if listed {
		c.Exec = writ.Exec{Mode: writ.ExecListed, Files: []string{"/bin/cat", "/bin/cp"}}
	}
	err = unasked.Do(ctx, c, "", func(ctx context.Context, w writ.Writ) error {
		port := r.listener.Addr().(*net.TCPAddr).Port
		b, err := r.driver.start(ctx, w, sandbox.Spec{Argv: []string{"/bin/bash", "-c", script, "probe", r.dir, fmt.Sprint(port)}})
		if err == nil {
			exit, err = b.Wait(ctx)
		}
		return err
	})
	return exit, err
}
