package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/unasked"
	"golang.org/x/sys/unix"
)

// Verb and part are the first arguments of this program when it is what is run inside.
const (
	Verb = "__box"
	part = "probe"
)

// at is where this program is shown inside a probing box.
const at = reach.PrivateTmp + "/writ-probe"

// Start starts a box for a writ whose demands nobody has to check, with files besides
// those of the writ: at which path, which file.
type Start func(ctx context.Context, w writ.Writ, spec sandbox.Spec, show map[string]string) (sandbox.Box, error)

// Run sets up things to attack, attacks them from inside boxes of a driver with this
// program, at the path given, and looks at what became of them. Beyond are findings about
// what nobody has to try here: it is not claimed, or shown otherwise.
func Run(ctx context.Context, program string, start Start, beyond ...sandbox.Finding) (sandbox.Features, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := newRange(program)
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the probe could not be prepared; the temporary directory must be writable", err)
	}
	defer r.close()
	r.targets.GVisor = sandbox.Features(beyond).Has(sandbox.GVisor)
	r.targets.HostIs = which(r.targets.Host, r.targets.GVisor)
	args, err := json.Marshal(r.targets)
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the probe could not be described", err)
	}
	out, flood := sandbox.NewTail(1<<20), sandbox.NewTail(kept)
	spec := sandbox.Spec{Argv: []string{at, Verb, part, string(args)}, Stdout: out, Stderr: flood, Env: map[string]string{"GORACE": "atexit_sleep_ms=0"}}
	exit, err := once(ctx, start, r.confinement(10*time.Second), spec, map[string]string{at: r.self})
	if err != nil {
		return nil, err
	}
	var told report
	if err := json.Unmarshal([]byte(out.String()), &told); err != nil || exit.Code != 0 {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the probe did not finish inside the box",
			fmt.Errorf("exit %d %s %s, report: %v, it said: %q", exit.Code, exit.Signal, exit.Limit, err, flood.String()))
	}
	told.add(sandbox.WholeTreeDies, "a process in a session of its own, after the command ended", gone(r.targets))
	told.add(sandbox.LimitOutput, fmt.Sprintf("keeping all of %d bytes of output", flood.Total()), floodCut(flood))
	exit, err = once(ctx, start, r.confinement(30*time.Millisecond), sandbox.Spec{Argv: []string{"sleep", "60"}}, nil)
	if err != nil {
		return nil, err
	}
	told.add(sandbox.LimitWall, "sleeping for a minute with a limit of 30 ms", limited(exit))
	return told.features(beyond), nil
}

// within bounds how long all of it may take.
const within = 20 * time.Second

// once runs a built-in command, which touches nothing but what the probe made.
func once(ctx context.Context, start Start, c writ.Confinement, spec sandbox.Spec, show map[string]string) (exit sandbox.Exit, err error) {
	err = unasked.Do(ctx, c, "", func(ctx context.Context, w writ.Writ) error {
		b, err := start(ctx, w, spec, show)
		if err == nil {
			exit, err = b.Wait(ctx)
		}
		return err
	})
	return exit, err
}

// gone says that nobody holds the lock any more that the process left behind had.
func gone(t targets) error {
	f, err := os.Open(t.lock())
	if err != nil {
		return nil // nobody ever had it: nothing is shown
	}
	defer f.Close()
	if unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return nil // still there: the attack worked
	}
	return errors.New("gone when Wait returned")
}

func floodCut(t *sandbox.Tail) error {
	if t.Total() < flooded || len(t.String()) > kept {
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
type report struct{ Tries []try }

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
func (r *report) features(beyond []sandbox.Finding) sandbox.Features {
	var out sandbox.Features
	for _, f := range []sandbox.Feature{
		sandbox.FileRead, sandbox.FileWrite, sandbox.StateHidden, sandbox.ExecListed, sandbox.NoNetwork, sandbox.OwnProcesses,
		sandbox.WholeTreeDies, sandbox.Unprivileged, sandbox.LimitWall, sandbox.LimitMemory, sandbox.LimitPids, sandbox.LimitOutput,
		sandbox.ProcessTable,
	} {
		if !slices.ContainsFunc(beyond, func(b sandbox.Finding) bool { return b.Feature == f }) {
			out = append(out, r.finding(f))
		}
	}
	return append(out, beyond...)
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
