// Package confine runs one command of a Go program in a sandbox, without an engine:
// no agents, no approvals, no record. The program itself decides what the command may
// reach. It fails closed: where no sandbox of this machine holds all of it, nothing
// runs, unless the caller wrote Unsafe.
//
// A program that uses it calls subprocess.Main before anything else in main, because
// the boxes are this program again.
package confine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/subprocess"
	"github.com/writ-run/writ/sandbox/unasked"
)

// Command is a way to run commands, confined. Make one with ForPolicy or
// ForWritableRoots; the zero Command runs nothing here. It is safe for concurrent use
// once its fields are set.
type Command struct {
	Dir     string            // working directory; empty: one the command may use
	Env     map[string]string // added to the environment, through the sandbox's filter
	Timeout time.Duration     // zero: 30 s; at most sandbox.MaxWall
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Unsafe runs a command on the host, held by nothing, where no sandbox holds all
	// of what was asked. It is said on standard error each time.
	Unsafe bool

	reach writ.Confinement
}

var drivers = sandbox.Set{subprocess.New(subprocess.Options{})}

// Supported reports why this machine cannot confine a command, or nil.
func Supported() error {
	return drivers.Check(context.Background(), writ.Confinement{Isolation: writ.Process, Backend: subprocess.Name})
}

// ForPolicy confines to what a policy declares: whole directories and single paths,
// programs besides the command only with exec allow, and no network. A policy that
// needs hosts is refused.
func ForPolicy(p policy.Policy) (*Command, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if !p.Files.Read.Whole() || !p.Files.Write.Whole() {
		return nil, errors.New("filesystem: a box holds whole directories (/dir/**) and single paths; write the globs so")
	}
	if p.Network.Stance > policy.None {
		return nil, writ.Fail(writ.SandboxUnavailable, "network: a command confined here reaches no hosts; declare none", nil)
	}
	c := &Command{reach: writ.Confinement{Isolation: writ.Process, Backend: subprocess.Name}}
	var err error
	if c.reach.Read, err = real(p.Files.Read.Roots()); err != nil {
		return nil, err
	}
	if c.reach.Write, err = real(p.Files.Write.Roots()); err != nil {
		return nil, err
	}
	if p.Exec == policy.All {
		c.reach.Exec.Mode = writ.ExecAny
	}
	if p.Env.Stance == policy.Listed {
		c.reach.Env = p.Env.Vars
	}
	return c, nil
}

// ForWritableRoots confines to reading the system and these directories, changing
// these directories, and no network, with any program.
func ForWritableRoots(roots []string, env map[string]string, dir string) (*Command, error) {
	write, err := real(roots)
	if err != nil {
		return nil, err
	}
	reach := writ.Confinement{Read: write, Write: write, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process, Backend: subprocess.Name}
	return &Command{Dir: dir, Env: env, reach: reach}, nil
}

// real is where paths lead: a box mounts what is really there.
func real(paths []string) ([]string, error) {
	var out []string
	for _, p := range paths {
		to, err := filepath.EvalSymlinks(p)
		if err != nil || !filepath.IsAbs(p) {
			return nil, fmt.Errorf("%q cannot be opened to a command; name an existing path from the root", p)
		}
		out = append(out, to)
	}
	return out, nil
}

// Run runs one command and waits until every process of it is gone. A command that
// exits with a status is no error.
func (c *Command) Run(ctx context.Context, argv ...string) (sandbox.Exit, error) {
	if err := drivers.Check(ctx, c.reach); err != nil {
		if !c.Unsafe || writ.KindOf(err) != writ.SandboxUnavailable {
			return sandbox.Exit{Code: -1}, err
		}
		fmt.Fprintf(os.Stderr, "unsafe: %s runs on the host, held by nothing: %v\n", argv[0], err)
		return c.unconfined(ctx, argv)
	}
	var exit sandbox.Exit
	err := unasked.Do(ctx, c.reach, "", func(ctx context.Context, w writ.Writ) error {
		box, _, err := drivers.Start(ctx, w, c.spec(argv))
		if err == nil {
			exit, err = box.Wait(ctx)
		}
		return err
	})
	return exit, err
}

func (c *Command) spec(argv []string) sandbox.Spec {
	spec := sandbox.Spec{Argv: argv, Dir: c.Dir, Env: c.Env, Timeout: c.Timeout, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr}
	if c.Stdout != nil && c.Stdout == c.Stderr { // the two streams come at once
		both := &locked{w: c.Stdout}
		spec.Stdout, spec.Stderr = both, both
	}
	return spec
}

func (c *Command) unconfined(ctx context.Context, argv []string) (sandbox.Exit, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = c.Dir, c.Stdin, c.Stdout, c.Stderr
	cmd.Env = os.Environ()
	for k, v := range c.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	err := cmd.Run()
	var status *exec.ExitError
	if errors.As(err, &status) {
		err = nil
	}
	return sandbox.Exit{Code: cmd.ProcessState.ExitCode()}, err
}

// locked takes both streams of a command one at a time.
type locked struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
