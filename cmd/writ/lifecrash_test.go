package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/need"
)

// stepTool changes something outside, by its class: it says in the file began that it
// runs, and writes a line into effects before (early) or after (late) the file go-ID
// lets it go on. Its child has a name by which it is found.
const stepTool = `name: step
description: Does one step, once it is let go.
category: analytics
action_type: code:write
egress_class: write
policy: {risk: low, filesystem: {read: ["/**"], write: ["/**"]}, exec: allow}
parameters:
  type: object
  required: [id, order]
  properties:
    id: {type: string, x-writ-text: true}
    order: {type: string, enum: [early, late], x-writ-text: true}
runner:
  process:
    argv:
      - bash
      - -c
      - '(exec -a "writ-step-$1" sleep 60 </dev/null >/dev/null 2>&1) &
        test "$2" = late || { echo "$1" >> effects; sync effects; };
        echo "$1" >> began; until test -e "go-$1"; do sleep 0.02; done;
        test "$2" = early || { echo "$1" >> effects; sync effects; };
        kill %1; echo "did $1"'
      - step
      - {arg: id}
      - {arg: order}
`

// peekTool reads, asks a person all the same, and waits to be let go like stepTool.
const peekTool = `name: peek
description: Looks, once it is let go.
category: analytics
action_type: code:read
egress_class: read_only
constraints: {requires_approval: true}
policy: {risk: low, filesystem: {read: ["/**"], write: ["/**"]}, exec: allow}
parameters: {type: object, required: [id], properties: {id: {type: string, x-writ-text: true}}}
runner: {process: {argv: [bash, -c, 'echo "$1" >> began; until test -e "go-$1"; do sleep 0.02; done; echo "saw $1"', peek, {arg: id}]}}
`

// life is a world with a daemon in the foreground, an agent's client and the
// operator's.
type life struct {
	*world
	agent, operator *client.Client
	kill            func()
}

func newLife(t *testing.T) *life {
	t.Helper()
	need.Programs(t, "bash", "sync", "sleep")
	w := newWorld(t, "level: elevated\nautonomy: full\n", "")
	return w.lives()
}

// lives makes the person, accepts the tools and serves.
func (w *world) lives() *life {
	w.t.Helper()
	w.place("tools/step.yaml", stepTool)
	w.place("tools/peek.yaml", peekTool)
	w.init()
	w.accept("step", "peek")
	w.halt()
	l := &life{world: w}
	l.restart()
	return l
}

func (l *life) restart() {
	l.t.Helper()
	l.daemonGone() // a child that was just forked may hold the lock for a moment longer
	_, l.kill = l.serve()
	l.agent, l.operator = client.Dial(l.state()), client.Dial(l.state()) // no connection of the dead one
	l.agent.Token = l.token
}

// crash is kill -9 and another daemon.
func (l *life) crash() {
	l.t.Helper()
	l.kill()
	l.restart()
}

func step(id, order, key string) client.CallRequest {
	return client.CallRequest{Tool: "step", Args: encode(map[string]any{"id": id, "order": order}), Key: key}
}

func peek(id string) client.CallRequest {
	return client.CallRequest{Tool: "peek", Args: encode(map[string]any{"id": id})}
}

// asked makes a call that asks and waits for nobody, and gives its id.
func (l *life) asked(req client.CallRequest) string {
	l.t.Helper()
	_, err := l.agent.Call(l.t.Context(), req, 0)
	p := problem(err)
	if p.Kind != writ.Pending {
		l.t.Fatalf("it does not ask: %v", err)
	}
	return p.Approval
}

// problem is a refusal as it came; of no refusal it is an empty one.
func problem(err error) client.Problem {
	var p *client.Problem
	if errors.As(err, &p) {
		return *p
	}
	return client.Problem{}
}

// agrees approves a request as it is shown, with a grant where terms are given.
func (l *life) agrees(id string, terms *client.GrantTerms) error {
	a, err := l.operator.Approval(l.t.Context(), id)
	if err != nil {
		return err
	}
	_, err = l.operator.Decide(l.t.Context(), id, client.DecisionRequest{Digest: a.Digest, Approve: true, Grant: terms, By: client.Credentials{Name: "alice", Passphrase: pass}})
	return err
}

func (l *life) mustAgree(id string) {
	l.t.Helper()
	if err := l.agrees(id, nil); err != nil {
		l.t.Fatal(err)
	}
}

