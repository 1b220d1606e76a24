package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/native"
	"github.com/writ-run/writ/sandbox/protect"
)

// one is a way to run /bin/true with its output taken.
type one struct {
	name string
	run  func() error
}

// boxes measures running one small command: plain, in boxes of ours, and in those of
// others, in turns within one run.
func boxes(program string) error {
	ws, err := os.MkdirTemp("/srv", "writ-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(ws)
	state := ws + "-state"
	defer os.RemoveAll(state)
	if err := errors.Join(os.Mkdir(state, 0o700), os.Chmod(ws, 0o755), os.Chown(ws, 65534, 65534)); err != nil {
		return err
	}
	d := native.New(native.Options{Program: whole(program), Deployment: "writ-bench"})
	defer d.Close()
	names, err := protect.New(protect.Options{State: state, Quarantine: filepath.Join(state, "quarantine"), Linger: 2 * time.Second})
	if err != nil {
		return err
	}
	defer names.Close()
	d.Protect(names) // as the daemon has it
	set := sandbox.Set{d}
	per := func(s sandbox.Strategy) one {
		b := sandbox.NewBoxes(set, sandbox.Lifecycle{Strategy: s, Idle: time.Minute})
		return one{"native, " + string(s), func() error { return boxed(b, ws) }}
	}
	ways := []one{{"plain exec", plainly("/bin/true")}, per(sandbox.PerAgent), per(sandbox.PerCall)}
	ways = append(ways, others(program, ws)...)
	if err := inTurns(ways, 200); err != nil {
		return err
	}
	if err := together(slices.Delete(slices.Clone(ways), 3, 4)[:4]); err != nil {
		return err
	}
	return idle(d, ws)
}

func plainly(argv ...string) func() error {
	return func() error {
		cmd := exec.Command(argv[0], argv[1:]...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%v: %w: %s", argv, err, out)
		}
		return err
	}
}

// others are what else runs a command in a sandbox, as far as they are installed; with
// everything that native does and they can.
func others(program, ws string) []one {
	out := []one{{"writ run, from a shell", plainly(program, "run", "--dir", ws, "--no-caches", "--", "/bin/true")}}
	if bwrap, err := exec.LookPath("bwrap"); err == nil {
		args := []string{bwrap, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
			"--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/bin", "/bin", "--bind", ws, ws, "--chdir", ws, "--", "/bin/true"}
		out = append(out, one{"bwrap", plainly(args...)})
	}
	if firejail, err := exec.LookPath("firejail"); err == nil {
		out = append(out, one{"firejail", plainly(firejail, "--quiet", "--noprofile", "--net=none", "--private-tmp", "--private-dev", "--caps.drop=all", "--nonewprivs", "--seccomp", "--read-only=/", "--", "/bin/true")})
	}
	for _, o := range [][]string{{"codex", "sandbox", "--", "/bin/true"}, {"srt", "/bin/true"}} {
		if path, err := exec.LookPath(o[0]); err == nil {
			out = append(out, one{strings.Join(o[:len(o)-1], " "), plainly(append([]string{path}, o[1:]...)...)})
		}
	}
	return out
}

// boxed runs the command under a writ of its own.
func boxed(b *sandbox.Boxes, ws string) error {
	return under(ws, func(ctx context.Context, w writ.Writ) error {
		box, _, err := b.Start(ctx, w, sandbox.Spec{Argv: []string{"/bin/true"}, Stdout: io.Discard, Stderr: io.Discard})
		if err != nil {
			return err
		}
		exit, err := box.Wait(ctx)
		if err == nil && exit.Code != 0 {
			err = fmt.Errorf("exit %d", exit.Code)
		}
		return err
	})
}

// under calls f with a writ that lets a box write ws.
func under(ws string, f func(context.Context, writ.Writ) error) error {
	g := gatekeeper{writ.Confinement{Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Containerized}, f}
	_, err := writ.NewGate(g, g, g, g).Do(context.Background(), writ.Call{ID: "bench", Agent: "bench", Session: "bench", Tool: "bench", Definition: writ.Digest{1}, Dir: ws, Resolved: true})
	return err
}

type gatekeeper struct {
	confine writ.Confinement
	f       func(context.Context, writ.Writ) error
}

func (g gatekeeper) Decide(context.Context, writ.Call) (writ.Decision, error) {
	return writ.Decision{Effect: writ.Allow, Class: writ.ClassNone, Confine: g.confine}, nil
}
func (g gatekeeper) Approve(context.Context, writ.Call, writ.Decision) (writ.Approval, error) {
	return writ.Approval{}, errors.New("nobody is asked")
}
func (g gatekeeper) Record(context.Context, writ.Event) error { return nil }
func (g gatekeeper) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	return writ.Result{}, g.f(ctx, w)
}

