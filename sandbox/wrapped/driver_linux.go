package wrapped

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/supervise"
	"golang.org/x/sys/unix"
)

// A Wrapper is a program of the system that makes boxes, and how it is told to.
type Wrapper struct {
	Name    string // of the driver, and of the program's file
	Install string // how to get it
	// Shape works out one box. An error that is none of writ's says what keeps the
	// wrapper from making it.
	Shape func(*reach.Plan) (*Shape, error)
	// Explain is what to do about what a wrapper said that ended without starting.
	Explain func(said string) string
	Beyond  []sandbox.Finding // about what nobody has to try
}

// InMemory is a file without a path that holds what a wrapper is told: the command line of
// a process is there for all to read, also inside the box.
func InMemory(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("writ-box", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "writ-box")
	err = f.Chmod(0o644)
	if err == nil {
		_, err = f.WriteString(text)
	}
	if err == nil {
		_, err = f.Seek(0, 0)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// A Shape is what a wrapper is told about one box, and what is left to do inside.
type Shape struct {
	Args, Env []string   // of the wrapper
	Files     []*os.File // from descriptor FirstFile on
	Job       Job
	Hidden    []File // what was seen on the host at the paths that are covered
	// Arrange, where there is one, is as in supervise.Launch.
	Arrange func([]*os.File) error
	Close   func() // closes the files, when they are not needed any more
}

// Driver starts boxes with a wrapper.
type Driver struct {
	wrapper Wrapper
	opts    Options

	mu     sync.Mutex
	probed sandbox.Features // of the first probe that succeeded
}

// New makes a driver. It does nothing yet.
func New(w Wrapper, o Options) *Driver { return &Driver{wrapper: w, opts: o} }

// Start implements sandbox.Driver. Stdin is read until it ends or the box does;
// a reader that blocks forever keeps one goroutine. Writers must not block
// forever: a box whose output nobody takes is not waited out.
func (d *Driver) Start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, error) {
	if err := sandbox.Admit(ctx, d, w); err != nil {
		return nil, err
	}
	return d.start(ctx, w, spec, nil)
}

// start starts a box for a writ whose demands have been checked. All that it shows besides
// is this program.
func (d *Driver) start(ctx context.Context, w writ.Writ, spec sandbox.Spec, show map[string]string) (sandbox.Box, error) {
	p, err := reach.Of(w, spec, d.opts.Options, slices.Collect(maps.Keys(show))...)
	if err != nil {
		return nil, err
	}
	if show[p.Path] != "" {
		p.Path = self
	}
	path, err := find(systemDirs, d.wrapper.Name, d.wrapper.Install)
	if err != nil {
		return nil, err
	}
	program, err := d.program()
	if err != nil {
		return nil, err
	}
	shape, err := d.wrapper.Shape(p)
	if err != nil {
		return nil, refused(err)
	}
	defer shape.Close()
	l, err := d.launch(path, program, p, shape)
	if err != nil {
		return nil, err
	}
	defer l.Files[0].Close()
	return supervise.Start(ctx, l, shape.Job, spec)
}

// launch is how the wrapper is started, with this program before its files.
func (d *Driver) launch(path, program string, p *reach.Plan, s *Shape) (supervise.Launch, error) {
	self, err := os.OpenFile(program, unix.O_PATH, 0)
	if err != nil {
		return supervise.Launch{}, unfound(err)
	}
	l := supervise.Launch{
		Args: slices.Concat([]string{path}, s.Args, []string{"--"}, command), Env: s.Env,
		Files: append([]*os.File{self}, s.Files...),
		Terms: supervise.Terms{
			Holds: true, Wall: p.Wall, Grace: p.Grace, Use: p.Limits.Together(),
			Check: func() error { return unmoved(s.Hidden) },
			Explain: func(said string) error {
				return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+d.wrapper.Explain(said), errors.New(strings.TrimSpace(said)))
			},
		},
	}
	if p.Root {
		l.User = &syscall.Credential{Uid: uint32(p.UID), Gid: uint32(p.GID)}
	}
	if s.Arrange != nil {
		l.Arrange = func(files []*os.File) error { return s.Arrange(files[1:]) }
	}
	return l, nil
}

func (d *Driver) program() (string, error) {
	if d.opts.Program != "" {
		return d.opts.Program, nil
	}
	program, err := os.Executable()
	if err != nil {
		return "", unfound(err)
	}
	return program, nil
}

func unfound(err error) error {
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: this program's own file cannot be found", err)
}

// Probe implements sandbox.Driver. The first result is kept; an error is not.
func (d *Driver) Probe(ctx context.Context) (sandbox.Features, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.probed != nil {
		return d.probed, nil
	}
	if !restrict.LandlockHolds() {
		return nil, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver "+d.wrapper.Name+" needs Landlock ABI 6; use Linux 6.12 or later with landlock in the lsm= list of the kernel", nil)
	}
	program, err := d.program()
	if err != nil {
		return nil, err
	}
	found, err := probe.Run(ctx, program, d.start, d.wrapper.Beyond...)
	if err != nil {
		return nil, err
	}
	d.probed = found
	return found, nil
}

// refused is the error for a box that the wrapper cannot make.
func refused(err error) error {
	var known *writ.Error
	if errors.As(err, &known) {
		return err
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+err.Error(), err)
}
