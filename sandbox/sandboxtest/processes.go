package sandboxtest

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// testProcesses attacks a process outside that belongs to the same user.
func testProcesses(t *testing.T, d sandbox.Driver) {
	const pid = `$(cat $RO/pid)`
	const own = `sleep 9 & kill -9 $!; kill -0 $$`
	runRows(t, d, []row{
		{"signal", own, `kill -0 ` + pid},
		{"kill", own, `kill -9 ` + pid},
		{"signal the parent", own, `kill -0 $PPID`},
		{"signal by descriptor", own, `py "import signal; signal.pidfd_send_signal(os.pidfd_open(` + pid + `),0)"`},
		{"environment", own, `cat /proc/` + pid + `/environ`},
		{"command line", own, `cat /proc/` + pid + `/cmdline`},
		{"root", own, `ls /proc/` + pid + `/root/`},
		{"descriptors", own, `ls /proc/` + pid + `/fd/`},
		{"memory", own, `exec 3</proc/` + pid + `/mem`},
		{"oom score", own, `echo 1000 >/proc/` + pid + `/oom_score_adj`},
		{"renice", own, `renice -n 19 -p ` + pid},
		{"affinity", own, `py "os.sched_setaffinity(` + pid + `,{0})"`},
		{"limits", own, `py "import resource; resource.prlimit(` + pid + `,resource.RLIMIT_NOFILE,(3,3))"`},
		{"setuid", `[ $(id -u) -ne 0 ]`, `py "os.setuid(0)"`},
		{"setgid", `[ $(id -g) -ne 0 ]`, `py "os.setgid(0)"`},
		{"groups", own, `id -G | grep -qw 0`},
		{"capabilities", `grep -q '^CapEff:.0*$' <(cat /proc/$$/status)`, `grep '^Cap' /proc/$$/status | grep -v '[^0]0000000000000000$'`},
	}, (*world).confinement, func(t testing.TB, w *world) {
		victim := exec.Command("/bin/cat")
		asBoxUser(victim)
		in, err := victim.StdinPipe()
		must(t, err)
		must(t, victim.Start())
		t.Cleanup(func() { in.Close(); victim.Wait() })
		must(t, os.WriteFile(filepath.Join(w.ro, "pid"), []byte(strconv.Itoa(victim.Process.Pid)), 0o644))
	})
}

// grow is a loop that shows that it lives. It survives what it can.
const grow = `grow() { trap '' TERM HUP INT; while :; do echo x >>$WS/alive; sleep 0.02; done; }
`

// testTree: nothing of a box is left when Wait returns.
func testTree(t *testing.T, d sandbox.Driver) {
	const survivors = grow + `
( grow & )
( setsid bash -c "$(declare -f grow); grow" >/dev/null 2>&1 & )
py "
if os.fork()==0:
  os.setsid()
  if os.fork()==0:
    import signal
    signal.signal(signal.SIGTERM,signal.SIG_IGN)
    os.execvp('bash',['bash','-c','while :; do echo x >>\$WS/alive; sleep 0.02; done'])
  os._exit(0)
"
while [ "$(wc -l <$WS/alive 2>/dev/null || echo 0)" -lt 6 ]; do sleep 0.02; done
`
	for _, tc := range []struct {
		name, end, limit string
		wall             time.Duration
		cancel           bool
	}{
		{name: "after the end", end: "exit 7", wall: 20 * time.Second},
		{name: "after the time limit", end: "trap '' TERM; sleep 100 & wait; sleep 100", limit: "timeout", wall: 1500 * time.Millisecond},
		{name: "stopped itself", end: "kill -STOP $$", limit: "timeout", wall: 1500 * time.Millisecond},
		{name: "cancelled", end: "sleep 100", limit: "cancelled", wall: 20 * time.Second, cancel: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t)
			c := w.confinement()
			c.Limits.Wall = tc.wall
			alive := filepath.Join(w.ws, "alive")
			With(t, c, "", func(ctx context.Context, order writ.Writ) {
				out := sandbox.NewTail(1 << 16)
				b, err := d.Start(ctx, order, sandbox.Spec{Argv: []string{"bash", "-c", prelude + survivors + tc.end}, Dir: w.ws, Env: map[string]string{"WS": w.ws}, Stdout: out, Stderr: out})
				must(t, err)
				ctx, cancel := context.WithCancel(ctx)
				defer cancel()
				if tc.cancel {
					go func() { eventually(t, func() bool { return size(alive) >= 12 }); cancel() }()
				}
				exit, err := b.Wait(ctx)
				must(t, err)
				if exit.Limit != tc.limit || tc.limit == "" && exit.Code != 7 {
					t.Errorf("ended with %+v, want limit %q\n%s", exit, tc.limit, out)
				}
			})
			ended := size(alive)
			if ended < 12 {
				t.Fatalf("inconclusive: the survivors never lived: %d bytes", ended)
			}
			time.Sleep(200 * time.Millisecond) // ten times their period: long enough for a survivor to show
			if now := size(alive); now != ended {
				t.Errorf("something lives on: %d bytes, then %d", ended, now)
			}
		})
	}
	t.Run("fork bomb", func(t *testing.T) { testBomb(t, d) })
}

func testBomb(t *testing.T, d sandbox.Driver) {
	w := newWorld(t)
	c := w.confinement()
	c.Limits.Wall, c.Limits.Pids = time.Second, 64
	began := time.Now()
	o := w.bash(t, d, c, `trap '' TERM; bomb() { bomb & bomb & (trap '' TERM; setsid bash -c 'sleep 50' &) ; }; bomb 2>/dev/null; while :; do bomb; done 2>/dev/null`)
	if o.Error != nil || o.Exit.Limit != "timeout" {
		t.Errorf("%+v %v", o.Exit, o.Error)
	}
	if took := time.Since(began); took > 15*time.Second {
		t.Errorf("it took %v to end a fork bomb", took)
	}
	if o := w.bash(t, d, w.confinement(), `(exit 0); cat file`); o.Error != nil || o.Out != "mine\n" {
		t.Errorf("afterwards no box can run: %+v", o)
	}
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// eventually waits for something that another process does.
func eventually(t testing.TB, ok func() bool) {
	for end := time.Now().Add(10 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Error("it never happened")
			return
		}
	}
}