// lines is how often a file of the workspace has a line.
func (l *life) lines(file, line string) int {
	b, _ := os.ReadFile(filepath.Join(l.ws, file)) // none: never
	n := 0
	for got := range strings.Lines(string(b)) {
		if got == line+"\n" {
			n++
		}
	}
	return n
}

func (l *life) effects(id string) int { return l.lines("effects", id) }

func (l *life) begins(id string) {
	l.t.Helper()
	waitFor(l.t, func() bool { return l.lines("began", id) > 0 })
}

func (l *life) letGo(id string) { l.t.Helper(); l.write(filepath.Join(l.ws, "go-"+id), "") }

// row is an invocation as the operator sees it.
func (l *life) row(id string) client.Invocation {
	l.t.Helper()
	i, err := l.operator.Invocation(l.t.Context(), id, 0)
	if err != nil {
		l.t.Fatal(err)
	}
	return i
}

func (l *life) becomes(id, status string) {
	l.t.Helper()
	var i client.Invocation
	for range 10 {
		var err error
		if i, err = l.operator.Invocation(l.t.Context(), id, 3*time.Second); err != nil {
			l.t.Fatal(err)
		}
		if i.Completed != "" {
			break
		}
	}
	if i.Status != status {
		l.t.Fatalf("%s is %s (%s), want %s", id, i.Status, i.Outcome, status)
	}
}

// endings is what the ledger says of the end of a call.
func (l *life) endings(id string) []string {
	l.t.Helper()
	entries, err := l.operator.LedgerCall(id).All(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		var b struct{ Kind string }
		if err := json.Unmarshal(e.Body, &b); err != nil {
			l.t.Fatal(err)
		}
		switch b.Kind {
		case "call.finished", "call.unknown", "call.interrupted", "call.cancelled", "call.refused", "call.late", "approval.rejected", "approval.expired":
			out = append(out, b.Kind)
		}
	}
	return out
}

// made makes a call in the background, and gives what came of it.
func (l *life) made(ctx context.Context, req client.CallRequest) <-chan answer {
	out := make(chan answer, 1)
	c := l.agent
	go func() {
		reply, err := c.Call(ctx, req, time.Minute)
		out <- answer{reply, err}
	}()
	return out
}

type answer struct {
	reply client.CallReply
	err   error
}

// once demands that a call had its effect once and ended once, as completed.
func (l *life) once(row, id string) {
	l.t.Helper()
	l.becomes(row, "completed")
	if n, e := l.effects(id), l.endings(row); n != 1 || !slices.Equal(e, []string{"call.finished"}) {
		l.t.Errorf("%s: %d effects, endings %v", id, n, e)
	}
}

// E1: approved and not yet taken up when the daemon dies, a call runs once after the
// restart. Eight runs that nobody waits for fill the daemon, so the ninth is approved
// and surely not claimed.
func TestE1ApprovedThenKilledBeforeTheClaim(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	var full []string
	for n := range 8 {
		id := fmt.Sprint("full", n)
		full = append(full, l.asked(step(id, "late", "")))
		l.mustAgree(full[n])
		l.begins(id)
	}
	l.letGo("ninth")
	row := l.asked(step("ninth", "late", "key9"))
	l.mustAgree(row)
	if i := l.row(row); i.Status != "running" || i.ApprovalStatus != "approved" || i.Attempt != 0 {
		t.Fatalf("it does not wait to be taken up: %+v", i)
	}
	l.crash()
	l.once(row, "ninth")
	for n, id := range full {
		l.becomes(id, "unknown")
		if l.effects(fmt.Sprint("full", n)) != 0 || l.lines("began", fmt.Sprint("full", n)) != 1 {
			t.Errorf("full%d ran again", n)
		}
	}
	if r, err := l.agent.Call(t.Context(), step("ninth", "late", "key9"), 0); err != nil || r.Content != "did ninth\n" || r.CallID != row {
		t.Errorf("its outcome is not handed over: %+v %v", r, err)
	}
	l.verifies()
}

