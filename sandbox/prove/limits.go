package prove

import (
	"context"
	"fmt"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// limitProbes go beyond limits (group H: exhaustion).
func limitProbes() []Probe {
	limited := func(p Probe, f sandbox.Feature, l writ.Limits) Probe {
		p.Feature = f
		p.confine = func(_ *world, c *writ.Confinement) {
			l.Wall, l.Grace = c.Limits.Wall, c.Limits.Grace
			c.Limits = l
		}
		return p
	}
	const many = `py "
import time,os
for i in range(60):
  if os.fork()==0:
    time.sleep(5)
    os._exit(0)"`
	const threads = `py "
import threading,time
for i in range(60): threading.Thread(target=time.sleep,args=(5,),daemon=True).start()"`
	memory, pids := sandbox.LimitMemory, sandbox.LimitPids
	noMemory := []string{"MemoryError", "Cannot allocate memory", "killed", "Killed", "error while loading shared libraries"}
	noFork := []string{eagain, "can't start new thread"}
	all := []Probe{
		limited(row("memory", `py "bytearray(10<<20)"`, `py "bytearray(1<<30)"`, noMemory...), memory, writ.Limits{Memory: 300 << 20}),
		limited(row("small memory", `echo fits`, `py "bytearray(60<<20)"`, noMemory...), memory, writ.Limits{Memory: 64 << 20}),
		limited(row("memory by mapping", `py "import mmap; mmap.mmap(-1,10<<20)"`, `py "import mmap; m=mmap.mmap(-1,1<<30); m.write(b'x'*(1<<30))"`, noMemory...), memory, writ.Limits{Memory: 300 << 20}),
		limited(row("memory, raised", `ulimit -v 200000`, `ulimit -v unlimited`, eperm, einval), memory, writ.Limits{Memory: 300 << 20}),
		limited(row("descriptors", `py "[open('file') for i in range(16)]"`, `py "a=[open('file') for i in range(64)]"`, emfile), "", writ.Limits{Files: 32}),
		limited(row("descriptors, raised", `ulimit -n 16`, `ulimit -n 64`, eperm), "", writ.Limits{Files: 32}),
		limited(row("raising them", `ulimit -n 16`, `py "import resource; resource.setrlimit(resource.RLIMIT_NOFILE,(64,64))"`, "not allowed to raise", eperm), "", writ.Limits{Files: 32}),
		limited(row("file size", `head -c 1000 /dev/zero >f`, `head -c 2M /dev/zero >f`, efbig, "File size limit exceeded"), "", writ.Limits{Size: 1 << 20}),
		limited(row("sparse file", `truncate -s 1000 f`, `py "import signal; signal.signal(signal.SIGXFSZ,signal.SIG_IGN); os.truncate('file',1<<40)"`, efbig), "", writ.Limits{Size: 1 << 20}),
		limited(row("sparse file, by seeking", `truncate -s 1000 f`, `py "import signal; signal.signal(signal.SIGXFSZ,signal.SIG_IGN); os.pwrite(os.open('file',2),b'x',1<<40)"`, efbig), "", writ.Limits{Size: 1 << 20}),
		limited(row("reserved space", `py "os.posix_fallocate(os.open('file',2),0,1000)"`, `py "import signal; signal.signal(signal.SIGXFSZ,signal.SIG_IGN); os.posix_fallocate(os.open('file',2),0,2<<20)"`, efbig), "", writ.Limits{Size: 1 << 20}),
		limited(row("file size, raised", `ulimit -f 100`, `ulimit -f unlimited`, eperm), "", writ.Limits{Size: 1 << 20}),
		limited(row("processes", `sleep 0 & wait $!`, many, noFork...), pids, writ.Limits{Pids: 20}),
		limited(row("threads", `py "import threading; t=threading.Thread(target=print); t.start(); t.join()"`, threads, noFork...), pids, writ.Limits{Pids: 20}),
		limited(row("processes, raised", `ulimit -u 15`, `ulimit -u 30000`, eperm), pids, writ.Limits{Pids: 20}),
		limited(row("temporary space", `head -c 1M /dev/zero >/tmp/f`, `head -c 100M /dev/zero >/tmp/f`, enospc), "", writ.Limits{}),
		limited(row("temporary space, shared memory", `head -c 1M /dev/zero >/dev/shm/f`, `head -c 100M /dev/zero >/dev/shm/f`, enospc), "", writ.Limits{}),
		limited(row("temporary space, home", `head -c 1M /dev/zero >~/f`, `head -c 100M /dev/zero >~/f`, enospc), "", writ.Limits{}),
		limited(row("temporary names", `touch /tmp/f`, `py "
for i in range(80000): os.close(os.open(f'/tmp/{i}',os.O_CREAT|os.O_WRONLY))"`, enospc), "", writ.Limits{}).onGVisor(gvisor{without: "names in /tmp are not counted"}),
		limited(row("core files", `ulimit -c 0`, `[ "$(ulimit -c)" != 0 ] || no 0`, "0"), "", writ.Limits{}),
	}
	return group("limits", "", all, func(p *Probe) { p.alone = p.Feature == pids })
}

// useProbes: what all processes of a run may use together is watched, and ends it.
func useProbes() []Probe {
	const fill = `for i in $(seq 2000); do head -c 1M /dev/zero >part$i || exit 9; done`
	return group("use", "", []Probe{
		{Name: "bytes written", try: tryUse(fill, "disk", writ.Limits{Disk: 32 << 20})},
		{Name: "bytes written, by a child that is left alone", try: tryUse("("+fill+") & disown; sleep 20", "disk", writ.Limits{Disk: 32 << 20})},
		{Name: "time on the processors", try: tryUse(`while :; do :; done`, "cpu", writ.Limits{CPU: time.Second / 2})},
		{Name: "time on the processors, of several", try: tryUse(`for i in 1 2 3 4; do (while :; do :; done) & done; wait`, "cpu", writ.Limits{CPU: time.Second / 2})},
	})
}

// tryUse runs what uses more than it may; what uses less is the control.
func tryUse(script, limit string, l writ.Limits) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		if limit == "disk" && !onDisk(w.ws) {
			return nil // in memory, which has limits of its own
		}
		c := w.confinement()
		c.Limits.Disk, c.Limits.CPU = l.Disk, l.CPU
		o := w.bash(ctx, c, "head -c 1M /dev/zero >part; sleep 0.4", nil)
		if limit == "disk" && w.have.Has(sandbox.GVisor) && writ.KindOf(o.Error) == writ.SandboxUnavailable {
			return skipped("gVisor does not count bytes, and a box that is to be kept to some is not started: %v", o.Error)
		}
		if o.Error != nil || o.Exit.Limit != "" {
			return inconclusive("the control failed: %s", o)
		}
		if o := w.bash(ctx, c, script, nil); o.Error != nil || o.Exit.Limit != limit {
			return broken("%s", o)
		}
		return nil
	}
}

