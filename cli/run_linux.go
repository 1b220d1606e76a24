package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/sandbox/protect"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/unasked"
)

// runTmp is how much a command that a person runs can have in its /tmp; builds need it.
const runTmp = 4 << 30

// beginAhead begins, of a command that runs another one, what takes longest: while this
// program finds out what it is asked. A launcher that nobody uses ends with it.
func beginAhead(args []string) *native.Ahead {
	if len(args) > 0 && (args[0] == "run" || args[0] == "shell") {
		return native.Begin(false)
	}
	return nil
}

// runConfined runs a command for a person, and ends the program as the command ended.
func (a *App) runConfined(ctx context.Context, c *confined, argv []string) error {
	if err := c.readPolicy(); err != nil {
		return notStarted(err)
	}
	confine, dir, err := c.confinement()
	if err != nil {
		return notStarted(err)
	}
	if err := a.hideOwn(&confine); err != nil {
		return notStarted(err)
	}
	if home, err := os.UserHomeDir(); err == nil && reach.InAny(wouldBe(home), confine.Write) {
		fmt.Fprintln(os.Stderr, "writ run: the command can change your home, where programs obey more than is protected (.config, .local/bin, …); run it in the directory of its work")
	}
	told := &refusals{to: os.Stderr, seen: map[string]bool{}}
	to, err := c.signsIn()
	if err != nil {
		return err
	}
	signs, err := signer(to, told.tell)
	if err != nil {
		return notStarted(err)
	}
	network, outlet, err := c.network(told, to, signs)
	if err != nil {
		return err
	}
	confine.Network, confine.SSH = network, to
	o := native.Options{Outlet: outlet, Options: reach.Options{PathPrefixes: pathPrefixes(os.Getenv("PATH"), slices.Concat(confine.Read, confine.Write))}}
	if c.limits.Memory > 0 || c.limits.Pids > 0 {
		o.Deployment = "writ-run" // whose groups bound all of it together
	}
	if o.Ahead = a.ahead; o.Ahead == nil || len(c.programs) > 0 {
		a.ahead.Drop()
		o.Ahead = native.Begin(len(c.programs) > 0) // while the rest is looked at
	}
	d := native.New(o)
	if o.Deployment != "" {
		defer d.Close()
	} // else its launcher goes when this program does, and nobody waits for it
	named, given, err := c.variables()
	if err != nil {
		return err
	}
	unread := make(chan struct{}, 1)
	spec := sandbox.Spec{Argv: argv, Dir: dir, Env: map[string]string{}, Stdin: os.Stdin, Stdout: whileRead{os.Stdout, unread}, Stderr: whileRead{os.Stderr, unread}}
	fg := native.Foreground{Tmp: runTmp, Wall: c.timeout.Duration, Home: map[string]string{}}
	if text := gitIdentity(); text != "" {
		fg.Home[".gitconfig"] = text
	}
	if outlet == nil {
		maps.Copy(spec.Env, sandbox.Offline())
	}
	if !c.noCaches {
		if fg.Own, err = addCaches(&confine, spec.Env, dir, outlet != nil); err != nil {
			return notStarted(err)
		}
	}
	for name, value := range given {
		spec.Env[name] = value
	}
	confine.Env = named
	finder, err := protectFor()
	if err != nil {
		return notStarted(err)
	}
	defer finder.Close()
	d.Protect(finder)
	var exit sandbox.Exit
	var number int
	err = unasked.Do(ctx, confine, "", func(_ context.Context, w writ.Writ) error {
		exit, number, err = inForeground(d, w, spec, fg, unread)
		return err
	})
	if outlet != nil {
		a.logRun(told)
	}
	if err != nil {
		return notStarted(err)
	}
	return ended(exit, number)
}

// changeable refuses to let a command change what its user may not change: that would do
// nothing but leave placeholders for protected names there while it runs.
func changeable(path, dir string) error {
	if os.Geteuid() != 0 {
		if err := syscall.Access(path, 2); err != nil { // W_OK
			return fmt.Errorf("--write %s: you may not write there (%v); name what you may change", path, err)
		}
		return nil
	}
	var runs, at syscall.Stat_t
	if err := errors.Join(syscall.Stat(dir, &runs), syscall.Stat(path, &at)); err != nil {
		return err
	}
	if at.Uid == runs.Uid && at.Mode&0o200 != 0 || at.Gid == runs.Gid && at.Mode&0o020 != 0 || at.Mode&0o002 != 0 {
		return nil
	}
	return fmt.Errorf("--write %s: the command runs as the owner of %s (user %d), who may not write there; name what belongs to that user", path, dir, runs.Uid)
}

