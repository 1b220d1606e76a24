package exec

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// tree is a command with processes that try to get away: in sessions of their
// own, orphaned, deaf to being asked. It writes their numbers, then ready.
const tree = `trap '' TERM HUP; setsid sleep 1000 & echo $!
(setsid setsid bash -c 'echo $$ > pid; exec sleep 1000' &); until [ -s pid ]; do sleep 0.01; done; cat pid; rm pid
echo $$; echo $PPID; echo ready; sleep 1000`

// pids reads the numbers of such a tree, which are those of living processes.
func pids(t testing.TB, lines []string) []int {
	t.Helper()
	var out []int
	for _, line := range lines {
		pid, err := strconv.Atoi(line)
		if err == nil {
			err = syscall.Kill(pid, 0)
		}
		if err != nil {
			t.Fatalf("inconclusive: process %q: %v", line, err)
		}
		out = append(out, pid)
	}
	if len(out) != 4 {
		t.Fatalf("inconclusive: processes %v", out)
	}
	return out
}

// grown waits until a job's tree is there.
func (w *world) grown(t testing.TB, id string) []int {
	t.Helper()
	out := w.registered(id).output
	eventually(t, "ready", func() bool { return strings.HasSuffix(out.tail.String(), "ready\n") })
	return pids(t, strings.Fields(strings.TrimSuffix(out.tail.String(), "ready\n")))
}

func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }

// When an end returns, the whole tree is gone, at that moment.
func TestTreeIsGone(t *testing.T) {
	for name, end := range map[string]func(*world, string){
		"cancel":  func(w *world, id string) { w.job(t, coder, "cancel", id, nil) },
		"task":    func(w *world, _ string) { w.jobs.EndTask("t1") },
		"session": func(w *world, _ string) { w.jobs.EndSession("s1") },
		"agent":   func(w *world, _ string) { w.jobs.EndAgent("*") },
		"close":   func(w *world, _ string) { w.jobs.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			id := w.start(t, coder, tree)
			all := w.grown(t, id)
			end(w, id)
			for _, pid := range all {
				if !gone(pid) {
					t.Errorf("process %d is left", pid)
				}
			}
			if got := w.job(t, coder, "check", id, nil); !strings.HasPrefix(got, "[job JOB cancelled after 0s, ") {
				t.Errorf("%q", got)
			}
		})
	}
}

// Whoever cancels and does not wait has cancelled all the same.
func TestCancelWithoutWaiting(t *testing.T) {
	w := newWorld(t)
	id := w.start(t, coder, "sleep 1000")
	ctx, leave := context.WithCancel(t.Context())
	leave()
	_, err := w.do(ctx, coder, "shell_job", m{"do": "cancel", "job": id})
	const want = "the job is being ended; shell_job with do: check tells when it is gone"
	if kind, msg := writ.Public(err); kind != writ.Stopped || msg != want {
		t.Errorf("%v", err)
	}
	w.over(id)
}

func TestNothingStartsAfterClose(t *testing.T) {
	w := newWorld(t)
	w.start(t, coder, "true")
	w.jobs.Close()
	w.jobs.Close()
	_, err := w.do(t.Context(), coder, "shell_command", m{"command": "true", "background": true})
	const want = "the daemon is ending, so no job starts; try again once it runs"
	if kind, msg := writ.Public(err); kind != writ.Stopped || msg != want {
		t.Errorf("%v", err)
	}
	if res, err := w.do(t.Context(), coder, "shell_command", m{"command": "echo still"}); err != nil || res.Content != "still\n" {
		t.Errorf("control, in the foreground: %q, %v", res.Content, err)
	}
}

// spin waits without giving the moment away.
func spin(done func() bool) {
	for end := time.Now().Add(10 * time.Second); !done() && time.Now().Before(end); {
		runtime.Gosched()
	}
}

