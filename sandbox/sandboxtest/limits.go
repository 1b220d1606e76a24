package sandboxtest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

func testLimits(t *testing.T, d sandbox.Driver) {
	for _, tc := range []struct {
		name    string
		limits  writ.Limits
		control string
		attack  string
	}{
		{"memory", writ.Limits{Memory: 300 << 20}, `py "bytearray(10<<20)"`, `py "bytearray(1<<30)"`},
		{"small memory", writ.Limits{Memory: 64 << 20}, `echo fits`, `py "bytearray(60<<20)"`},
		{"descriptors", writ.Limits{Files: 32}, `py "[open('file') for i in range(16)]"`, `py "a=[open('file') for i in range(64)]"`},
		{"file size", writ.Limits{Size: 1 << 20}, `head -c 1000 /dev/zero >f`, `head -c 2M /dev/zero >f`},
		{"processes", writ.Limits{Pids: 20}, `sleep 0 & wait $!`, `py "
for i in range(60):
  if os.fork()==0:
    import time
    time.sleep(5)
    os._exit(0)"`},
		{"raising them", writ.Limits{Files: 32}, `ulimit -n 16`, `ulimit -n 64`},
		{"temporary space", writ.Limits{}, `head -c 1M /dev/zero >/tmp/f`, `head -c 100M /dev/zero >/tmp/f`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.confinement()
			tc.limits.Wall, tc.limits.Grace = c.Limits.Wall, c.Limits.Grace
			c.Limits = tc.limits
			if o := w.bash(t, d, c, prelude+tc.control); o.Error != nil || o.Exit.Code != 0 {
				t.Fatalf("inconclusive: %v, %+v\n%s%s", o.Error, o.Exit, o.Out, o.Err)
			}
			if o := w.bash(t, d, c, prelude+tc.attack); o.Error != nil || o.Exit.Code == 0 {
				t.Errorf("not limited: %v, %+v\n%s%s", o.Error, o.Exit, o.Out, o.Err)
			}
		})
	}
	t.Run("time", func(t *testing.T) { testTime(t, d) })
}

// testTime: limits on time end a run, and keep what it said.
func testTime(t *testing.T, d sandbox.Driver) {
	t.Run("partial output is kept", func(t *testing.T) {
		w := newWorld(t)
		c := w.confinement()
		c.Limits.Wall = 300 * time.Millisecond
		o := w.bash(t, d, c, `echo partial; echo more >&2; trap '' TERM; while :; do sleep 1; done`)
		if o.Error != nil || o.Exit.Limit != "timeout" || o.Exit.Signal == "" || o.Out != "partial\n" || !strings.Contains(o.Err, "more") {
			t.Errorf("%+v", o)
		}
		if o.Exit.Elapsed < c.Limits.Wall || o.Exit.Elapsed > 10*time.Second {
			t.Errorf("took %v", o.Exit.Elapsed)
		}
	})
	t.Run("time limit of the spec", func(t *testing.T) {
		w := newWorld(t)
		for _, argv := range [][]string{{"true"}, {"sleep", "60"}} {
			o := Command(t, d, w.confinement(), sandbox.Spec{Argv: argv, Dir: w.ws, Timeout: 300 * time.Millisecond})
			if o.Error != nil || (o.Exit.Limit == "timeout") != (argv[0] == "sleep") {
				t.Errorf("%s: %+v", argv[0], o)
			}
		}
	})
	t.Run("time to clean up", func(t *testing.T) {
		w := newWorld(t)
		c := w.confinement()
		c.Limits.Wall, c.Limits.Grace = 300*time.Millisecond, 10*time.Second
		o := w.bash(t, d, c, `trap 'echo bye; exit 3' TERM; while :; do sleep 0.05; done`)
		if o.Error != nil || o.Exit.Limit != "timeout" || o.Exit.Code != 3 || o.Out != "bye\n" {
			t.Errorf("%+v", o)
		}
	})
}

func testEnvironment(t *testing.T, d sandbox.Driver) {
	w := newWorld(t)
	t.Setenv("WRIT_TEST_TOKEN", canary)
	t.Setenv("WRIT_TEST_OTHER", canary)
	t.Setenv("LANG", "C.UTF-8")
	evil := []string{"LD_PRELOAD=/evil", "LD_AUDIT=/evil", "BASH_ENV=/evil", "ENV=/evil", "PYTHONSTARTUP=/evil", "PYTHONPATH=/evil", "NODE_OPTIONS=/evil",
		"PERL5OPT=/evil", "RUBYOPT=/evil", "GIT_SSH_COMMAND=/evil", "JAVA_TOOL_OPTIONS=/evil", "BASH_FUNC_cat%%=() { /evil; }", "PATH=/evil", "HOME=/evil", "TMPDIR=/evil", "GOOD=yes"}
	o := w.bash(t, d, w.confinement(), `env; cd; pwd; touch x $TMPDIR/y`, evil...)
	if o.Error != nil || o.Exit.Code != 0 || !strings.Contains(o.Out, "GOOD=yes\n") || !strings.Contains(o.Out, "LANG=C.UTF-8\n") {
		t.Fatalf("inconclusive: %+v", o)
	}
	if strings.Contains(o.Out, "evil") || strings.Contains(o.Out, canary) {
		t.Errorf("in the box:\n%s", o.Out)
	}
}

