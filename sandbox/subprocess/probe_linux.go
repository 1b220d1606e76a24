package subprocess

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// probeAt is where this program is shown inside a probing box.
const probeAt = privateTmp + "/writ-probe"

// Probe implements sandbox.Driver. The first result is kept; an error is not.
func (d *Driver) Probe(ctx context.Context) (sandbox.Features, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.probed != nil {
		return d.probed, nil
	}
	found, err := d.probe(ctx)
	if err != nil {
		return nil, err
	}
	d.probed = found
	return found, nil
}

// probe sets up things to attack, attacks them from inside a box, and looks at
// what became of them.
func (d *Driver) probe(ctx context.Context) (sandbox.Features, error) {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	range_, err := newRange(d.opts.Launcher)
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the probe could not be prepared; the temporary directory must be writable", err)
	}
	defer range_.close()
	args, err := json.Marshal(range_.targets)
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the probe could not be described", err)
	}
	out, flood := sandbox.NewTail(1<<20), sandbox.NewTail(probeKept)
	spec := sandbox.Spec{Argv: []string{probeAt, verb, "probe", string(args)}, Stdout: out, Stderr: flood, Env: map[string]string{"GORACE": "atexit_sleep_ms=0"}}
	exit, err := d.runProbe(ctx, range_.confinement(10*time.Second), spec, range_.show())
	if err != nil {
		return nil, err
	}
	var told report
	if err := json.Unmarshal([]byte(out.String()), &told); err != nil || exit.Code != 0 {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the probe did not finish inside the box",
			fmt.Errorf("exit %d %s, %w, it said: %q", exit.Code, exit.Signal, err, flood.String()))
	}
	told.add(sandbox.WholeTreeDies, "a process in a session of its own, after the command ended", gone(told.Left))
	told.add(sandbox.LimitOutput, fmt.Sprintf("keeping all of %d bytes of output", flood.Total()), floodCut(flood))
	exit, err = d.runProbe(ctx, range_.confinement(30*time.Millisecond), sandbox.Spec{Argv: []string{"sleep", "60"}}, nil)
	if err != nil {
		return nil, err
	}
	told.add(sandbox.LimitWall, "sleeping for a minute with a limit of 30 ms", limited(exit))
	return told.features(), nil
}

// runProbe runs a built-in command through a gate of its own, since nothing runs
// without a writ.
func (d *Driver) runProbe(ctx context.Context, c writ.Confinement, spec sandbox.Spec, show []mount) (exit sandbox.Exit, err error) {
	p := prober{c, func(ctx context.Context, w writ.Writ) error {
		b, err := d.start(ctx, w, spec, show)
		if err == nil {
			exit, err = b.Wait(ctx)
		}
		return err
	}}
	_, err = writ.NewGate(p, p, p, p).Do(ctx, writ.Call{ID: "probe", Agent: Name, Tool: "probe", Definition: writ.Digest{1}, Resolved: true})
	return exit, err
}

// A prober allows and runs its one built-in command. It records nothing: the
// command is this program's own and touches nothing but what the probe made.
type prober struct {
	confine writ.Confinement
	run     func(context.Context, writ.Writ) error
}

func (p prober) Decide(context.Context, writ.Call) (writ.Decision, error) {
	return writ.Decision{Effect: writ.Allow, Confine: p.confine}, nil
}
func (p prober) Approve(context.Context, writ.Call, writ.Decision) (writ.Approval, error) {
	return writ.Approval{}, errors.New("nobody is asked")
}
func (p prober) Record(context.Context, writ.Event) error { return nil }
func (p prober) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	return writ.Result{}, p.run(ctx, w)
}

func gone(pid int) error {
	if pid == 0 {
		return nil
	}
	if err := syscall.Kill(pid, 0); err == nil || err == syscall.EPERM {
		return nil // still there: the attack worked
	}
	return errors.New("gone when Wait returned")
}

func floodCut(t *sandbox.Tail) error {
	if t.Total() < probeFlood || len(t.String()) > probeKept {
		return nil
	}
	return errors.New("kept " + t.Cut())
}

func limited(e sandbox.Exit) error {
	if e.Limit != "timeout" {
		return nil
	}
	return fmt.Errorf("ended by %s (%s)", e.Limit, e.Signal)
}

// A report is what was tried inside a box, and what came of it.
type report struct {
	Tries []try
	Left  int // a process that was left running
}

// A try is one attack, which should fail, or one control, which should not: a
// probe that cannot do what is allowed proves nothing by failing.
type try struct {
	Feature sandbox.Feature
	What    string
	Control bool
	Said    string // empty: it worked
}

func (r *report) add(f sandbox.Feature, what string, err error) {
	r.Tries = append(r.Tries, try{f, what, false, said(err)})
}

func (r *report) control(f sandbox.Feature, what string, err error) {
	r.Tries = append(r.Tries, try{f, what, true, said(err)})
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return bare(err).Error()
}

// features turns tries into findings.
func (r *report) features() sandbox.Features {
	var out sandbox.Features
	for _, f := range []sandbox.Feature{
		sandbox.FileRead, sandbox.FileWrite, sandbox.StateHidden, sandbox.ExecListed, sandbox.NoNetwork, sandbox.OwnProcesses,
		sandbox.WholeTreeDies, sandbox.Unprivileged, sandbox.LimitWall, sandbox.LimitMemory, sandbox.LimitPids, sandbox.LimitOutput,
		sandbox.ProcessTable,
	} {
		out = append(out, r.finding(f))
	}
	return append(out,
		sandbox.Finding{Feature: sandbox.HostAllowlist, Evidence: "not claimed: no socket can be made at all; reaching single hosts needs the egress broker, which is not built into this version"},
		sandbox.Finding{Feature: sandbox.Containerized, Evidence: "not claimed: the host's process table and network namespace are shared; container drivers are not built into this version, code_execution: process does without one"})
}

func (r *report) finding(f sandbox.Feature) sandbox.Finding {
	var held, dead, broken []string
	for _, t := range r.Tries {
		switch {
		case t.Feature != f:
		case t.Control && t.Said != "":
			dead = append(dead, t.What+": "+t.Said)
		case !t.Control && t.Said != "":
			held = append(held, t.What+": "+t.Said)
		case !t.Control:
			broken = append(broken, t.What)
		}
	}
	switch {
	case len(broken) > 0:
		return sandbox.Finding{Feature: f, Evidence: "this worked: " + strings.Join(broken, "; ")}
	case len(dead) > 0:
		return sandbox.Finding{Feature: f, Evidence: "inconclusive: " + strings.Join(dead, "; ")}
	case len(held) == 0:
		return sandbox.Finding{Feature: f, Evidence: "inconclusive: nothing could be tried"}
	}
	return sandbox.Finding{Feature: f, Enforced: true, Evidence: strings.Join(held, "; ")}
}

// executable is the path of the launcher's program.
func executable(launcher []string) (string, error) {
	if launcher[0] == "/proc/self/exe" {
		return os.Executable()
	}
	return launcher[0], nil
}