// startShort starts a command with a time limit shorter than a caller can ask for.
func (w *world) startShort(t testing.TB, who writ.Call, command string, limit time.Duration) (id string) {
	t.Helper()
	_, err := w.under(t.Context(), who, func(ctx context.Context, order writ.Writ) (res writ.Result, err error) {
		id, _, err = w.jobs.start(ctx, order, sandbox.Spec{Argv: []string{"bash", "-c", command}, Timeout: limit}, command)
		return res, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A command's own end, its time limit, cancels and ends at the same moment: one
// wins, everybody is told the same, and OnEnd is told once. The first rounds are
// surely cancelled and the last ones surely over before.
func TestEndsRace(t *testing.T) {
	w := newWorld(t)
	seen := map[State]int{}
	for round := range 200 {
		who := coder
		who.Task = fmt.Sprint("t", round)
		command, limit := "echo x", time.Minute
		switch {
		case round < 4:
			command = "echo x; sleep 1000"
		case round%4 == 0:
			command, limit = "echo x; sleep 1000", 80*time.Millisecond
		}
		began := time.Now()
		id := w.startShort(t, who, command, limit)
		j := w.registered(id)
		spin(func() bool { return j.output.total() == 2 || !w.jobs.view(j).live() })
		switch {
		case round >= 190:
			<-j.gone
		case limit < time.Minute:
			spin(func() bool { return time.Since(began) > limit-5*time.Millisecond })
		}
		from, later := time.Now(), time.Duration(round)*50*time.Microsecond
		spin(func() bool { return time.Since(from) >= later })
		var said [2]string
		var wg sync.WaitGroup
		for i := range said {
			wg.Go(func() { said[i] = w.job(t, who, "cancel", id, nil) })
		}
		w.jobs.EndTask(who.Task)
		wg.Wait()
		ends := w.ends(id)
		if len(ends) != 1 {
			t.Fatalf("OnEnd was told %d times", len(ends))
		}
		seen[ends[0].State]++
		want := fmt.Sprintf("[job JOB %s]\n", ends[0])
		if said[0] != want || said[1] != want || w.job(t, who, "check", id, nil) != want {
			t.Fatalf("want %q, told %q", want, said)
		}
	}
	if seen[Completed] == 0 || seen[Cancelled] == 0 || seen[TimedOut] == 0 || seen[Completed]+seen[Cancelled]+seen[TimedOut] != 200 {
		t.Errorf("ends: %v", seen)
	}
	t.Log(seen)
}

// A start and an end at the same moment: the job is refused, killed, or was
// started afterwards; once nothing more starts, no process is left.
func TestStartRacesEnd(t *testing.T) {
	started, refused := 0, 0
	for round := range 40 {
		w := newWorld(t)
		marker := fmt.Sprintf("writ-job-%d-%d", os.Getpid(), round)
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = w.do(ctx, coder, "shell_command", m{"command": "exec -a " + marker + " sleep 1000", "background": true})
			})
		}
		if round%4 == 0 { // one is surely under way
			eventually(t, "a box", func() bool { return processExists(marker) })
		}
		switch round % 3 {
		case 0: // as a stop does
			stop()
			w.jobs.EndAgent("coder")
			wg.Wait()
		case 1:
			w.jobs.EndTask("t1")
			wg.Wait()
			w.jobs.EndTask("t1")
		case 2:
			w.jobs.Close()
			wg.Wait()
		}
		if processExists(marker) {
			t.Fatalf("round %d: a process is left", round)
		}
		stop()
		for _, err := range errs {
			if err == nil {
				started++
			} else if refused++; writ.KindOf(err) != writ.Stopped {
				t.Errorf("round %d: %v", round, err)
			}
		}
		for _, j := range w.jobs.byID {
			if n := len(w.ends(j.end.Job)); j.end.State != Cancelled || n != 1 {
				t.Errorf("round %d: job %s, OnEnd was told %d times", round, j.end, n)
			}
		}
	}
	t.Logf("%d started, %d refused", started, refused)
}

// processExists looks for a process by its first argument.
func processExists(name string) bool {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range all {
		b, _ := os.ReadFile(p)
		if first, _, _ := strings.Cut(string(b), "\x00"); first == name {
			return true
		}
	}
	return false
}

// daemon starts a job and tells its processes. It is this test binary again.
func daemon(ws string) {
	w, err := worldIn(ws)
	if err == nil {
		_, err = w.do(context.Background(), coder, "shell_command", m{"command": tree, "background": true})
	}
	if err != nil {
		fmt.Println("failed", err)
		os.Exit(1)
	}
	for _, j := range w.jobs.byID {
		for !strings.HasSuffix(j.output.tail.String(), "ready\n") {
			time.Sleep(time.Millisecond)
		}
		fmt.Print(j.output.tail.String())
	}
	select {}
}

// kill -9 of the daemon leaves no process of a job, also once its call is long
// over (I14).
func TestDaemonKilled(t *testing.T) {
	cmd := osexec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "WRIT_TEST_DAEMON="+newWorld(t).ws)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		said = append(said, lines.Text())
	}
	all := pids(t, said)
	cmd.Process.Kill()
	cmd.Wait()
	for _, pid := range all {
		eventually(t, fmt.Sprint("the end of process ", pid), func() bool { return gone(pid) })
	}
}