// inTurns takes n of each, one after the other, with a moment between: what is made
// ahead is made then, as it would be between calls of an agent.
func inTurns(ways []one, n int) error {
	took := make([][]time.Duration, len(ways))
	for i := range n + 10 {
		for w := range ways {
			began := time.Now()
			if err := ways[w].run(); err != nil {
				return fmt.Errorf("%s: %w", ways[w].name, err)
			}
			if i >= 10 {
				took[w] = append(took[w], time.Since(began))
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	for w := range ways {
		slices.Sort(took[w])
	}
	plain50, plain99 := took[0][n/2], took[0][n*99/100]
	for w := range ways {
		p50, p99 := took[w][n/2], took[w][n*99/100]
		row("/bin/true: "+ways[w].name, fmt.Sprintf("p50 %v, p99 %v", p50.Round(time.Microsecond), p99.Round(10*time.Microsecond)), ratio(p50, plain50)+" at p50, "+ratio(p99, plain99)+" at p99 of a plain exec")
	}
	return nil
}

// together has 64 callers at once, each way for a second, in turns. The machine's speed
// changes within seconds, so each is held against the plain exec of its own round.
func together(ways []one) error {
	const callers, rounds = 64, 7
	rates, of := make([][]float64, len(ways)), make([][]float64, len(ways))
	for range rounds {
		var plain float64
		for i, w := range ways {
			time.Sleep(300 * time.Millisecond) // the kernel takes namespaces away later: that is not the next one's
			rate, err := rateOf(w, callers, time.Second)
			if err != nil {
				return err
			}
			if i == 0 {
				plain = rate
			}
			rates[i], of[i] = append(rates[i], rate), append(of[i], rate/plain)
		}
	}
	for i, w := range ways {
		slices.Sort(rates[i])
		slices.Sort(of[i])
		row(fmt.Sprintf("the same, %d callers: %s", callers, w.name), fmt.Sprintf("%.0f calls/s", rates[i][rounds/2]),
			fmt.Sprintf("%.2fx of a plain exec (%.2f to %.2f in %d rounds)", of[i][rounds/2], of[i][0], of[i][rounds-1], rounds))
	}
	return nil
}

// rateOf is how many calls a second so many callers get done together.
func rateOf(w one, callers int, long time.Duration) (float64, error) {
	var done atomic.Int64
	var failed atomic.Value
	var wg sync.WaitGroup
	began := time.Now()
	for range callers {
		wg.Go(func() {
			for time.Since(began) < long {
				if err := w.run(); err != nil {
					failed.Store(err)
					return
				}
				done.Add(1)
			}
		})
	}
	wg.Wait()
	if err, ok := failed.Load().(error); ok {
		return 0, fmt.Errorf("%s, %d callers: %w", w.name, callers, err)
	}
	return float64(done.Load()) / time.Since(began).Seconds(), nil
}

// idle is what a warm box costs while it waits, many at once.
func idle(d *native.Driver, ws string) error {
	const many = 500
	slab, before := slabKiB(), privateKiB()
	end, err := keep(d, ws, many)
	defer end()
	if err != nil {
		return err
	}
	row(fmt.Sprintf("one warm box, of %d at once", many), fmt.Sprintf("%d KiB private memory", (privateKiB()-before)/many), fmt.Sprintf("and %d KiB of kernel slab", (slabKiB()-slab)/many))
	return nil
}

// keep keeps so many boxes, until the end.
func keep(d sandbox.Keeper, ws string, many int) (end func(), err error) {
	var kept []sandbox.Kept
	err = under(ws, func(ctx context.Context, w writ.Writ) error {
		p, err := d.Plan(ctx, w, sandbox.Spec{Argv: []string{"/bin/true"}})
		for err == nil && len(kept) < many {
			var k sandbox.Kept
			if k, err = p.Keep(ctx); err == nil {
				kept = append(kept, k)
			}
		}
		return err
	})
	return func() {
		for _, k := range kept {
			k.Close()
		}
	}, err
}

// privateKiB is the private memory of all launchers.
func privateKiB() int {
	sum := 0
	all, _ := filepath.Glob("/proc/[0-9]*/comm")
	for _, path := range all {
		if name, _ := os.ReadFile(path); string(name) == "writ-box\n" {
			sum += field(filepath.Join(filepath.Dir(path), "smaps_rollup"), "Private_Clean:") + field(filepath.Join(filepath.Dir(path), "smaps_rollup"), "Private_Dirty:")
		}
	}
	return sum
}

func slabKiB() int { return field("/proc/meminfo", "Slab:") }

func field(path, name string) int {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	return 0
}