// timeProbes: limits on time end a run, and keep what it said.
func timeProbes() []Probe {
	return group("time", sandbox.LimitWall, []Probe{
		{Name: "partial output is kept", try: tryPartial},
		{Name: "time limit of the spec", try: trySpecTime},
		{Name: "time to clean up", try: tryGrace},
		{Name: "a child that ignores the end", try: tryIgnoring(`(trap '' TERM HUP INT; while :; do sleep 1; done) & trap '' TERM; wait; wait`)},
		{Name: "stopped", try: tryIgnoring(`kill -STOP $$`)},
		{Name: "a stopped child", try: tryIgnoring(`sleep 100 & kill -STOP $!; wait`)},
		{Name: "busy", try: tryIgnoring(`trap '' TERM; while :; do :; done`)},
		{Name: "writes without end", try: tryIgnoring(`trap '' TERM PIPE; while :; do echo x; done`)},
	})
}

func tryPartial(ctx context.Context, w *world) error {
	c := w.confinement()
	c.Limits.Wall = 300 * time.Millisecond
	o := w.bash(ctx, c, `echo partial; echo more >&2; trap '' TERM; while :; do sleep 1; done`, nil)
	if o.Error != nil {
		return inconclusive("%s", o)
	}
	if o.Exit.Limit != "timeout" || o.Exit.Signal == "" || o.Out != "partial\n" || o.Err != "more\n" {
		return broken("%s", o)
	}
	if o.Exit.Elapsed < c.Limits.Wall || o.Exit.Elapsed > 10*time.Second {
		return broken("it says that it took %v", o.Exit.Elapsed)
	}
	return nil
}

func trySpecTime(ctx context.Context, w *world) error {
	for _, argv := range [][]string{{"true"}, {"sleep", "60"}} {
		o := w.run(ctx, w.confinement(), sandbox.Spec{Argv: argv, Timeout: 300 * time.Millisecond})
		if o.Error != nil || (o.Exit.Limit == "timeout") != (argv[0] == "sleep") {
			return broken("%s: %s", argv[0], o)
		}
	}
	return nil
}

func tryGrace(ctx context.Context, w *world) error {
	c := w.confinement()
	c.Limits.Wall, c.Limits.Grace = 300*time.Millisecond, 10*time.Second
	o := w.bash(ctx, c, `trap 'echo bye; exit 3' TERM; while :; do sleep 0.05; done`, nil)
	if o.Error != nil || o.Exit.Limit != "timeout" || o.Exit.Code != 3 || o.Out != "bye\n" {
		return broken("%s", o)
	}
	return nil
}

// tryIgnoring runs what does not end by itself.
func tryIgnoring(script string) func(context.Context, *world) error {
	return func(ctx context.Context, w *world) error {
		c := w.confinement()
		c.Limits.Wall = 300 * time.Millisecond
		if o := w.bash(ctx, w.confinement(), "true", nil); o.Error != nil || o.Exit.Limit != "" {
			return inconclusive("the control failed: %s", o)
		}
		began := time.Now()
		o := w.bash(ctx, c, script, nil)
		took := time.Since(began)
		if o.Error != nil || o.Exit.Limit != "timeout" || took > 10*time.Second {
			return broken("after %v: %s", took.Round(time.Millisecond), fmt.Sprint(o.Exit, o.Error))
		}
		return nil
	}
}