// E2, E3: killed while it runs, before and after its effect, a write is unknown, is
// never run again, and a person settles it beside the row, which does not change.
func TestE2E3KilledWhileAWriteRuns(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	effects := map[string]int{"late": 0, "early": 1}
	rows := map[string]string{}
	for order := range effects {
		rows[order] = l.asked(step(order, order, "key-"+order))
		l.mustAgree(rows[order])
		l.begins(order)
	}
	l.crash()
	for order, want := range effects {
		row := rows[order]
		l.becomes(row, "unknown")
		_, err := l.agent.Call(t.Context(), step(order, order, "key-"+order), 0)
		if p := problem(err); p.Kind != writ.Unknown {
			t.Errorf("%s: the same call with its key: %v", order, err)
		}
		if out := l.must("", "invocation", "list", "--state", "unknown"); !strings.Contains(out, row) {
			t.Errorf("%s is not listed:\n%s", order, out)
		}
		if out := l.must("", "invocation", "show", row); !strings.Contains(out, "unknown (not resolved), ") ||
			!strings.HasSuffix(out, "\nthe daemon was cut off while it ran; look at what it was to change, then:\n  "+program+" invocation resolve "+row+" --happened yes|no|partly --note TEXT\n") {
			t.Errorf("%s: what to do is not said:\n%s", order, out)
		}
		before := l.row(row)
		l.must(pass+"\n", "invocation", "resolve", row, "--happened", "partly", "--note", "looked", "--passphrase-stdin")
		again := regexp.MustCompile(`^writ: ` + row + ` was resolved already, by alice \d+s ago: it happened: partly; that stays\n$`)
		if o := l.run("", "invocation", "resolve", row, "--happened", "no", "--note", "again", "--passphrase-stdin"); o.code != 1 || !again.MatchString(o.err) {
			t.Errorf("resolved twice: %+v", o)
		}
		if out := l.must("", "invocation", "show", row); !strings.Contains(out, "unknown (resolved by alice: it happened: partly), ") || strings.Contains(out, "invocation resolve") {
			t.Errorf("%s: shown after it was resolved:\n%s", order, out)
		}
		listed := regexp.MustCompile(`(?m)^` + row + ` +unknown .* resolved by alice: it happened: partly$`)
		if out := l.must("", "invocation", "list"); !listed.MatchString(out) {
			t.Errorf("%s: listed after it was resolved:\n%s", order, out)
		}
		if out := l.must("", "invocation", "list", "--state", "unknown"); strings.Contains(out, row) {
			t.Errorf("%s is still to be settled:\n%s", order, out)
		}
		l.letGo(order) // if it were run again it would end
		l.crash()
		after := l.row(row)
		if r := after.Resolution; r == nil || r.Happened != "partly" || r.By != "alice" || r.Note != "looked" {
			t.Errorf("%s: resolution %+v", order, r)
		}
		before.Args, after.Args, after.Resolution = nil, nil, nil // arguments are kept until somebody has found out
		if string(encode(after)) != string(encode(before)) {
			t.Errorf("the row changed:\n%s\n%s", encode(before), encode(after))
		}
		if n, e := l.effects(order), l.endings(row); n != want || l.lines("began", order) != 1 || !slices.Equal(e, []string{"call.unknown"}) {
			t.Errorf("%s: %d effects, want %d; began %d times; endings %v", order, n, want, l.lines("began", order), e)
		}
	}
	l.verifies()
}

// E2 of a read: it changes nothing, so it is run again by itself and its outcome waits
// for whoever asked.
func TestE2KilledWhileAReadRuns(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	row := l.asked(peek("r"))
	l.mustAgree(row)
	l.begins("r")
	l.crash()
	waitFor(t, func() bool { return l.lines("began", "r") == 2 })
	l.letGo("r")
	l.becomes(row, "completed")
	if i := l.row(row); i.Attempt != 2 {
		t.Errorf("taken up %d times", i.Attempt)
	}
	if r, err := l.agent.Call(t.Context(), peek("r"), 0); err != nil || r.Content != "saw r\n" || r.CallID != row {
		t.Errorf("its outcome is not handed over: %+v %v", r, err)
	}
	if again := l.asked(peek("r")); again == row {
		t.Error("handed over twice")
	}
	l.verifies()
}

