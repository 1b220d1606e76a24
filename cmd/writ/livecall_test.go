package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/writ-run/writ/client"
)

// asking is an agent whose every change asks.
const asking = "level: standard\noverrides: {requires_approval: [\"code:write\"]}\n"

// counted is a call that leaves a line each time it runs.
var counted = []string{"call", "shell_command", "command=echo ran | tee -a count"}

// ran is how often it did.
func (w *world) ran() int {
	b, _ := os.ReadFile(filepath.Join(w.ws, "count")) // none: never
	return strings.Count(string(b), "ran\n")
}

func (w *world) approves(id string) {
	w.t.Helper()
	w.must(pass+"\n", "approval", "approve", id, "--passphrase-stdin")
}

// On a terminal a call says how long it waits and until when; Ctrl-C leaves it pending,
// and the same call made again gets what came of the one run.
func TestCallWaitsOnATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asking, "").init()
	tm := newTerminal(t, 100, 24)
	cmd := w.on(tm, nil, counted...)
	live := regexp.MustCompile(`\rwaiting for a person 1s, until (\d+ [A-Z][a-z]{2} )?\d\d:\d\d; Ctrl-C leaves it pending\x1b\[K`)
	tm.waits("has no live line", func() bool { return live.MatchString(tm.raw()) })
	id := w.pending()
	if !strings.Contains(tm.raw(), "waiting for a person: writ approval show "+id+"\r\n") {
		t.Errorf("it does not say what waits: %q", tm.raw())
	}
	tm.types("\x03")
	if code := exit(t, cmd); code != 4 {
		t.Errorf("exit %d, want 4", code)
	}
	want := "left pending " + id + "; make the same call again to take it up\r\n"
	tm.waits("does not say how to take it up", func() bool { return strings.HasSuffix(tm.raw(), "\r\x1b[K"+want) })
	if tm.modes() != tm.before {
		t.Error("the terminal is not as it was")
	}
	w.approves(id)
	waitFor(t, func() bool { return w.ran() == 1 })
	if o := w.run("", counted...); o.code != 0 || o.out != "ran\n" || w.ran() != 1 {
		t.Errorf("made again: %+v, ran %d times", o, w.ran())
	}
	if o := w.run("", append(counted, "--no-wait")...); o.code != 4 || o.err != "left pending "+w.pending()+"; make the same call again to take it up\n" {
		t.Errorf("once its outcome was taken it is a new call: %+v", o)
	}
	w.verifies()
}

// Approved while it waits it runs, and the line goes away before the answer.
func TestCallIsApprovedWhileItWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asking, "").init()
	tm := newTerminal(t, 100, 24)
	cmd := w.on(tm, nil, "call", "shell_command", "command=echo ran | tee -a count; until test -e go; do sleep 0.1; done; echo done")
	tm.waits("has no live line", func() bool { return strings.Contains(tm.raw(), "Ctrl-C leaves it pending") })
	w.approves(w.pending())
	tm.waits("does not say that it runs", func() bool { return strings.Contains(tm.raw(), "\rapproved by alice; running for ") })
	w.write(filepath.Join(w.ws, "go"), "")
	if code := exit(t, cmd); code != 0 || w.ran() != 1 {
		t.Errorf("exit %d, ran %d times", code, w.ran())
	}
	tm.waits("has no answer on a line of its own", func() bool { return strings.HasSuffix(tm.raw(), "\r\x1b[Kran\r\ndone\r\n") })
}

// Off a terminal there is one line, as there always was.
func TestCallWaitsOffATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asking, "").init()
	call := w.starts(counted...)
	waitFor(t, func() bool { return call.err.String() != "" })
	id := w.pending()
	w.approves(id)
	if o := call.ends(); o.code != 0 || o.out != "ran\n" || o.err != "waiting for a person: writ approval show "+id+"\n" {
		t.Errorf("%+v", o)
	}
}

