package prove

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// ioProbes: how a command is started, what goes in and out, and how its end is told.
func ioProbes() []Probe {
	ends := func(name, script string, want sandbox.Exit) Probe {
		return Probe{Name: name, try: func(ctx context.Context, w *world) error {
			o := w.bash(ctx, w.confinement(), script, nil)
			if o.Error != nil || o.Exit.Code != want.Code || o.Exit.Signal != want.Signal || o.Exit.Limit != "" {
				return broken("%s, wanted %+v", o, want)
			}
			return nil
		}}
	}
	all := []Probe{
		ends("exit code", `exit 42`, sandbox.Exit{Code: 42}),
		ends("exit code 255", `exit 255`, sandbox.Exit{Code: 255}),
		ends("exit code of success", `exit 0`, sandbox.Exit{}),
		ends("signal", `kill -KILL $$`, sandbox.Exit{Code: -1, Signal: "killed"}),
		ends("another signal", `kill -SEGV $$`, sandbox.Exit{Code: -1, Signal: "segmentation fault"}),
		row("descriptors", `cat <(echo through a pipe)`, `py "
import stat
for fd in range(3,1024):
  try: os.fstat(fd)
  except OSError: continue
  end(0,fd)
end(1,'none')"`, "none"),
		row("an inherited descriptor", `[ "$LEAK" -ge 70 ]`, `cat <&$LEAK`, "Bad file descriptor", "invalid"),
		row("umask", `touch a`, `[ "$(umask)" != 0022 ] || no 0022`, "0022"),
		row("working directory", `cat file`, `[ "$(pwd -P)" != "$WS" ] || no "$PWD"`, "ws"),
		row("a terminal", `[ -e /proc/self/fd/0 ]`, `[ -t 0 ] || [ -t 1 ] || [ -t 2 ] || no none`, "none"),
		row("ignored signals", `trap '' USR1; `+ignored+`; end(0 if s==[10] else 2,s)"`, ignored+`; end(0 if s else 1,s or 'none')"`, "none"),
		row("blocked signals", `py "import signal"`, `py "import signal; s=signal.pthread_sigmask(signal.SIG_BLOCK,[]); end(0 if s else 1,s or 'none')"`, "none"),
		{Name: "processor time", try: tryCPU},
		{Name: "no such program", try: tryNoProgram},
		{Name: "arguments", try: tryArguments},
		{Name: "stdin", try: tryStdin},
		{Name: "stdin empty", try: tryNoStdin},
		{Name: "stdin that nobody reads", try: tryUnread},
		{Name: "private /tmp", try: tryTmp},
	}
	return append(group("io", "", all), group("io", sandbox.LimitOutput, []Probe{{Name: "flood", try: tryFlood}, {Name: "streamed", try: tryStream}})...)
}

// ignored are the signals that are not heeded, but for those that Python itself ignores.
const ignored = `py "import signal
s=[n for n in range(1,65) if n not in (signal.SIGPIPE,signal.SIGXFSZ) and signal.getsignal(n)==signal.SIG_IGN]`

func tryCPU(ctx context.Context, w *world) error {
	o := w.bash(ctx, w.confinement(), `(for ((i=0;i<200000;i++)); do :; done)`, nil)
	if o.Error != nil || o.Exit.CPU < 20*time.Millisecond {
		return broken("%v of processor time: %s", o.Exit.CPU, o)
	}
	return nil
}

func tryNoProgram(ctx context.Context, w *world) error {
	o := w.run(ctx, w.confinement(), sandbox.Spec{Argv: []string{"no-such-program"}})
	if kind := writ.KindOf(o.Error); kind != writ.NotFound && kind != writ.Invalid {
		return broken("%s", o)
	}
	return nil
}

func tryArguments(ctx context.Context, w *world) error {
	args := []string{"", " ", "a b", "-n", "$HOME", "`id`", "'", "\"", "\\", "line\nline", "ü"}
	o := w.run(ctx, w.confinement(), sandbox.Spec{Argv: append([]string{"printf", "%s\x01"}, args...)})
	if want := strings.Join(args, "\x01") + "\x01"; o.Error != nil || o.Out != want {
		return broken("they arrived as %q: %s", o.Out, o)
	}
	return nil
}

func tryStdin(ctx context.Context, w *world) error {
	big := strings.Repeat("0123456789", 30000)
	o := w.run(ctx, w.confinement(), sandbox.Spec{Argv: []string{"cat"}, Stdin: strings.NewReader(big)})
	if o.Error != nil || o.Out != big {
		return broken("%d bytes of %d: %v %s", len(o.Out), len(big), o.Error, o.Err)
	}
	return nil
}

func tryNoStdin(ctx context.Context, w *world) error {
	if o := w.run(ctx, w.confinement(), sandbox.Spec{Argv: []string{"cat"}}); o.Error != nil || o.Exit.Code != 0 || o.Out != "" {
		return broken("%s", o)
	}
	return nil
}

func tryUnread(ctx context.Context, w *world) error {
	o := w.run(ctx, w.confinement(), sandbox.Spec{Argv: []string{"true"}, Stdin: strings.NewReader(strings.Repeat("x", 1<<20))})
	if o.Error != nil || o.Exit.Code != 0 {
		return broken("%s", o)
	}
	return nil
}

func tryTmp(ctx context.Context, w *world) error {
	o := w.bash(ctx, w.confinement(), `ls -A /tmp /tmp/home; echo x >/tmp/x; echo x >/tmp/home/x`, nil)
	if o.Error != nil || o.Exit.Code != 0 {
		return inconclusive("%s", o)
	}
	if strings.Contains(o.Out, "x\n") {
		return broken("it is not empty: %s", o)
	}
	if o := w.bash(ctx, w.confinement(), `cat /tmp/x || cat /tmp/home/x`, nil); o.Error != nil || o.Exit.Code == 0 {
		return broken("the next box sees it: %s", o)
	}
	return nil
}

func tryFlood(ctx context.Context, w *world) error {
	const n = 20 << 20
	tail := sandbox.NewTail(1000)
	o := w.run(ctx, w.confinement(), sandbox.Spec{Argv: []string{"bash", "-c", fmt.Sprintf("yes | head -c %d; echo end", n)}, Stdout: tail})
	if o.Error != nil || tail.Total() != n+4 || !strings.HasSuffix(tail.String(), "end\n") || len(tail.String()) != 1000 {
		return broken("%d bytes, kept %d: %s", tail.Total(), len(tail.String()), o)
	}
	return nil
}

// tryStream: output comes while the command runs.
func tryStream(ctx context.Context, w *world) error {
	first := make(chan struct{}, 1)
	out := writerFunc(func([]byte) {
		select {
		case first <- struct{}{}:
		default:
		}
	})
	var exit sandbox.Exit
	var ran error
	err := With(ctx, w.confinement(), "", func(ctx context.Context, order writ.Writ) {
		b, err := w.driver.Start(ctx, order, sandbox.Spec{Argv: []string{"bash", "-c", "echo first; sleep 100"}, Dir: w.ws, Stdout: out})
		if err != nil {
			ran = err
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-first:
				cancel()
			case <-ctx.Done():
			}
		}()
		exit, ran = patiently(ctx, b, wall)
	})
	if err != nil || ran != nil || exit.Limit != "cancelled" {
		return broken("%s", Outcome{Exit: exit, Error: errors.Join(err, ran)})
	}
	return nil
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
