package cgroup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ/need"
)

// A part is what this test program does when it is started as a process of a box.
const part = "WRIT_CGROUP_TEST"

func TestMain(m *testing.M) {
	go func() {
		time.Sleep(2 * time.Minute) // whatever goes wrong, nothing of this stays
		os.Exit(9)
	}()
	switch os.Getenv(part) {
	case "":
		Sweep(deployment) // of a run that was killed
		os.Exit(m.Run())
	case "echo": // answers each line
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			fmt.Println(in.Text())
		}
	case "eat": // takes 256 MiB once it is told to
		bufio.NewReader(os.Stdin).ReadString('\n')
		var all [][]byte
		for range 256 {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			all = append(all, b)
		}
		fmt.Println("ate", len(all))
	case "leave": // makes a group with a process in it and waits to be killed
		r, err := Open(os.Args[1])
		fatal(err)
		g, err := r.New()
		fatal(err)
		sleeper := exec.Command("sleep", "100")
		fatal(sleeper.Start())
		fatal(g.Add(sleeper.Process.Pid))
		fmt.Println(sleeper.Process.Pid)
		io.Copy(io.Discard, os.Stdin)
		fatal(r.Close())
	}
	os.Exit(0)
}

func fatal(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// A child is a process of a box.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, doing string, args ...string) *child {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return begin(t, doing, self, args...)
}

func begin(t *testing.T, doing, program string, args ...string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(program, args...)}
	c.Env = append(os.Environ(), part+"="+doing)
	c.Stderr = io.Discard
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2, c.Start()); err != nil {
		t.Fatal(err)
	}
	c.in, c.out = in, bufio.NewReader(out)
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c
}

func (c *child) say(line string) { io.WriteString(c.in, line+"\n") }