// hideOwn keeps writ's own files out of a box, whatever is around them. Where they could
// be made, they are there first.
func (a *App) hideOwn(c *writ.Confinement) error {
	path, err := config.Path(a.ConfigFlag)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(config.StateHome()) {
		return errors.New("there is no home: neither $XDG_STATE_HOME nor $HOME is a path from the root; set one, what is moved away is kept there")
	}
	if err := replaceable(c, config.LinksOf(path)); err != nil {
		return err
	}
	for _, own := range append(config.OwnOf(path), config.StateHome()) {
		if err := hide(c, own, own == config.StateOf(path) || own == config.StateHome() || slices.Contains(ownDirectories, filepath.Base(own))); err != nil {
			return err
		}
	}
	// The build cache of the command's directory is shown where it cannot reach those of others.
	if own, err := ownCache(); err == nil && (reach.InAny(wouldBe(own), c.Write) || slices.ContainsFunc(slices.Concat(c.Read, c.Write), func(p string) bool { return reach.Within(p, wouldBe(own)) })) {
		way := config.Trail(own)
		return errors.Join(replaceable(c, way[:max(len(way)-1, 0)]), hide(c, own, true))
	}
	return nil
}

// ownDirectories are the names of directories of writ's own besides its state.
var ownDirectories = []string{"writ", "tools", "profiles", "upstreams"}

// replaceable refuses what would let a command put something else where writ looks for its
// own: by a symlink on the way, or on that of another symlink.
func replaceable(c *writ.Confinement, links []string) error {
	for _, link := range links {
		if reach.InAny(filepath.Dir(link), c.Write) {
			return fmt.Errorf("%s is a symlink by which writ finds what is its own, and the command could replace it; run the command elsewhere", link)
		}
	}
	return nil
}

// hide keeps one place of writ's own out of a box. Where a command could make it, or read it
// when it is made outside, it is there first.
func hide(c *writ.Confinement, own string, dir bool) error {
	real := wouldBe(own)
	if _, err := os.Lstat(real); err != nil {
		switch {
		case !reach.InAny(real, c.Write) && !reach.InAny(real, c.Read):
			return nil // it is not there, and cannot be made from inside
		case !dir:
			return fmt.Errorf("%s is writ's own and does not exist, so that the command could make it, or read it once it is there; make it first, or run the command elsewhere", real)
		}
		if err := os.MkdirAll(real, 0o700); err != nil {
			return err
		}
	}
	for _, p := range slices.Concat(c.Read, c.Write) {
		if reach.Within(p, real) {
			return fmt.Errorf("%s is writ's own and out of reach of every box; run the command elsewhere", p)
		}
	}
	if !slices.Contains(c.Hide, real) {
		c.Hide = append(c.Hide, real)
	}
	return nil
}

// wouldBe is where a path leads to, or would if it existed.
func wouldBe(path string) string {
	for rest := ""; ; path = filepath.Dir(path) {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return filepath.Join(real, rest)
		}
		rest = filepath.Join(filepath.Base(path), rest)
	}
}

// protectFor keeps protected names for one run: several can go on at once, each with a
// place of its own, and what one that was killed left is taken away by the next there.
func protectFor() (*protect.Finder, error) {
	base := filepath.Join(config.StateHome(), "run")
	var err error
	for n := range 64 {
		at := filepath.Join(base, strconv.Itoa(n))
		if err = os.MkdirAll(at, 0o700); err != nil {
			return nil, err
		}
		var f *protect.Finder
		if f, err = protect.New(protect.Options{State: at, Quarantine: filepath.Join(base, "quarantine"), Unwatched: true}); err == nil {
			return f, nil
		}
	}
	return nil, err
}

// notStarted says that the command never ran, and why.
func notStarted(err error) error {
	fmt.Fprintln(os.Stderr, "writ run: "+Visible(message(orUnconfined(err))))
	return ExitCode(ExitNotStarted)
}

