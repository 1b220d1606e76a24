package prove

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// grow is a loop that shows that it lives. It survives what it can.
const grow = `
grow() { trap '' TERM HUP INT; while :; do echo x >>$WS/alive; sleep 0.02; done; }
lives() { while [ "$(wc -l <$WS/alive 2>/dev/null || echo 0)" -lt ${1:-2} ]; do sleep 0.02; done; }
loop='import time,signal
for s in (1,2,15): signal.signal(s,signal.SIG_IGN)
while True:
  open("alive","a").write("x"+chr(10)); time.sleep(0.02)
'
`

// survivors go on in a subshell, in a session of their own, and as a daemon.
const survivors = `
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
lives 6
`

// A leaving is a command that leaves something behind, and how it ends.
type leaving struct {
	name, script, limit string
	wall                time.Duration
	cancel              bool
	stops               bool // something stops, for which gVisor hangs up on the whole group, since a box's is orphaned
}

// treeProbes: nothing of a box is left when Wait returns (group H).
func treeProbes() []Probe {
	const long, short = wall, 1500 * time.Millisecond
	all := []Probe{{Name: "fork bomb", try: tryBomb, alone: true}}
	for _, l := range []leaving{
		{name: "after the end", script: survivors + "exit 7", wall: long},
		{name: "after the time limit", script: survivors + "trap '' TERM; sleep 100 & wait; sleep 100", limit: "timeout", wall: short},
		{name: "stopped itself", script: survivors + "kill -STOP $$", limit: "timeout", wall: short, stops: true},
		{name: "cancelled", script: survivors + "sleep 100", limit: "cancelled", wall: long, cancel: true},
		{name: "killed itself", script: survivors + "kill -KILL $$", wall: long},
		{name: "a stopped child", script: "sleep 100 & kill -STOP $!\n( grow & ); lives; wait", limit: "timeout", wall: short, stops: true},
		{name: "disowned", script: "grow </dev/null >/dev/null 2>&1 & disown; lives; exit 7", wall: long},
		{name: "nohup", script: "nohup bash -c \"$(declare -f grow); grow\" >/dev/null 2>&1 & lives; exit 7", wall: long},
		{name: "a child that holds the output", script: "grow & lives; exit 7", wall: long},
		{name: "adopted by a child", script: `python3 -S -E -c "import ctypes,os
ctypes.CDLL(None).prctl(36,1,0,0,0)
if os.fork()==0:
  if os.fork()==0: exec('''$loop''')
  os._exit(0)
exec('''$loop''')" & lives 6; exit 7`, wall: long},
		{name: "a brother", script: `py "
if call(` + cloneNr + `,0x8000|17,0,0,0,0)==0: exec('''$loop''')"; lives; exit 7`, wall: long}, // CLONE_PARENT
		{name: "a child that ends without a signal", script: `py "
if call(` + cloneNr + `,0,0,0,0,0)==0: exec('''$loop''')"; lives; exit 7`, wall: long},
		{name: "a thread that outlives its first", script: `python3 -S -E -c "import threading,ctypes
threading.Thread(target=lambda: exec('''import time
while True:
  open('alive','a').write('x'+chr(10)); time.sleep(0.02)''')).start()
ctypes.CDLL(None).syscall(` + exitNr + `,0)" & lives; exit 7`, wall: long},
		{name: "many zombies", script: `py "
for i in range(100):
  if os.fork()==0: os._exit(0)
if os.fork()==0: exec('''$loop''')
import time; time.sleep(0.1); os._exit(0)"; lives; exit 7`, wall: long},
	} {
		all = append(all, Probe{Name: l.name, try: l.try})
	}
	return group("tree", sandbox.WholeTreeDies, all)
}

// try runs the command and looks, after Wait, whether anything of it lives.
func (l leaving) try(ctx context.Context, w *world) error {
	c := w.confinement()
	c.Limits.Wall = l.wall
	alive := filepath.Join(w.ws, "alive")
	var exit sandbox.Exit
	var ran error
	out := sandbox.NewTail(1 << 16)
	err := With(ctx, c, "", func(ctx context.Context, order writ.Writ) {
		spec := sandbox.Spec{Argv: []string{"bash", "-c", prelude + grow + l.script}, Dir: w.ws, Env: map[string]string{"WS": w.ws}, Stdout: out, Stderr: out}
		b, err := w.driver.Start(ctx, order, spec)
		if err != nil {
			ran = err
			return
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		if l.cancel {
			go func() { eventually(ctx, func() bool { return size(alive) >= 12 }); cancel() }()
		}
		exit, ran = patiently(ctx, b, l.wall)
	})
	if errors.Is(ran, errStuck) {
		return ran
	}
	if err != nil || ran != nil {
		return inconclusive("it could not be run: %v %v", err, ran)
	}
	ended := size(alive)
	hungUp := l.stops && w.have.Has(sandbox.GVisor) && exit.Signal == "hangup"
	if ended < 2 && !hungUp {
		return inconclusive("the survivors never lived: %s", Outcome{Out: out.String(), Exit: exit})
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	time.Sleep(200 * time.Millisecond) // ten times their period: long enough for a survivor to show
	if now := size(alive); now != ended {
		return broken("something lives on: %d bytes, then %d", ended, now)
	}
	if hungUp {
		return skipped("gVisor hung up on the command before its time; nothing lives on")
	}
	if exit.Limit != l.limit {
		return broken("it ended with %q, not %q: %s", exit.Limit, l.limit, Outcome{Out: out.String(), Exit: exit})
	}
	return nil
}

// tryBomb: a fork bomb ends at the time limit, and afterwards boxes work.
func tryBomb(ctx context.Context, w *world) error {
	c := w.confinement()
	c.Limits.Wall, c.Limits.Pids = time.Second, 64
	began := time.Now()
	o := w.bash(ctx, c, `trap '' TERM; bomb() { bomb & bomb & (trap '' TERM; setsid bash -c 'sleep 50' &) ; }; bomb 2>/dev/null; while :; do bomb; done 2>/dev/null`, nil)
	if o.Error != nil {
		return inconclusive("%s", o)
	}
	if took := time.Since(began); o.Exit.Limit != "timeout" || took > 15*time.Second {
		return broken("it took %v to end: %s", took, o)
	}
	if o := w.bash(ctx, w.confinement(), `(exit 0); cat file`, nil); o.Error != nil || o.Out != "mine\n" {
		return broken("afterwards no box can run: %s", o)
	}
	return nil
}

func size(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}

// eventually waits for something that another process does, for a while.
func eventually(ctx context.Context, ok func() bool) {
	for end := time.Now().Add(10 * time.Second); !ok() && ctx.Err() == nil && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
}
