package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/need"
)

// soakTool appends one line, at once and with fsync, to a file that is named for this
// process, so that what is left of it is found.
const soakTool = `name: append
description: Appends a line.
category: analytics
action_type: code:write
egress_class: write
policy: {risk: low, filesystem: {read: ["/**"], write: ["/**"]}}
parameters: {type: object, required: [line], properties: {line: {type: string, x-writ-text: true}}}
runner: {process: {argv: [dd, "of=effects-%d", oflag=append, "conv=notrunc,fsync", status=none], stdin: {arg: line}}}
`

// writes is a soak of class write: what is done, and what was seen of it.
type writes struct {
	*life
	agents []*soakAgent
	calls  int // of each agent: groups of groupSize, then singles
	groups int
	single int

	done  atomic.Int64 // calls whose caller has an outcome
	told  tally        // every answer, also those that say to come again
	mu    sync.Mutex
	final map[string]string // by key: what the caller was told in the end
	kills []killed
	full  int
}

type soakAgent struct{ name, token string }

// killed is a moment within which a daemon was killed.
type killed struct{ from, to time.Time }

const groupSize = 100

// 2,000 calls of class write by four agents at once, each with its own key, while the
// daemon is killed at random moments and the disk of its state is full now and then.
// Each is agreed to by a person at the operator's socket: 50 of each agent one by one;
// of the others the first of each hundred is approved with a grant that covers the other
// ninety-nine, because 2,000 passphrases take longer than the test may. Callers come back
// with their key until they have an outcome. (make soak; 32 calls and three kills otherwise.)
func TestSoakWrites(t *testing.T) {
	need.Root(t)
	need.Programs(t, "dd", "sqlite3")
	kills, groups, single := 3, 0, 8
	if os.Getenv("WRIT_SOAK") != "" {
		kills, groups, single = 30, 18, 50
	}
	s := newWrites(t, groups, single)
	ctx, end := context.WithTimeout(t.Context(), 5*time.Minute)
	defer end()
	var callers, person sync.WaitGroup
	for n, a := range s.agents {
		callers.Go(func() { s.calling(ctx, n, a) })
	}
	approving, enough := context.WithCancel(ctx)
	person.Go(func() { s.approving(approving) })
	s.disturb(ctx, kills)
	callers.Wait()
	enough()
	person.Wait()
	if ctx.Err() != nil {
		t.Fatalf("after five minutes %d of %d calls have an outcome; told %s", s.done.Load(), s.calls, s.told.String())
	}
	s.verifies()
	endings := s.endingsOfAll()
	s.halt()
	s.check(endings, kills)
	if left := processesNaming(program, fmt.Sprintf("effects-%d", os.Getpid())); left != "" {
		t.Errorf("left behind: %s", left)
	}
}

func newWrites(t *testing.T, groups, single int) *writes {
	w := newWorld(t, "level: elevated\nautonomy: full\n", "approvals: {max_pending: 1000, rate: 100000/1h}\n")
	names := []string{"coder", "second", "third", "fourth"}
	for _, name := range names[1:] {
		w.edit("agents:\n", "agents:\n  "+name+": {workspace: main, person: alice, level: elevated, autonomy: full}\n")
	}
	if err := os.MkdirAll(w.state(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", w.state(), "tmpfs", 0, "size=128m,mode=700"); err != nil {
		t.Fatal(err)
	}
	s := &writes{life: &life{world: w}, groups: groups, single: single, calls: groups*groupSize + single*len(names), final: map[string]string{}}
	t.Cleanup(func() {
		w.run("", "serve", "--stop")
		w.daemonGone()
		if err := syscall.Unmount(w.state(), syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	w.place("tools/append.yaml", fmt.Sprintf(soakTool, os.Getpid()))
	w.init()
	w.accept("append")
	for _, name := range names {
		var made struct{ Token string }
		w.decode(&made, pass+"\n", "agent", "token", name, "--passphrase-stdin")
		s.agents = append(s.agents, &soakAgent{name, made.Token})
	}
	w.halt()
	s.restart()
	return s
}

// calling makes the calls of one agent: its groups, whose first call is asked about and
// the others covered by its grant, and at the same time its single ones.
func (s *writes) calling(ctx context.Context, n int, a *soakAgent) {
	var all sync.WaitGroup
	all.Go(func() {
		for g := n; g < s.groups; g += len(s.agents) {
			s.call(ctx, a, fmt.Sprintf("g%d-0", g))
			s.parallel(groupSize-1, func(i int) { s.call(ctx, a, fmt.Sprintf("g%d-%d", g, i+1)) })
		}
	})
	all.Go(func() { s.parallel(s.single, func(i int) { s.call(ctx, a, fmt.Sprintf("%s-%d", a.name, i)) }) })
	all.Wait()
}

// parallel does n things, a few at once.
func (s *writes) parallel(n int, do func(int)) {
	var next atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				do(i)
			}
		})
	}
	all.Wait()
}