func (c *child) hear(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the process ended instead of answering: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

const deployment = "writ-test"

// opened is a root that can limit something.
func opened(t testing.TB, limits ...string) *Root {
	t.Helper()
	r, err := Open(deployment)
	if err != nil {
		need.Lacking(t, "%v", err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, l := range limits {
		if !slices.Contains(r.Enforces(), l) {
			need.Lacking(t, "control groups here do not limit %s", l)
		}
	}
	return r
}

func made(t testing.TB, r *Root) *Group {
	t.Helper()
	g, err := r.New()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func join(t *testing.T, g *Group, c *child, l Limits) {
	t.Helper()
	if err := errors.Join(g.Add(c.Process.Pid), g.Limit(l)); err != nil {
		t.Fatal(err)
	}
}

func hit(t *testing.T, g *Group, want string) {
	t.Helper()
	if got, err := g.Hit(); got != want || err != nil {
		t.Errorf("Hit() = %q, %v; want %q", got, err, want)
	}
}

func TestMemory(t *testing.T) {
	r := opened(t, memory)
	for _, c := range []struct {
		name  string
		limit int64
		hit   string
	}{
		{"a bomb is killed", 64 << 20, "memory"},
		{"what fits goes on", 1 << 30, ""},
		{"no limit", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, beside := made(t, r), made(t, r)
			eater, neighbour := start(t, "eat"), start(t, "echo")
			join(t, g, eater, Limits{Memory: c.limit})
			join(t, beside, neighbour, Limits{Memory: 256 << 20})
			eater.say("go")
			out, _ := io.ReadAll(eater.out)
			err := eater.Wait()
			hit(t, g, c.hit)
			var exit *exec.ExitError
			if killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL; killed != (c.hit != "") {
				t.Errorf("the process ended with %v, having said %q", err, out)
			}
			neighbour.say("well?")
			if got := neighbour.hear(t); got != "well?" {
				t.Errorf("the neighbour says %q", got)
			}
			hit(t, beside, "")
		})
	}
}

const bomb = `read x; i=0; while [ $i -lt 200 ]; do sleep 50 >/dev/null 2>&1 & i=$((i+1)); done 2>/dev/null; echo $i`

func TestPids(t *testing.T) {
	r := opened(t, pids)
	for _, c := range []struct {
		name  string
		limit int64
		hit   string
	}{
		{"a fork bomb is bounded", 20, "pids"},
		{"what fits goes on", 300, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, beside := made(t, r), made(t, r)
			sh, neighbour := begin(t, "", "/bin/sh", "-c", bomb), start(t, "echo")
			join(t, g, sh, Limits{Pids: c.limit})
			join(t, beside, neighbour, Limits{Pids: 100})
			sh.say("go")
			out, _ := sh.out.ReadString('\n')
			hit(t, g, c.hit)
			if all := out == "200\n"; all != (c.hit == "") {
				t.Errorf("the shell said %q", out)
			}
			if n := count(t, g); n > int(c.limit) || n < 2 {
				t.Errorf("there are %d processes, want 2 to %d", n, c.limit)
			}
			if err := g.Kill(); err != nil {
				t.Error(err)
			}
			if n := count(t, g); n != 0 {
				t.Errorf("%d processes are left", n)
			}
			hit(t, g, c.hit)
			neighbour.say("well?")
			if got := neighbour.hear(t); got != "well?" {
				t.Errorf("the neighbour says %q", got)
			}
		})
	}
}

func count(t *testing.T, g *Group) int {
	t.Helper()
	all, err := processes(g.dirs[0])
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}

// A group that is kept is asked for each run. What was killed counts until its parent has
// taken note, hence the room.
func TestHitCountsSinceLimit(t *testing.T) {
	r := opened(t, memory, pids)
	g := made(t, r)
	for _, c := range []struct {
		limit, memory int64 // lowered and raised
		hit           string
	}{{10, 512 << 20, "pids"}, {1000, 1 << 30, ""}, {10, 256 << 20, "pids"}, {1000, 0, ""}} {
		sh := begin(t, "", "/bin/sh", "-c", bomb)
		join(t, g, sh, Limits{Pids: c.limit, Memory: c.memory})
		sh.say("go")
		sh.out.ReadString('\n')
		hit(t, g, c.hit)
		if err := g.Kill(); err != nil {
			t.Fatal(err)
		}
	}
}

// A run with the limits of the one before counts from where that one ended, and only where
// nothing else has come in between.
func TestAgain(t *testing.T) {
	r := opened(t, pids)
	g := made(t, r)
	sh := begin(t, "", "/bin/sh", "-c", bomb)
	join(t, g, sh, Limits{Pids: 10})
	if g.Again() {
		t.Error("again before anybody asked what was hit")
	}
	sh.say("go")
	sh.out.ReadString('\n')
	hit(t, g, "pids")
	if !g.Again() {
		t.Fatal("not again after a run")
	}
	hit(t, g, "")
	must(t, g.Limit(Limits{Pids: 1000}))
	if g.Again() {
		t.Error("again after other limits were set")
	}
	hit(t, g, "")
	must(t, g.Kill())
	if g.Again() {
		t.Error("again though the group was killed, which leaves other limits")
	}
}

func TestRefusals(t *testing.T) {
	r := opened(t)
	g := made(t, r)
	for _, c := range []struct {
		l    Limits
		want string
	}{
		{Limits{Memory: -1}, "limits {Memory:-1 Pids:0}: use positive numbers, or zero for no limit"},
	} {
		if err := g.Limit(c.l); err == nil || err.Error() != c.want {
			t.Errorf("Limit(%+v) = %v, want %s", c.l, err, c.want)
		}
	}
	if err := (&Group{}).Limit(Limits{Pids: 5}); err == nil || err.Error() != "the limit of pids cannot be enforced here; leave it out, or make its controller available" {
		t.Errorf("a group without controllers: %v", err)
	}
	if err := (&Group{}).Add(os.Getpid()); err == nil {
		t.Error("a closed group took a process")
	}
	if _, err := Open(deployment); err == nil || !strings.Contains(err.Error(), "is there already: this process has opened "+deployment+"; open it once") {
		t.Errorf("opened twice: %v", err)
	}
	if _, err := Open("No/Name"); err == nil || err.Error() != `control groups: "No/Name" is not a name of a deployment; use lower-case letters, digits and dashes, at most 40` {
		t.Errorf("Open: %v", err)
	}
}

func TestSweep(t *testing.T) {
	opened(t)
	name := fmt.Sprintf("writ-test-%d", os.Getpid())
	dead, live := start(t, "leave", name), start(t, "leave", name)
	left, kept := dead.hear(t), live.hear(t)
	dead.Process.Kill()
	dead.Wait()
	if !exists(left) || !exists(kept) {
		t.Fatalf("processes %s and %s should be running", left, kept)
	}
	foreign := notOurs(t, name)
	gone, err := Sweep(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range gone {
		if !strings.HasPrefix(filepath.Base(dir), fmt.Sprintf("%s.%d.", name, dead.Process.Pid)) {
			t.Errorf("Sweep removed %s", dir)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
	if len(gone) == 0 || exists(left) || !exists(kept) {
		t.Errorf("gone %v; process of the dead one lives: %t, of the living one: %t", gone, exists(left), exists(kept))
	}
	for _, dir := range foreign {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("Sweep took %s, which it cannot know: %v", dir, err)
		}
	}
	if again, err := Sweep(name); len(again) != 0 || err != nil {
		t.Errorf("a second Sweep removed %v, %v", again, err)
	}
	live.in.Close()
	if err := live.Wait(); err != nil {
		t.Errorf("the living one: %v", err)
	}
}

// notOurs makes groups that only look like leftovers.
func notOurs(t *testing.T, name string) []string {
	t.Helper()
	all, err := find()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(h hierarchy) bool { return slices.Contains(h.has, pids) })
	if i < 0 {
		return nil
	}
	space, err := pidSpace()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, dir := range []string{name, name + ".x", name + "x.999999.1." + fmt.Sprint(space), name + ".999999.1." + fmt.Sprint(space+1), name + ".0999999.1." + fmt.Sprint(space)} {
		dir = filepath.Join(all[i].own, dir)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { syscall.Rmdir(dir) })
		out = append(out, dir)
	}
	return out
}

// exists: a process that died is a zombie until somebody takes note of it.
func exists(pid string) bool {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func BenchmarkGroup(b *testing.B) {
	r := opened(b)
	b.Run("New+Close", func(b *testing.B) {
		for b.Loop() {
			g, err := r.New()
			if err != nil {
				b.Fatal(err)
			}
			if err := g.Close(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Add", func(b *testing.B) {
		gs := []*Group{made(b, r), made(b, r)}
		sleeper := exec.Command("sleep", "100")
		if err := sleeper.Start(); err != nil {
			b.Fatal(err)
		}
		defer func() { sleeper.Process.Kill(); sleeper.Wait() }()
		i := 0
		for b.Loop() {
			if err := gs[i%2].Add(sleeper.Process.Pid); err != nil {
				b.Fatal(err)
			}
			i++
		}
	})
	g := made(b, r)
	b.Run("Limit", func(b *testing.B) {
		for b.Loop() {
			if err := g.Limit(Limits{Memory: 1 << 30, Pids: 100}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("Hit", func(b *testing.B) {
		for b.Loop() {
			if _, err := g.Hit(); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A group that was given back is used again when nothing is left in it, with limits that
// count anew; what does not end is killed, and its group is not used again.
func TestGiveBack(t *testing.T) {
	r := opened(t)
	first, err := r.New()
	must(t, err)
	must(t, first.Limit(Limits{Pids: 1}))
	dirs := slices.Clone(first.dirs)
	sleeper := exec.Command("sleep", "100")
	must(t, sleeper.Start())
	must(t, first.Add(sleeper.Process.Pid))
	first.GiveBack()

	second, err := r.New()
	must(t, err)
	if slices.Equal(second.dirs, dirs) {
		t.Fatal("a group with a process in it was given out again")
	}
	second.GiveBack()
	third, err := r.New()
	must(t, err)
	if third != second {
		t.Error("an empty group that was given back was not used again")
	}
	must(t, third.Limit(Limits{}))
	if err := sleeper.Wait(); err == nil || err.Error() != "signal: killed" {
		t.Errorf("what was left in a group that was given back ended so: %v", err)
	}

	short := exec.Command("sleep", "100")
	must(t, short.Start())
	must(t, third.Add(short.Process.Pid))
	third.GiveBack()
	fourth, err := r.New() // which looks at the third
	must(t, err)
	must(t, short.Process.Kill())
	short.Wait()
	if fifth, err := r.New(); err != nil || fifth != third || fourth == third {
		t.Errorf("a group whose last process has just ended was not used again, or before it had: %v", err)
	}
	must(t, r.Close())
	for _, dir := range append(dirs, third.dirs...) {
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is still there", dir)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// What connections keep in the kernel is limited, too, also where it is counted apart.
func TestConnectionsLimited(t *testing.T) {
	r := opened(t)
	g, err := r.New()
	must(t, err)
	defer r.Close()
	counts := g.tcp
	if g.memoryUnified { // which counts them with the rest
		counts = g.memory
	}
	if !counts.there() {
		need.Lacking(t, "nothing here counts what connections keep")
	}
	for _, most := range []int64{64 << 20, 32 << 20} {
		must(t, g.Limit(Limits{Memory: most}))
		if is, err := counts.number(""); err != nil || is != most {
			t.Errorf("%d of %d: %v", is, most, err)
		}
	}
}