func testIO(t *testing.T, d sandbox.Driver) {
	w := newWorld(t)
	c := w.confinement()
	t.Run("exit code", func(t *testing.T) {
		if o := w.bash(t, d, c, `exit 42`); o.Error != nil || o.Exit.Code != 42 || o.Exit.Signal != "" || o.Exit.Limit != "" {
			t.Errorf("%+v", o)
		}
	})
	t.Run("signal", func(t *testing.T) {
		if o := w.bash(t, d, c, `kill -KILL $$`); o.Error != nil || o.Exit.Code != -1 || o.Exit.Signal != "killed" || o.Exit.Limit != "" {
			t.Errorf("%+v", o)
		}
	})
	t.Run("processor time", func(t *testing.T) {
		if o := w.bash(t, d, c, `(for ((i=0;i<200000;i++)); do :; done)`); o.Error != nil || o.Exit.CPU < 20*time.Millisecond {
			t.Errorf("%+v", o.Exit)
		}
	})
	t.Run("no such program", func(t *testing.T) {
		o := Command(t, d, c, sandbox.Spec{Argv: []string{"no-such-program"}, Dir: w.ws})
		if kind := writ.KindOf(o.Error); kind != writ.NotFound && kind != writ.Invalid {
			t.Errorf("%v", o.Error)
		}
	})
	t.Run("stdin", func(t *testing.T) {
		big := strings.Repeat("0123456789", 30000)
		o := Command(t, d, c, sandbox.Spec{Argv: []string{"cat"}, Dir: w.ws, Stdin: strings.NewReader(big)})
		if o.Error != nil || o.Out != big {
			t.Errorf("%d bytes of %d: %v %s", len(o.Out), len(big), o.Error, o.Err)
		}
		if o := Command(t, d, c, sandbox.Spec{Argv: []string{"cat"}, Dir: w.ws}); o.Error != nil || o.Exit.Code != 0 || o.Out != "" {
			t.Errorf("without input: %+v", o)
		}
	})
	t.Run("output", func(t *testing.T) { testOutput(t, d, w) })
	t.Run("descriptors", func(t *testing.T) {
		o := w.bash(t, d, c, prelude+`py "
for fd in range(3,1024):
  try: os.fstat(fd); print(fd)
  except OSError: pass"; cat <(echo through a pipe)`)
		if o.Error != nil || o.Out != "through a pipe\n" {
			t.Errorf("descriptors in the box, or no process substitution: %v %q %q", o.Error, o.Out, o.Err)
		}
	})
	t.Run("private /tmp", func(t *testing.T) {
		o := w.bash(t, d, c, `ls -A /tmp /tmp/home; echo x >/tmp/x; echo x >/tmp/home/x`)
		if o.Error != nil || o.Exit.Code != 0 || strings.Contains(o.Out, "x\n") {
			t.Errorf("%+v", o)
		}
		if o := w.bash(t, d, c, `cat /tmp/x /tmp/home/x`); o.Error != nil || o.Exit.Code == 0 {
			t.Errorf("the next box sees it: %+v", o)
		}
	})
}

// testOutput: much of it, and as it comes.
func testOutput(t *testing.T, d sandbox.Driver, w *world) {
	c := w.confinement()
	t.Run("flood", func(t *testing.T) {
		const n = 20 << 20
		tail := sandbox.NewTail(1000)
		o := Command(t, d, c, sandbox.Spec{Argv: []string{"bash", "-c", fmt.Sprintf("yes | head -c %d; echo end", n)}, Dir: w.ws, Stdout: tail})
		if o.Error != nil || tail.Total() != n+4 || !strings.HasSuffix(tail.String(), "end\n") || len(tail.String()) != 1000 {
			t.Errorf("%v: %d bytes, kept %d", o.Error, tail.Total(), len(tail.String()))
		}
	})
	t.Run("streamed", func(t *testing.T) {
		first := make(chan string, 1)
		With(t, c, "", func(ctx context.Context, order writ.Writ) {
			b, err := d.Start(ctx, order, sandbox.Spec{Argv: []string{"bash", "-c", "echo first; sleep 100"}, Dir: w.ws, Stdout: writerFunc(func(p []byte) { first <- string(p) })})
			must(t, err)
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			go func() { <-first; cancel() }()
			if exit, err := b.Wait(ctx); err != nil || exit.Limit != "cancelled" {
				t.Errorf("%+v, %v", exit, err)
			}
		})
	})
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