// call makes one call until it has an outcome: a result, or the same final refusal
// twice. A first unknown may be of a daemon that still knows and cannot write it down.
func (s *writes) call(ctx context.Context, a *soakAgent, key string) {
	req := client.CallRequest{Tool: "append", Args: encode(map[string]any{"line": key + "\n"}), Key: key}
	last := ""
	for ctx.Err() == nil {
		c := client.Dial(s.state())
		c.Token = a.token
		reply, err := c.Call(ctx, req, time.Duration(random(3))*time.Second)
		kind := string(problem(err).Kind)
		switch {
		case err == nil && reply.IsError:
			kind = "failed"
		case err == nil:
			kind = "completed"
		case kind == "":
			kind = "cut off"
		}
		s.told.add(kind)
		again := kind == "cut off" || kind == string(writ.Pending) || kind == string(writ.StoreUnavailable)
		if err == nil || !again && kind == last {
			s.mu.Lock()
			s.final[key] = kind
			s.mu.Unlock()
			s.done.Add(1)
			return
		}
		last = kind
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(5+random(40)) * time.Millisecond):
		}
	}
}

// approving answers whatever waits, with a grant where it is the first of a group.
func (s *writes) approving(ctx context.Context) {
	for ctx.Err() == nil {
		c := client.Dial(s.state())
		waiting, _ := c.Approvals("pending").Page(ctx, 50, "")
		for _, r := range waiting.Data {
			shown, err := c.Approval(ctx, r.ID)
			if err != nil || shown.Shown == nil {
				break // the daemon is gone, or somebody ended it
			}
			var args struct{ Line string }
			if err := json.Unmarshal(shown.Shown.Args, &args); err != nil {
				s.t.Error(err)
				return
			}
			req := client.DecisionRequest{Digest: shown.Digest, Approve: true, By: client.Credentials{Name: "alice", Passphrase: pass}}
			if group, first := strings.CutSuffix(args.Line, "-0\n"); first && strings.HasPrefix(group, "g") {
				req.Grant = &client.GrantTerms{Uses: groupSize - 1, Seconds: 3600, Match: map[string]string{"line": group + "-*\n"}}
			}
			_, err = c.Decide(ctx, r.ID, req)
			s.told.add("answer " + string(problem(err).Kind))
		}
		select {
		case <-ctx.Done():
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// disturb kills the daemon so many times, spread over the work and each at a random
// moment; before every fifth kill the disk is full for a while, and every other time it
// still is when the daemon dies.
func (s *writes) disturb(ctx context.Context, kills int) {
	s.t.Helper()
	for n := range kills {
		for s.done.Load() < int64(n*s.calls/(kills+1)) && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Duration(random(700)) * time.Millisecond)
		filler := s.state("filler")
		full := n%5 == 2
		if full {
			fill(s.t.(*testing.T), filler)
			s.full++
			time.Sleep(time.Duration(500+random(1500)) * time.Millisecond)
		}
		if full && n%10 == 2 {
			os.Remove(filler)
			time.Sleep(time.Duration(random(700)) * time.Millisecond)
		}
		k := killed{from: time.Now()}
		s.kill()
		k.to = time.Now()
		s.kills = append(s.kills, k)
		os.Remove(filler)
		s.restart()
	}
}

// endingsOfAll counts, by call, how often the ledger says that it started and ended.
func (s *writes) endingsOfAll() map[string][2]int {
	s.t.Helper()
	var out bytes.Buffer
	if err := s.operator.LedgerExport(s.t.Context(), &out); err != nil {
		s.t.Fatal(err)
	}
	counts := map[string][2]int{}
	for line := range bytes.Lines(out.Bytes()) {
		var e struct{ Body struct{ Kind, Call string } }
		if err := json.Unmarshal(line, &e); err != nil {
			s.t.Fatal(err)
		}
		n := counts[e.Body.Call]
		switch e.Body.Kind {
		case "call.started":
			n[0]++
		case "call.finished", "call.unknown", "call.interrupted", "call.cancelled", "call.late":
			n[1]++
		}
		counts[e.Body.Call] = n
	}
	return counts
}

// soakRow is a row as the database has it.
type soakRow struct {
	ID       string `json:"id"`
	Key      string `json:"idempotency_key"`
	Status   string `json:"status"`
	Approval string `json:"approval_status"`
	Grant    string `json:"grant_id"`
	Claimed  string `json:"claimed_at"`
	Ended    string `json:"completed_at"`
	Fence    int    `json:"fence"`
	Kept     int    `json:"kept"`
}

// rows reads the calls from the database itself, while no daemon has it.
func (s *writes) rows() []soakRow {
	s.t.Helper()
	o := s.sqlite(s.state("writ.db"), `.mode json
SELECT id, idempotency_key, status, approval_status, grant_id, claimed_at, completed_at, fence,
(SELECT count(*) FROM invocation_results r WHERE r.invocation = i.id) AS kept FROM tool_invocations i WHERE tool_key = 'append';
`)
	var out []soakRow
	if err := json.Unmarshal([]byte(o.out), &out); err != nil || o.code != 0 {
		s.t.Fatalf("%v %+v", err, o)
	}
	return out
}

// check holds rows, effects, the ledger and what callers were told against each other.
func (s *writes) check(endings map[string][2]int, kills int) {
	s.t.Helper()
	effects := map[string]int{}
	b, err := os.ReadFile(filepath.Join(s.ws, fmt.Sprintf("effects-%d", os.Getpid())))
	if err != nil {
		s.t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		effects[strings.TrimSuffix(line, "\n")]++
	}
	count, byKey, granted := map[string]int{}, map[string]int{}, map[string]int{}
	for _, r := range s.rows() {
		count[r.Status]++
		if r.Status == "denied" { // an attempt that was refused; the call came again
			continue
		}
		byKey[r.Key]++
		if r.Grant != "" {
			granted[r.Grant]++
		}
		s.checkRow(r, effects[r.Key], endings[r.ID])
	}
	for key, n := range effects {
		if n > 1 || byKey[key] == 0 {
			s.t.Errorf("%s had its effect %d times, and has %d rows", key, n, byKey[key])
		}
	}
	for key, told := range s.final {
		if byKey[key] != 1 {
			s.t.Errorf("%s has %d rows; its caller was told %s", key, byKey[key], told)
		}
	}
	byGrant := 0
	for g, n := range granted {
		if byGrant += n; n >= groupSize {
			s.t.Errorf("grant %s was used %d times", g, n)
		}
	}
	if len(s.final) != s.calls || len(byKey) != s.calls || len(s.kills) != kills || count["completed"] == 0 {
		s.t.Errorf("%d calls, %d told, %d keys, %d kills", s.calls, len(s.final), len(byKey), len(s.kills))
	}
	s.t.Logf("%d calls (%d by %d grants, the others approved one by one), %d kills, %d times a full disk, rows %v, %d effects", s.calls, byGrant, len(granted), len(s.kills), s.full, count, len(effects))
	s.t.Logf("callers were told %s", s.told.String())
}

func (s *writes) checkRow(r soakRow, effects int, ledger [2]int) {
	s.t.Helper()
	bad := func(what string) {
		s.t.Errorf("%s: %+v, %d effects, ledger %v, told %s", what, r, effects, ledger, s.final[r.Key])
	}
	if r.Ended == "" || r.Approval != "approved" {
		bad("not ended, or not approved")
	}
	if r.Fence != 1 || ledger != [2]int{1, 1} || r.Kept != 1 {
		bad("not taken up, recorded and kept once")
	}
	switch r.Status {
	case "completed":
		if effects != 1 || s.final[r.Key] != "completed" {
			bad("completed")
		}
	case "unknown":
		if effects > 1 || s.final[r.Key] != "unknown" || !s.killedWithin(r.Claimed, r.Ended) {
			bad("unknown")
		}
	default:
		if effects != 0 || s.final[r.Key] == "completed" {
			bad("neither completed nor unknown")
		}
	}
}

// killedWithin reports whether a daemon was killed between two times.
func (s *writes) killedWithin(from, to string) bool {
	a, err := time.Parse(time.RFC3339Nano, from)
	b, err2 := time.Parse(time.RFC3339Nano, to)
	if err != nil || err2 != nil {
		return false
	}
	for _, k := range s.kills {
		if !k.to.Before(a) && !k.from.After(b) {
			return true
		}
	}
	return false
}

// processesNaming lists the processes whose arguments contain one of these.
func processesNaming(parts ...string) string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, p := range parts {
			if bytes.Contains(b, []byte(p)) {
				out = append(out, strings.ReplaceAll(string(b), "\x00", " "))
			}
		}
	}
	return strings.Join(out, "\n")
}
