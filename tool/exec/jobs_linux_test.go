package exec

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

const await = `await() { until [ -e "$1" ]; do sleep 0.005; done; }; `

// A job from its start to its end: what each verb says at each point.
func TestJob(t *testing.T) {
	w := newWorld(t)
	id := w.start(t, coder, await+"echo one; await a; echo two >&2; await b; printf 'thr€e'")
	written := func(n int64) func() bool {
		return func() bool { return w.registered(id).output.total() == n }
	}
	expect := func(do string, more m, want string) {
		t.Helper()
		if diff := cmp.Diff(want, w.job(t, coder, do, id, more)); diff != "" {
			t.Errorf("%s %v: -want +got\n%s", do, more, diff)
		}
	}
	eventually(t, "one", written(4))
	w.clock.Add(int64(2 * time.Second))
	expect("check", nil, "[job JOB running for 2s, 4 bytes of output so far]\n")
	expect("output", nil, "one\n[job JOB running for 2s, 4 bytes of output so far; go on with from: 4]\n")
	w.put(t, "a")
	eventually(t, "two", written(8))
	expect("output", m{"from": 4}, "two\n[job JOB running for 2s, 8 bytes of output so far; go on with from: 8]\n")
	expect("output", m{"from": 8}, "[job JOB running for 2s, 8 bytes of output so far; go on with from: 8]\n")
	expect("output", m{"from": 9}, "invalid_argument: shell_job: from 9 lies past the end; the job has written 8 bytes")
	w.clock.Add(int64(70 * time.Second))
	w.put(t, "b")
	w.over(id)
	w.clock.Add(int64(time.Hour))
	const end = "completed after 1m12s, exit status 0, 15 bytes of output"
	expect("check", nil, "[job JOB "+end+"]\n")
	expect("output", nil, "one\ntwo\nthr€e\n[job JOB "+end+"]\n")
	expect("output", m{"bytes": 7}, "[cut: the last 7 of 15 bytes]\nthr€e\n[job JOB "+end+"]\n")
	expect("output", m{"from": 2, "bytes": 4}, "e\ntw\n[job JOB "+end+"; go on with from: 6]\n")
	expect("output", m{"from": 8, "bytes": 5}, "thr\n[job JOB "+end+"; go on with from: 11]\n") // the € is not split
	expect("output", m{"from": 11}, "€e\n[job JOB "+end+"]\n")
	expect("output", m{"from": 15}, "[job JOB "+end+"]\n")
	expect("cancel", nil, "[job JOB "+end+"]\n") // not an error
}

// Every way to end: what is said of it, and what OnEnd is told, once.
func TestStates(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		name, command string
		end           func(id string)
		said          string
		want          Ended
	}{
		{"completed", "exit 0", nil, "completed after 0s, exit status 0, 0 bytes of output", Ended{State: Completed}},
		{"failed", "echo no; exit 3", nil, "failed after 0s, exit status 3, 3 bytes of output", Ended{State: Failed, ExitCode: 3, Bytes: 3}},
		{"signal", "kill -9 $$", nil, "failed after 0s, signal: killed, 0 bytes of output", Ended{State: Failed, ExitCode: -1, Signal: "killed"}},
		{"timed out", "echo so far; trap '' TERM; while :; do sleep 1000; done", nil, "timed_out after 0s, 7 bytes of output", Ended{State: TimedOut, ExitCode: -1, Signal: "killed", Limit: "timeout", Bytes: 7}},
		{"cancelled", "sleep 1000", func(id string) { w.job(t, coder, "cancel", id, nil) }, "cancelled after 0s, 0 bytes of output", Ended{State: Cancelled, ExitCode: -1, Signal: "killed", Limit: "cancelled"}},
		{"task", "sleep 1000", func(string) { w.jobs.EndTask("t1") }, "cancelled after 0s, 0 bytes of output", Ended{State: Cancelled, ExitCode: -1, Signal: "killed", Limit: "cancelled"}},
		{"session", "sleep 1000", func(string) { w.jobs.EndSession("s1") }, "cancelled after 0s, 0 bytes of output", Ended{State: Cancelled, ExitCode: -1, Signal: "killed", Limit: "cancelled"}},
		{"agent", "sleep 1000", func(string) { w.jobs.EndAgent("coder") }, "cancelled after 0s, 0 bytes of output", Ended{State: Cancelled, ExitCode: -1, Signal: "killed", Limit: "cancelled"}},
		{"everybody", "sleep 1000", func(string) { w.jobs.EndAgent("*") }, "cancelled after 0s, 0 bytes of output", Ended{State: Cancelled, ExitCode: -1, Signal: "killed", Limit: "cancelled"}},
		{"lost", "echo $PPID; sleep 1000", func(id string) { killSupervisor(t, w, id) }, "lost after 0s, %d bytes of output; its processes may be left, so tell the operator", Ended{State: Lost, ExitCode: -1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			id := w.startFor(t, coder, m{"command": tc.command, "background": true, "timeout_seconds": map[bool]int{true: 1, false: 60}[tc.want.State == TimedOut]})
			if tc.end != nil {
				tc.end(id)
			}
			w.over(id)
			want := tc.want
			want.Job, want.Agent, want.Session, want.Task, want.Call = id, "coder", "s1", "t1", "call_1"
			if want.State == Lost {
				want.Bytes = w.registered(id).output.total()
				tc.said = fmt.Sprintf(tc.said, want.Bytes)
			}
			if got := w.job(t, coder, "check", id, nil); got != "[job JOB "+tc.said+"]\n" {
				t.Errorf("check: %q", got)
			}
			if diff := cmp.Diff([]Ended{want}, w.ends(id)); diff != "" {
				t.Errorf("OnEnd: -want +got\n%s", diff)
			}
		})
	}
}