// What JSON can write in two ways is shown, approved and run as any other text.
func TestCallOfASignThatJSONEscapes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asking, "").init()
	call := []string{"call", "shell_command", "command=echo 'a<b' && echo ran >> count"}
	if o := w.run("", append(call, "--no-wait")...); o.code != 4 {
		t.Fatalf("it does not ask: %+v", o)
	}
	id := w.pending()
	if out := w.must("", "approval", "show", id); !strings.Contains(out, "/command = echo 'a<b' && echo ran >> count\n") {
		t.Errorf("%s", out)
	}
	w.approves(id)
	if o := w.run("", call...); o.code != 0 || o.out != "a<b\n" || w.ran() != 1 {
		t.Errorf("%+v, ran %d times", o, w.ran())
	}
}

// started is a command that runs.
type started struct {
	t        testing.TB
	cmd      *exec.Cmd
	out, err watchedLines
}

func (l *watchedLines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.String()
}

func (w *world) starts(args ...string) *started {
	w.t.Helper()
	s := &started{t: w.t, cmd: exec.Command(program, args...)}
	s.cmd.Env, s.cmd.Dir, s.cmd.Stdout, s.cmd.Stderr = w.env(), w.home, &s.out, &s.err
	if err := s.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { s.cmd.Process.Kill(); s.cmd.Wait() })
	return s
}

func (s *started) ends() outcome {
	s.t.Helper()
	return outcome{exit(s.t, s.cmd), s.out.String(), s.err.String()}
}

// The daemon is killed while a request waits: the call comes back to it, starting it,
// and gets the answer; it ran once.
func TestCallSurvivesTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asking, "").init()
	_, kill := w.serve()
	tm := newTerminal(t, 100, 24)
	cmd := w.on(tm, nil, counted...)
	tm.waits("has no live line", func() bool { return strings.Contains(tm.raw(), "Ctrl-C leaves it pending") })
	id := w.pending()
	kill()
	tm.waits("does not come back", func() bool {
		_, after, lost := strings.Cut(tm.raw(), "\r\x1b[Kthe daemon went away; coming back to it\r\n")
		return lost && strings.Contains(after, "Ctrl-C leaves it pending")
	})
	if got := w.pending(); got != id {
		t.Errorf("it asks anew: %s, was %s", got, id)
	}
	w.approves(id)
	if code := exit(t, cmd); code != 0 || w.ran() != 1 {
		t.Errorf("exit %d, ran %d times:\n%s", code, w.ran(), tm.raw())
	}
	tm.waits("has no answer", func() bool { return strings.HasSuffix(tm.raw(), "\r\x1b[Kran\r\n") })
	w.verifies()
}

// The daemon is killed while a tool runs: what may have changed something is unknown
// and not run again; what changes nothing is.
func TestCallCutOffWhileItRuns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\nautonomy: full\nallowed: [await_go]\n", "").init()
	w.place("tools/await_go.yaml", `name: await_go
description: Waits for the file go.
category: terminal
action_type: code:read
egress_class: none
policy: {risk: low, filesystem: {read: ["/**"]}, exec: allow}
parameters: {type: object, properties: {}}
runner: {script: {language: bash, code: "until test -e go; do sleep 0.1; done; echo found"}}
`)
	_, kill := w.serve()
	w.must(pass+"\n", "tool", "accept", "await_go", "--passphrase-stdin")
	running := func(n int) func() bool {
		return func() bool {
			var is []client.Invocation
			w.decode(&is, "", "invocation", "list", "--state", "running")
			return len(is) == n
		}
	}
	change := w.starts("call", "shell_command", "command=echo ran >> count; sleep 50")
	waitFor(t, func() bool { return w.ran() == 1 })
	read := w.starts("call", "await_go", "--json")
	waitFor(t, running(2))
	kill()
	o := change.ends()
	if want := regexp.MustCompile(`^the daemon went away; coming back to it\nwrit: the daemon was cut off while the call ran, so what came of it is not known; it is not run again by itself\. A person looks at what it was to change, then: writ invocation resolve call_\w+ --happened yes\|no\|partly --note TEXT\n$`); o.code != 1 || o.out != "" || !want.MatchString(o.err) {
		t.Errorf("a change: %+v", o)
	}
	waitFor(t, running(1)) // it is run again by itself
	w.write(filepath.Join(w.ws, "go"), "")
	o = read.ends()
	var reply client.CallReply
	if err := json.Unmarshal([]byte(o.out), &reply); o.code != 0 || err != nil || reply.Content != "found\n" || o.err != "the daemon went away; coming back to it\n" {
		t.Errorf("a read: %v %+v", err, o)
	}
	if w.ran() != 1 {
		t.Errorf("the change ran %d times", w.ran())
	}
	w.verifies()
}