func ended(exit sandbox.Exit, number int) error {
	for _, what := range exit.Undone {
		fmt.Fprintln(os.Stderr, "writ run: "+Visible(what))
	}
	switch {
	case exit.Limit == "timeout":
		fmt.Fprintf(os.Stderr, "writ run: ended after %s: the time limit\n", shortly(exit.Elapsed.Round(1e8)))
		return ExitCode(ExitTimeout)
	case exit.Limit != "" && exit.Limit != "cancelled":
		fmt.Fprintln(os.Stderr, "writ run: ended: "+sandbox.Meaning(exit.Limit))
	case exit.Met != "":
		fmt.Fprintln(os.Stderr, "writ run: it came up against a limit: "+sandbox.Meaning(exit.Met))
	}
	switch {
	case exit.Signal != "":
		interrupted = number == int(syscall.SIGINT)
		return ExitCode(128 + number)
	case exit.Code != 0:
		return ExitCode(exit.Code)
	}
	return nil
}

// inForeground runs a command and passes on what a person at the terminal does, and that
// nobody reads its output any more.
func inForeground(d *native.Driver, w writ.Writ, spec sandbox.Spec, fg native.Foreground, unread <-chan struct{}) (exit sandbox.Exit, number int, err error) {
	// Not the program's own context: a Ctrl-C is the command's to answer.
	ctx := context.Background()
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGPIPE)
	defer signal.Stop(signals)
	in, out := int(os.Stdin.Fd()), int(os.Stdout.Fd())
	var screen *os.File
	if native.InFront(in) && term.IsTerminal(out) {
		ours, theirs, err := native.OpenTerminal()
		if err != nil {
			return exit, 0, err
		}
		defer ours.Close()
		defer theirs.Close()
		screen, fg.Terminal = ours, theirs
		resize(screen, out)
	} else if term.IsTerminal(in) || isNull(os.Stdin) {
		spec.Stdin = nil // where only the output goes elsewhere, the keyboard is for whoever has the screen
	}
	p, err := d.Foreground(ctx, w, spec, fg)
	if err != nil {
		return exit, 0, err
	}
	shown := make(chan struct{})
	if screen != nil {
		fg.Terminal.Close() // the command's alone now: reading ours ends when it ends
		old, err := term.MakeRaw(in)
		if err == nil {
			defer term.Restore(in, old)
		}
		go io.Copy(screen, os.Stdin)
		go func() { io.Copy(os.Stdout, screen); close(shown) }()
	} else {
		close(shown)
	}
	go func() {
		for s := range signals {
			switch {
			case s == syscall.SIGPIPE: // of a connection, too; what is meant for the command comes by unread
			case s != syscall.SIGWINCH:
				p.Signal(s.(syscall.Signal))
			case screen != nil:
				resize(screen, out)
			}
		}
	}()
	go func() {
		<-unread // its own output is read on here, so nothing else would tell it
		p.Signal(syscall.SIGPIPE)
		time.AfterFunc(time.Second, func() { p.Signal(syscall.SIGKILL) })
	}()
	exit, err = p.Wait(ctx)
	<-shown
	return exit, int(p.EndedBy()), err
}

// isNull reports whether a file is the null device.
func isNull(f *os.File) bool {
	info, err := f.Stat()
	null, err2 := os.Stat(os.DevNull)
	return err == nil && err2 == nil && os.SameFile(info, null)
}

// whileRead is an output of ours that somebody reads, for as long as they do: 'writ run'
// is at the head of a pipeline. That they stop is no failure, and unread is told of it.
type whileRead struct {
	io.Writer
	unread chan<- struct{}
}

func (w whileRead) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		select {
		case w.unread <- struct{}{}:
		default:
		}
		return len(p), nil
	}
	return n, err
}

func resize(screen *os.File, out int) {
	if columns, rows, err := term.GetSize(out); err == nil {
		native.Resize(screen, columns, rows)
	}
}

// pathPrefixes are the directories of a PATH that belong to the system, where nobody but
// its owner put anything, and those in what the person lets the command reach, such as an
// environment of Python's in the directory at hand: what they hold runs in the box alone.
func pathPrefixes(list string, reached []string) []string {
	var out []string
	for _, dir := range filepath.SplitList(list) {
		dir = filepath.Clean(dir)
		real, err := filepath.EvalSymlinks(dir)
		system := strings.HasPrefix(real, "/usr/") || strings.HasPrefix(real, "/opt/")
		if err == nil && (system || reach.InAny(real, reached) && reach.InAny(dir, reached)) {
			out = append(out, dir)
		}
	}
	return out
}