// killSupervisor kills the process that would report the end of a job.
func killSupervisor(t *testing.T, w *world, id string) {
	t.Helper()
	out := w.registered(id).output
	eventually(t, "the supervisor's number", func() bool { return strings.HasSuffix(out.tail.String(), "\n") })
	pid, err := strconv.Atoi(strings.TrimSpace(out.tail.String()))
	if err != nil || pid < 2 {
		t.Fatalf("inconclusive: %d, %v", pid, err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// The ends hit what they name and nothing else.
func TestEndsAreNarrow(t *testing.T) {
	w := newWorld(t)
	other := writ.Call{ID: "call_2", Agent: "other", Session: "s2", Task: "t2"}
	id := w.start(t, other, "sleep 1000")
	w.jobs.EndTask("t1")
	w.jobs.EndSession("s1")
	w.jobs.EndAgent("coder")
	w.jobs.EndTask("s2")
	w.jobs.EndTask("")
	if got := w.job(t, other, "check", id, nil); got != "[job JOB running for 0s, 0 bytes of output so far]\n" {
		t.Errorf("after ends of others: %q", got)
	}
	w.jobs.EndTask("t2")
	if got := w.job(t, other, "check", id, nil); got != "[job JOB cancelled after 0s, 0 bytes of output]\n" {
		t.Errorf("control: %q", got)
	}
}

// The job of another agent or session is as good as none.
func TestOwner(t *testing.T) {
	w := newWorld(t)
	id := w.start(t, coder, "echo secret; sleep 1000")
	none := `not_found: there is no job "JOB"; shell_job with do: list shows those of this session`
	if got := w.job(t, coder, "check", "job_aaaaaaaaaaaaaaaa", nil); got != none {
		t.Errorf("no such job: %q", got)
	}
	for name, who := range map[string]writ.Call{
		"other agent":   {ID: "c", Agent: "other", Session: "s1", Task: "t1"},
		"other session": {ID: "c", Agent: "coder", Session: "s2", Task: "t1"},
		"no session":    {ID: "c", Agent: "coder", Task: "t1"},
	} {
		for _, do := range []string{"check", "output", "cancel"} {
			if got := w.job(t, who, do, id, nil); got != none {
				t.Errorf("%s, %s: %q", name, do, got)
			}
		}
		if got := w.job(t, who, "list", "", nil); got != "[no jobs in this session]\n" {
			t.Errorf("%s, list: %q", name, got)
		}
	}
	sibling := writ.Call{ID: "c", Agent: "coder", Session: "s1", Task: "t2"}
	if got := w.job(t, sibling, "cancel", id, nil); !strings.HasPrefix(got, "[job JOB cancelled after 0s, ") {
		t.Errorf("control, another task of the session: %q", got)
	}
}

// A list is the caller's own jobs, the newest first.
func TestList(t *testing.T) {
	w := newWorld(t)
	first := w.start(t, coder, "echo 1\n# "+strings.Repeat("é", 100))
	w.over(first)
	w.start(t, writ.Call{ID: "c", Agent: "coder", Session: "s2"}, "sleep 1000")
	second := w.start(t, coder, "sleep 1000")
	want := second + ` running for 0s, 0 bytes of output so far: "sleep 1000"` + "\n" +
		first + ` completed after 0s, exit status 0, 2 bytes of output: "echo 1\n# ` + strings.Repeat("é", 70) + `…"` + "\n"
	if diff := cmp.Diff(want, w.job(t, coder, "list", "", nil)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// Five jobs of an agent at a time, over all sessions.
func TestTheSixth(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for i := range maxLive {
		who := coder
		who.Session = fmt.Sprintf("s%d", i+1)
		ids = append(ids, w.start(t, who, "sleep 1000"))
	}
	sixth := m{"command": "touch ran", "background": true}
	_, err := w.do(t.Context(), coder, "shell_command", sixth)
	const want = "5 jobs of agent coder and those below it are running, the most there may be; wait for one to end, or cancel one with shell_job"
	if kind, msg := writ.Public(err); kind != writ.Conflict || msg != want {
		t.Errorf("the sixth: %v", err)
	}
	w.start(t, writ.Call{ID: "c", Agent: "other", Session: "s1"}, "true")
	w.job(t, coder, "cancel", ids[0], nil)
	w.startFor(t, coder, sixth)
}

// Of the jobs that ended, the last 64 of an agent are remembered.
func TestForgotten(t *testing.T) {
	w := newWorld(t)
	var ids []string
	for range maxFinished + 1 {
		ids = append(ids, w.start(t, coder, ":"))
		w.over(ids[len(ids)-1])
	}
	if got := w.job(t, coder, "check", ids[0], nil); !strings.HasPrefix(got, "not_found: ") {
		t.Errorf("the oldest: %q", got)
	}
	if got := w.job(t, coder, "check", ids[1], nil); !strings.HasPrefix(got, "[job JOB completed ") {
		t.Errorf("the oldest but one: %q", got)
	}
	if n := strings.Count(w.job(t, coder, "list", "", nil), "\n"); n != maxFinished || len(w.jobs.byID) != n {
		t.Errorf("%d listed, %d kept", n, len(w.jobs.byID))
	}
}

// A caller who leaves before a job has started takes it along; later it runs on.
func TestCallerLeaves(t *testing.T) {
	w := newWorld(t)
	ctx, leave := context.WithCancel(t.Context())
	res, err := w.do(ctx, coder, "shell_command", m{"command": await + "await go; echo done", "background": true})
	if err != nil {
		t.Fatal(err)
	}
	leave()
	_, err = w.do(ctx, coder, "shell_command", m{"command": "true", "background": true})
	const want = "stopped before the job had started; start it again if it is still wanted"
	if kind, msg := writ.Public(err); kind != writ.Stopped || msg != want || len(w.jobs.byID) != 1 {
		t.Errorf("left before: %v", err)
	}
	w.put(t, "go")
	id := res.Metadata["job"].(string)
	w.over(id)
	if got := w.job(t, coder, "output", id, nil); got != "done\n[job JOB completed after 0s, exit status 0, 5 bytes of output]\n" {
		t.Errorf("left after: %q", got)
	}
}

// leaver starts real boxes and lets the caller leave meanwhile.
type leaver struct{ before, after func() }

func (l leaver) Start(ctx context.Context, w writ.Writ, spec sandbox.Spec) (sandbox.Box, string, error) {
	l.before()
	defer l.after()
	return driver.Start(ctx, w, spec)
}

// A caller who leaves during the start has no job running either.
func TestCallerLeavesMeanwhile(t *testing.T) {
	const early = "stopped before the job had started; start it again if it is still wanted"
	const late = "the call was stopped while its job started, so the job was ended; what it had done by then stays"
	stay := func() {}
	for name, tc := range map[string]struct {
		boxes func(leave func()) Starter
		want  string
	}{
		"before": {func(leave func()) Starter { return leaver{leave, stay} }, early},
		"after":  {func(leave func()) Starter { return leaver{stay, leave} }, late},
		"stays":  {func(func()) Starter { return leaver{stay, stay} }, ""},
	} {
		w := newWorld(t)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		w.jobs.boxes = tc.boxes(leave)
		said := ""
		if _, err := w.do(ctx, coder, "shell_command", m{"command": "sleep 1000", "background": true}); err != nil {
			_, said = writ.Public(err)
		}
		if said != tc.want && !(name == "before" && said == late) { // the box may be up before it hears of it
			t.Errorf("%s: %q", name, said)
		}
		live := 0
		for _, j := range w.jobs.byID {
			if w.jobs.view(j).live() {
				live++
			}
		}
		if live != map[string]int{"stays": 1}[name] {
			t.Errorf("%s: %d live jobs", name, live)
		}
	}
}

// What does not start leaves no job, no place taken, and tells OnEnd nothing.
func TestNotStarted(t *testing.T) {
	w := newWorld(t)
	background := m{"command": "true", "background": true}
	_, err := w.do(t.Context(), writ.Call{ID: "c", Agent: "coder"}, "shell_command", background)
	const want = "a background job belongs to a session and this call has none; open one, or run the command without background"
	if kind, msg := writ.Public(err); kind != writ.Invalid || msg != want {
		t.Errorf("no session: %v", err)
	}
	ws := w.ws
	for range maxLive + 1 {
		w.ws = ws + "/gone"
		_, err := w.do(t.Context(), coder, "shell_command", background)
		if kind, msg := writ.Public(err); kind != writ.Invalid || msg != "the working directory "+w.ws+" cannot be used; name an existing one by its absolute path" {
			t.Fatalf("no directory: %v", err)
		}
	}
	w.ws = ws
	if len(w.jobs.byID) != 0 || len(w.ended) != 0 {
		t.Errorf("%d jobs, %d ends", len(w.jobs.byID), len(w.ended))
	}
	w.startFor(t, coder, background)
}
