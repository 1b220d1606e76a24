package seatbelt

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// Driver starts boxes with sandbox-exec.
type Driver struct {
	opts Options

	mu     sync.Mutex
	probed sandbox.Features // of the first probe that succeeded
}

const (
	sandboxExec  = "/usr/bin/sandbox-exec" // of the system, which nobody can change; never from PATH
	defaultWall  = 30 * time.Second
	defaultGrace = 5 * time.Second
)

// Start implements sandbox.Driver.
func (d *Driver) Start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, error) {
	if err := sandbox.Admit(ctx, d, w); err != nil {
		return nil, err
	}
	return d.start(ctx, w, spec)
}

// start starts a box for a writ whose demands have been checked.
func (d *Driver) start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, error) {
	if os.Geteuid() == 0 {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver seatbelt does not run boxes as root; run the daemon as an ordinary user", nil)
	}
	if err := ctx.Err(); err != nil {
		return nil, writ.Fail(writ.Stopped, "stopped before the command started", err)
	}
	c := w.Confinement()
	made, err := os.MkdirTemp("", "writ-box-")
	if err != nil {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the box has no place for its temporary files; the temporary directory must be writable", err)
	}
	b, err := d.run(c, w.Call().Dir, spec, made)
	if err != nil {
		os.RemoveAll(made)
		return nil, err
	}
	return b, nil
}

func (d *Driver) run(c writ.Confinement, dir string, spec sandbox.Spec, made string) (*box, error) {
	private, err := filepath.EvalSymlinks(made)
	if err != nil {
		return nil, writ.Fail(writ.Internal, "the box's directory cannot be found", err)
	}
	path := slices.Concat([]string{"/usr/bin", "/bin", "/usr/sbin", "/sbin"}, d.opts.PathPrefixes)
	program, err := look(spec.Argv, path)
	if err != nil {
		return nil, err
	}
	p := Plan{Read: c.Read, Write: c.Write, Hide: c.Hide, Listed: c.Exec.Mode != writ.ExecAny, Private: private, Config: d.opts.Config, Git: d.opts.Git}
	if p.Listed {
		p.Programs = []string{program}
	}
	if c.Exec.Mode == writ.ExecListed {
		p.Programs = append(p.Programs, c.Exec.Files...)
	}
	profile, err := Profile(p)
	if err != nil {
		return nil, err
	}
	if dir, err = workDir(c, dir, spec.Dir, private); err != nil {
		return nil, err
	}
	argv := slices.Concat([]string{sandboxExec, "-p", profile, "--", program}, spec.Argv[1:])
	env := []string{"PATH=" + strings.Join(path, ":"), "HOME=" + private, "TMPDIR=" + private, "TEMP=" + private, "TMP=" + private}
	wall, grace := min(positive(spec.Timeout, positive(c.Limits.Wall, defaultWall)), sandbox.MaxWall), positive(c.Limits.Grace, defaultGrace)
	return launch(argv, env, dir, made, spec, wall, grace)
}

func positive(d, otherwise time.Duration) time.Duration {
	if d <= 0 {
		return otherwise
	}
	return d
}

// look finds the program: by its absolute path, or by its name where programs are. Rules are
// about what a path leads to, so that is what is run.
func look(argv, path []string) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", writ.Fail(writ.Invalid, "there is no command to run", nil)
	}
	tries := []string{argv[0]}
	if !filepath.IsAbs(argv[0]) {
		tries = nil
		for _, dir := range path {
			tries = append(tries, filepath.Join(dir, argv[0]))
		}
	}
	for _, try := range tries {
		real, err := filepath.EvalSymlinks(try)
		if err != nil {
			continue
		}
		if info, err := os.Stat(real); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return real, nil
		}
	}
	return "", writ.Fail(writ.NotFound, "the program was not found in the box's PATH, or is not executable; install it, or name it by its absolute path", errors.New(argv[0]))
}

// workDir is where the command starts: a directory that it may use.
func workDir(c writ.Confinement, call, spec, private string) (string, error) {
	roots := append(slices.Clone(c.Write), c.Read...)
	dir := spec
	if dir == "" {
		dir = call
	}
	if dir == "" && len(roots) > 0 {
		dir = roots[0]
	}
	if dir == "" {
		return private, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", writ.Fail(writ.Invalid, "the working directory "+dir+" cannot be used; name an existing one by its absolute path", err)
	}
	for _, root := range roots {
		if real == root || root == "/" || strings.HasPrefix(real, root+"/") {
			return real, nil
		}
	}
	return "", writ.Fail(writ.Denied, "denied: the working directory "+dir+" is outside the workspace; start inside it", nil)
}