// A daemon that cannot come back is said so, with the key under which the call runs at
// most once.
func TestCallWithoutADaemonToComeBackTo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\nautonomy: full\n", "").init()
	_, kill := w.serve()
	call := w.starts("call", "shell_command", "command=echo ran >> count; sleep 50", "--key", "mine")
	waitFor(t, func() bool { return w.ran() == 1 })
	good, err := os.ReadFile(w.config)
	if err != nil {
		t.Fatal(err)
	}
	w.edit("version: 1", "version: 99")
	kill()
	o := call.ends()
	if o.code != 1 || !strings.Contains(o.err, "writ: the daemon went away during the call, and does not come back (") || !strings.HasSuffix(o.err, "; make the call again with --key mine, and it runs at most once\n") {
		t.Errorf("%+v", o)
	}
	if err := os.WriteFile(w.config, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if o := w.run("", "call", "shell_command", "command=echo ran >> count; sleep 50", "--key", "mine"); o.code != 1 || !strings.Contains(o.err, "what came of it is not known") || w.ran() != 1 {
		t.Errorf("with its key: %+v, ran %d times", o, w.ran())
	}
}

// Calls with one key are one; without it each is another.
func TestCallKey(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level: standard\nautonomy: full\n", "").init()
	keyed := append(counted, "--key", "once")
	for range 2 {
		if o := w.run("", keyed...); o.code != 0 || o.out != "ran\n" || w.ran() != 1 {
			t.Fatalf("%+v, ran %d times", o, w.ran())
		}
	}
	for n := 2; n <= 3; n++ {
		if o := w.run("", counted...); o.code != 0 || w.ran() != n {
			t.Fatalf("%+v, ran %d times, want %d", o, w.ran(), n)
		}
	}
	says(t, "another call with the key", w.run("", "call", "list_directory", "--key", "once"), 1, "the idempotency key was used for another call; use a new one")
	says(t, "no key", w.run("", append(counted, "--key", "ä")...), 1, "the idempotency key: use at most 128 printable ASCII characters")
}

// What happens to one call is streamed from its beginning, and the stream ends with it.
func TestEventsOfOneCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asking, "").init()
	w.run("", append(counted, "--no-wait")...)
	id := w.pending()
	w.asksToo()
	agent := client.Dial(w.state())
	agent.Token = w.token
	var got []string
	last := int64(0)
	for e, err := range agent.EventsOf(t.Context(), id, -1) {
		if err != nil {
			break // that it ended
		}
		if e.Invocation != id || e.Seq != 0 && e.Seq <= last {
			t.Errorf("after %d: %+v", last, e)
		}
		last = max(last, e.Seq)
		if got = append(got, strings.TrimPrefix(e.Name, "tool_invocation_")+" "+e.Person); e.Name == "tool_invocation_approval_required" {
			w.approves(id)
		}
	}
	if want := "requested ,approval_required ,approved alice,started ,completed "; strings.Join(got, ",") != want {
		t.Errorf("got  %s\nwant %s", strings.Join(got, ","), want)
	}
}

// asksToo makes another call that waits.
func (w *world) asksToo() {
	w.t.Helper()
	if o := w.run("", "call", "shell_command", "command=true", "--no-wait"); o.code != 4 {
		w.t.Fatalf("it does not ask: %+v", o)
	}
}