// E9: whatever a tool started dies when its call is cancelled.
func TestE9ChildrenDieWithCancel(t *testing.T) {
	l := newLife(t)
	id := fmt.Sprint("e9-", os.Getpid())
	row := l.asked(step(id, "late", ""))
	l.mustAgree(row)
	l.begins(id)
	child := "writ-step-" + id
	waitFor(t, func() bool { return processExists(child) })
	if _, err := l.operator.CancelInvocation(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	l.becomes(row, "cancelled")
	waitFor(t, func() bool { return !processExists(child) })
	if l.effects(id) != 0 || !slices.Equal(l.endings(row), []string{"call.finished"}) {
		t.Errorf("%d effects, endings %v", l.effects(id), l.endings(row))
	}
}

// E10: a caller that lost its connection and comes back with its key gets the one run.
func TestE10RetryAfterALostConnection(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	ctx, lose := context.WithCancel(t.Context())
	cut := l.made(ctx, step("w", "late", "key-w"))
	waitFor(t, func() bool { return len(l.waitingIDs()) == 1 })
	row := l.waitingIDs()[0]
	lose()
	<-cut
	l.mustAgree(row)
	l.begins("w")
	back := []<-chan answer{l.made(t.Context(), step("w", "late", "key-w")), l.made(t.Context(), step("w", "late", "key-w"))}
	l.letGo("w")
	for _, b := range back {
		if a := <-b; a.err != nil || a.reply.Content != "did w\n" || a.reply.CallID != row {
			t.Errorf("%+v", a)
		}
	}
	l.once(row, "w")

	// While it runs for its caller: the run ends with the connection, and is not begun again.
	row = l.asked(step("x", "early", "key-x"))
	ctx, lose = context.WithCancel(t.Context())
	cut = l.made(ctx, step("x", "early", "key-x"))
	l.mustAgree(row)
	l.begins("x")
	lose()
	<-cut
	first := <-l.made(t.Context(), step("x", "early", "key-x"))
	second := <-l.made(t.Context(), step("x", "early", "key-x"))
	if problem(first.err).Kind != writ.Cancelled && problem(first.err).Kind != writ.Pending || problem(second.err).Kind != problem(first.err).Kind {
		t.Errorf("with its key: %v, then %v", first.err, second.err)
	}
	if l.effects("x") != 1 || l.lines("began", "x") != 1 {
		t.Errorf("%d effects, began %d times", l.effects("x"), l.lines("began", "x"))
	}
	l.verifies()
}

// E11: cancelled while it completes, a call ends in one way, and its caller is told
// which.
func TestE11CancelWhileItCompletes(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.letGo("cz")
	row := l.asked(step("cz", "late", ""))
	if err := l.agrees(row, &client.GrantTerms{Uses: 100, Seconds: 600, Match: map[string]string{"id": "c*"}}); err != nil {
		t.Fatal(err)
	}
	l.once(row, "cz")
	said := map[string]int{}
	for n := range 30 {
		id := fmt.Sprint("c", n)
		call := l.made(t.Context(), step(id, "late", id))
		l.begins(id)
		var is []client.Invocation
		waitFor(t, func() bool {
			var err error
			is, err = l.operator.Invocations("running").All(t.Context())
			return err == nil && len(is) == 1
		})
		l.letGo(id)
		time.Sleep(time.Duration(random(60)) * time.Millisecond)
		_, cancelErr := l.operator.CancelInvocation(t.Context(), is[0].ID)
		a := <-call
		i := l.row(is[0].ID)
		said[i.Status]++
		switch {
		case i.Status == "completed" && (a.err != nil || l.effects(id) != 1):
			t.Errorf("%s completed: %+v, %d effects", id, a, l.effects(id))
		case i.Status == "cancelled" && (problem(a.err).Kind != writ.Cancelled || cancelErr != nil || l.effects(id) > 1):
			t.Errorf("%s cancelled (%v): %+v, %d effects", id, cancelErr, a, l.effects(id))
		case i.Status != "completed" && i.Status != "cancelled":
			t.Errorf("%s is %s", id, i.Status)
		}
		if e := l.endings(i.ID); !slices.Equal(e, []string{"call.finished"}) {
			t.Errorf("%s: endings %v", id, e)
		}
	}
	t.Logf("%v", said)
	l.verifies()
}

// E12: the same call made again by ten processes at once after its approval is one
// run, and each gets its outcome.
func TestE12ResumedByTenProcesses(t *testing.T) {
	l := newLife(t)
	row := l.asked(step("ten", "late", "key-ten"))
	l.mustAgree(row)
	var calls []*started
	for range 10 {
		calls = append(calls, l.starts("call", "step", "id=ten", "order=late", "--key", "key-ten", "--json"))
	}
	l.begins("ten")
	l.letGo("ten")
	for _, c := range calls {
		o := c.ends()
		var reply client.CallReply
		if err := json.Unmarshal([]byte(o.out), &reply); err != nil || o.code != 0 || reply.CallID != row || reply.Content != "did ten\n" {
			t.Errorf("%v %+v", err, o)
		}
	}
	l.once(row, "ten")
	l.verifies()
}

// fullLife is a life whose state is on a small disk of its own, and its filler.
func fullLife(t *testing.T) (l *life, filler string) {
	t.Helper()
	need.Root(t)
	need.Programs(t, "bash", "sync", "sleep")
	w := newWorld(t, "level: elevated\nautonomy: full\n", "")
	if err := os.MkdirAll(w.state(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", w.state(), "tmpfs", 0, "size=8m,mode=700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.run("", "serve", "--stop")
		w.daemonGone()
		if err := syscall.Unmount(w.state(), syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	l = w.lives()
	return l, w.state("filler")
}

// runsOutOfDisk fills the disk while a step runs for its caller, until nothing can be
// written down, and lets the step end: its caller is told that nobody knows, and
// nothing new starts.
func (l *life) runsOutOfDisk(filler, id string) (row string) {
	l.t.Helper()
	call := l.made(l.t.Context(), step(id, "late", "key-"+id))
	waitFor(l.t, func() bool { return len(l.waitingIDs()) == 1 })
	row = l.waitingIDs()[0]
	l.mustAgree(row)
	l.begins(id)
	fill(l.t.(*testing.T), filler)
	for failed := 0; failed < 10; { // room inside pages already taken runs out soon
		failed++
		if _, err := l.agent.Call(l.t.Context(), client.CallRequest{Tool: "list_directory"}, 0); problem(err).Kind != writ.StoreUnavailable {
			failed = 0
		}
	}
	l.letGo(id)
	if a := <-call; problem(a.err).Kind != writ.Unknown {
		l.t.Errorf("the caller is told: %+v", a)
	}
	_, err := l.agent.Call(l.t.Context(), client.CallRequest{Tool: "write_file", Args: encode(map[string]any{"path": "during", "content": "x"})}, 0)
	if _, statErr := os.Stat(filepath.Join(l.ws, "during")); problem(err).Kind != writ.StoreUnavailable || statErr == nil {
		l.t.Errorf("something new starts: %v, %v", err, statErr)
	}
	if i := l.row(row); i.Status != "running" || l.effects(id) != 1 {
		l.t.Errorf("%s is %s, with %d effects", row, i.Status, l.effects(id))
	}
	return row
}

// E14: when there is room again, what could not be written down is, without a restart,
// as what it was.
func TestE14DiskFullWhileItRuns(t *testing.T) {
	l, filler := fullLife(t)
	row := l.runsOutOfDisk(filler, "d")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	l.once(row, "d")
	if r, err := l.agent.Call(t.Context(), step("d", "late", "key-d"), 0); err != nil || r.Content != "did d\n" || r.CallID != row {
		t.Errorf("with its key: %+v %v", r, err)
	}
	l.verifies()
}

// E14 with kill -9 before there is room: nobody knows, and it is not run again.
func TestE14DiskFullThenKilled(t *testing.T) {
	l, filler := fullLife(t)
	row := l.runsOutOfDisk(filler, "d")
	l.kill()
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	l.restart()
	l.becomes(row, "unknown")
	if _, err := l.agent.Call(t.Context(), step("d", "late", "key-d"), 0); problem(err).Kind != writ.Unknown {
		t.Errorf("with its key: %v", err)
	}
	if e := l.endings(row); l.effects("d") != 1 || l.lines("began", "d") != 1 || !slices.Equal(e, []string{"call.unknown"}) {
		t.Errorf("%d effects, began %d times, endings %v", l.effects("d"), l.lines("began", "d"), e)
	}
	l.verifies()
}

// E16: a stop ends what waits and what runs, survives a crash, and only what is asked
// anew runs after it is lifted.
func TestE16StopWhilePendingAndRunning(t *testing.T) {
	l := newLife(t)
	id := fmt.Sprint("e16-", os.Getpid())
	running := l.asked(step(id, "late", ""))
	l.mustAgree(running)
	l.begins(id)
	waits := l.asked(step("waits", "late", ""))
	for _, name := range []string{id, "waits"} {
		l.letGo(name + ".never")
	}
	if err := l.operator.Stop(t.Context(), client.StopRequest{Agent: "coder"}); err != nil {
		t.Fatal(err)
	}
	l.becomes(running, "cancelled")
	l.becomes(waits, "cancelled")
	waitFor(t, func() bool { return !processExists("writ-step-" + id) })
	if err := l.agrees(waits, nil); problem(err).Kind != writ.Conflict {
		t.Errorf("approved after the stop: %v", err)
	}
	l.crash()
	if _, err := l.agent.Call(t.Context(), step("new", "late", ""), 0); problem(err).Kind != writ.Stopped {
		t.Errorf("a new call: %v", err)
	}
	if err := l.operator.Lift(t.Context(), "coder", client.Credentials{Name: "alice", Passphrase: pass}); err != nil {
		t.Fatal(err)
	}
	l.letGo("new")
	row := l.asked(step("new", "late", ""))
	l.mustAgree(row)
	l.once(row, "new")
	if l.effects(id)+l.effects("waits") != 0 || l.lines("began", id) != 1 || l.lines("began", "waits") != 0 {
		t.Error("what was stopped ran")
	}
	l.verifies()
}

// A4: what was cancelled is not approved any more; at once, one of the two counts.
func TestA4ApproveAfterCancel(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	row := l.asked(step("a", "late", ""))
	l.letGo("a")
	if _, err := l.operator.CancelInvocation(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if err := l.agrees(row, nil); problem(err).Kind != writ.Conflict {
		t.Errorf("approved after it was cancelled: %v", err)
	}
	for n := range 5 {
		id := fmt.Sprint("b", n)
		l.letGo(id)
		row := l.asked(step(id, "late", ""))
		var agreed, cancelled error
		var both sync.WaitGroup
		both.Go(func() { agreed = l.agrees(row, nil) })
		both.Go(func() {
			time.Sleep(time.Duration(random(200)) * time.Millisecond)
			_, cancelled = l.operator.CancelInvocation(t.Context(), row)
		})
		both.Wait()
		waitFor(t, func() bool { return l.row(row).Completed != "" })
		i := l.row(row)
		switch {
		case i.Status == "completed" && (agreed != nil || cancelled == nil || l.effects(id) != 1):
			t.Errorf("completed: agreed %v, cancelled %v, %d effects", agreed, cancelled, l.effects(id))
		case i.Status == "cancelled" && (cancelled != nil || i.Attempt == 0 && l.effects(id) != 0):
			t.Errorf("cancelled: %v, %d effects", cancelled, l.effects(id))
		case i.Status != "completed" && i.Status != "cancelled":
			t.Errorf("it is %s", i.Status)
		}
		if len(l.endings(row)) != 1 {
			t.Errorf("endings %v", l.endings(row))
		}
	}
	l.verifies()
}

// A grant that is made with an approval covers later calls, not the one approved: it
// runs once by its approval when nobody waits, and its outcome is handed over.
func TestGrantDoesNotRunTheApprovedCallAgain(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.letGo("g1")
	one, two := l.asked(step("g1", "late", "k1")), l.asked(step("g2", "late", "k2"))
	if err := l.agrees(one, &client.GrantTerms{Uses: 5, Seconds: 600, Match: map[string]string{"id": "g*"}}); err != nil {
		t.Fatal(err)
	}
	l.once(one, "g1")
	// What was asked about before the grant was made stays one call, whichever lets it run.
	l.letGo("g2")
	if _, err := l.agent.Call(t.Context(), step("g2", "late", "k2"), 0); problem(err).Kind == writ.Pending {
		l.mustAgree(two)
		l.once(two, "g2")
	} else if err != nil {
		t.Errorf("asked about before: %v", err)
	}
	if err := l.agrees(two, nil); problem(err).Kind != writ.Conflict {
		t.Errorf("agreed to after it ran: %v", err)
	}
	// A control: a new one is covered.
	l.letGo("g3")
	if r, err := l.agent.Call(t.Context(), step("g3", "late", "k3"), 0); err != nil || l.effects("g3") != 1 || l.row(r.CallID).Grant == "" {
		t.Errorf("a call that the grant covers: %+v %v", r, err)
	}
	if l.effects("g1") != 1 || l.effects("g2") != 1 {
		t.Errorf("g1 %d times, g2 %d times", l.effects("g1"), l.effects("g2"))
	}
	l.verifies()
}

// An outcome that was taken with its key is handed over: the same call with another
// key is a new one.
func TestOutcomeTakenByItsKey(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	l.letGo("x")
	row := l.asked(step("x", "late", "k1"))
	l.mustAgree(row)
	l.once(row, "x")
	for range 2 {
		if r, err := l.agent.Call(t.Context(), step("x", "late", "k1"), 0); err != nil || r.CallID != row {
			t.Errorf("with its key: %+v %v", r, err)
		}
	}
	if again := l.asked(step("x", "late", "k2")); again == row {
		t.Error("another call got the outcome of the first")
	}
}

// A caller that leaves while other requests change lets go of its own: approved later, it
// is run by the daemon.
func TestApprovedAfterItsCallerLeft(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	ctx, leave := context.WithCancel(t.Context())
	var callers []<-chan answer
	for n := range 15 {
		id := fmt.Sprint("left", n)
		l.letGo(id)
		callers = append(callers, l.made(ctx, step(id, "late", id)))
	}
	waitFor(t, func() bool { return len(l.waitingIDs()) == len(callers) })
	rows := l.waitingIDs()
	var noise sync.WaitGroup
	for n := range 4 { // each change wakes every caller
		noise.Go(func() {
			for range 10 {
				row := l.asked(step(fmt.Sprint("noise", n), "late", ""))
				if _, err := l.operator.CancelInvocation(t.Context(), row); err != nil {
					t.Error(err)
				}
			}
		})
	}
	time.Sleep(50 * time.Millisecond)
	leave()
	for _, c := range callers {
		<-c
	}
	noise.Wait()
	for _, row := range rows {
		l.mustAgree(row)
	}
	for _, row := range rows {
		l.becomes(row, "completed")
	}
}

// What was approved and waits to be taken up is not run, nor asked about again, once
// the configuration denies it (A14): the daemon ends it, once.
func TestApprovedThenDenied(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for n := range 8 {
		id := fmt.Sprint("full", n)
		l.mustAgree(l.asked(step(id, "late", "")))
		l.begins(id)
	}
	l.letGo("ninth")
	row := l.asked(step("ninth", "late", ""))
	l.mustAgree(row)
	l.kill()
	l.edit("level: elevated\n", "level: elevated\n    denied: [step]\n")
	l.restart()
	l.becomes(row, "cancelled")
	if e := l.endings(row); l.effects("ninth") != 0 || !slices.Equal(e, []string{"call.refused"}) {
		t.Errorf("%d effects, endings %v", l.effects("ninth"), e)
	}
	if all, err := l.operator.Invocations("denied").All(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("%d refused calls of its own, %v", len(all), err)
	}
	l.verifies()
}

// Somebody who comes for an approved call while it waits for a place takes it up; when
// its place comes it is not asked about, nor run, again.
func TestTakenUpBeforeItsPlaceCame(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	for n := range 8 {
		id := fmt.Sprint("full", n)
		l.mustAgree(l.asked(step(id, "late", "")))
		l.begins(id)
	}
	l.letGo("ninth")
	row := l.asked(step("ninth", "late", "key9"))
	l.mustAgree(row)
	if r, err := l.agent.Call(t.Context(), step("ninth", "late", "key9"), 0); err != nil || r.CallID != row {
		t.Fatalf("%+v %v", r, err)
	}
	rows := l.invocations("running")
	for n := range 8 {
		l.letGo(fmt.Sprint("full", n))
	}
	for _, id := range rows {
		l.becomes(id, "completed")
	}
	last := l.asked(step("last", "late", "")) // a barrier: the daemon takes up what is approved in order
	l.letGo("last")
	l.mustAgree(last)
	l.becomes(last, "completed")
	if waits := l.invocations("pending"); len(waits) != 0 {
		t.Errorf("asked about again: %v", waits)
	}
	l.once(row, "ninth")
	l.verifies()
}

// invocations lists the ids of calls in a state.
func (l *life) invocations(state string) []string {
	l.t.Helper()
	all, err := l.operator.Invocations(state).All(l.t.Context())
	if err != nil {
		l.t.Fatal(err)
	}
	var ids []string
	for _, i := range all {
		ids = append(ids, i.ID)
	}
	return ids
}
