package approval

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/decide"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/wire"
)

// office is a desk on a real store, and a gate in front of it. Its clock is the
// bubble's.
type office struct {
	t      *testing.T
	dir    string
	db     *store.DB
	ledger *ledger.Ledger
	desk   *Desk
	gate   *writ.Gate

	mu     sync.Mutex
	terms  Terms
	back   time.Duration // how far somebody set the clock back
	inputs []Input
	policy byte // stands for the configuration
	runs   int
	run    func(context.Context, writ.Writ) (writ.Result, error) // nil: it is done at once
	decide func(writ.Call, *writ.Decision)                       // changes what is decided
}

const expiry = time.Hour

// within opens an office in a bubble of its own time and runs f there.
func within(t *testing.T, f func(*testing.T, *office)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		o := &office{t: t, dir: dir}
		o.terms = Terms{Expiry: expiry, Timeout: Deny, FourEyes: Dangerous, Quorum: 1, MaxPending: 20}
		o.open()
		o.furnish()
		defer o.close()
		f(t, o)
	})
}

func (o *office) open() {
	o.t.Helper()
	var err error
	if o.db, err = sqlite.Open(context.Background(), o.dir); err != nil {
		o.t.Fatal(err)
	}
	if o.ledger, err = ledger.Open(context.Background(), o.db, ledger.Options{Key: ed25519.NewKeyFromSeed(make([]byte, 32)), Witness: filepath.Join(o.dir, "witness.jsonl"), Now: func() time.Time { return time.Now().Add(-o.back) }}); err != nil {
		o.t.Fatal(err)
	}
	o.desk, err = NewDesk(Options{Store: o.db, Ledger: o.ledger, Key: o.key(), Terms: func() Terms { return o.terms }, Inputs: func(writ.Call) []Input { return o.inputs }, Edit: o.edit})
	if err != nil {
		o.t.Fatal(err)
	}
	if err := o.desk.Recover(context.Background()); err != nil {
		o.t.Fatal(err)
	}
	o.gate = writ.NewGate(o, o.desk, o.desk, o)
}

func (o *office) key() []byte { return bytes.Repeat([]byte{5}, 32) }

// furnish puts in what every test needs: people, and the tools as registered.
func (o *office) furnish() {
	o.t.Helper()
	err := o.ledger.Write(context.Background(), func(tx *store.Tx) (ledger.Entry, error) {
		var errs []error
		for _, p := range [][2]string{{"alice", "admin"}, {"bob", "approver"}, {"carol", "approver"}, {"victor", "viewer"}, {"olga", "operator"}} {
			_, err := tx.AddPerson(store.Person{Name: p[0], Role: p[1], Passphrase: "$argon2id$", Created: o.ledger.Now()})
			errs = append(errs, err)
		}
		for name, d := range map[string]writ.Digest{"shell_command": {1}, "read_file": {3}} {
			errs = append(errs, tx.Register(store.Registered{Key: name, Definition: d.String(), Class: "none", Unwaived: "none", Updated: o.ledger.Now()}))
		}
		return ledger.Entry{Kind: "test"}, errors.Join(errs...)
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

// edit is the edge for arguments that a person gave.
func (o *office) edit(ctx context.Context, c writ.Call, args string) (writ.Call, writ.Decision, error) {
	canonical, err := wire.CanonicalObject([]byte(args))
	if err != nil {
		return c, writ.Decision{}, err
	}
	c.Args, c.ArgsDigest, c.Definition, c.Resolved = canonical, wire.Digest(canonical), writ.Digest{1}, true
	d, err := o.Decide(ctx, c)
	return c, d, err
}

func (o *office) close() {
	o.t.Helper()
	if err := errors.Join(o.ledger.Close(), o.db.Close()); err != nil {
		o.t.Error(err)
	}
}

// Decide asks about everything, under the policy of the moment.
func (o *office) Decide(_ context.Context, c writ.Call) (writ.Decision, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d := writ.Decision{Effect: writ.Ask, Policy: writ.Digest{o.policy}, Confine: writ.Confinement{Read: []string{"/work"}}, Risk: "high", Base: writ.Digest{7}}
	if o.decide != nil {
		o.decide(c, &d)
	}
	var err error
	d.Subject, err = decide.Subject(c, d)
	return d, err
}

func (o *office) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	o.mu.Lock()
	o.runs++
	run := o.run
	o.mu.Unlock()
	if run != nil {
		return run(ctx, w)
	}
	return writ.Result{Content: "done"}, nil
}

func (o *office) ran() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.runs
}

var ids int

// call is a call with arguments of one text.
func call(text string, patience time.Duration) writ.Call {
	ids++
	args := fmt.Sprintf(`{"command":%q}`, text)
	return writ.Call{ID: fmt.Sprint("call_", ids), Agent: "coder", Session: "s", Task: "t", Tool: "shell_command", Definition: writ.Digest{1},
		Args: args, ArgsDigest: wire.Digest(args), Resolved: true, Patience: patience}
}

// do starts a call; the result comes when it ends.
func (o *office) do(ctx context.Context, c writ.Call) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := o.gate.Do(ctx, c)
		done <- err
	}()
	return done
}

// only is the one request that waits.
func (o *office) only() Request {
	o.t.Helper()
	all := o.list("pending")
	if len(all) != 1 {
		o.t.Fatalf("%d requests wait", len(all))
	}
	r, err := o.desk.Show(o.t.Context(), all[0].ID)
	if err != nil {
		o.t.Fatal(err)
	}
	return r
}

// list is the requests in a state, the newest first.
func (o *office) list(state string) []store.Invocation {
	o.t.Helper()
	all, err := o.db.InvocationsBefore(context.Background(), store.InvocationsOf{State: state, Now: o.ledger.Now()}, 0, 1000)
	if err != nil {
		o.t.Fatal(err)
	}
	return all
}

func (o *office) answer(r Request, approve bool) error { return o.answerAs("alice", r, approve) }

func (o *office) answerAs(who string, r Request, approve bool) error {
	return o.desk.Decide(o.t.Context(), Answer{ID: r.ID, Digest: r.Digest, Approve: approve, Reason: "because", Person: who, Factor: "passphrase"})
}

func (o *office) state(id string) string {
	o.t.Helper()
	i := o.invocation(id)
	return StateOf(i, o.ledger.Now())
}

func (o *office) invocation(id string) store.Invocation {
	o.t.Helper()
	i, ok, err := o.db.Invocation(context.Background(), id)
	if err != nil || !ok {
		o.t.Fatal(id, ok, err)
	}
	return i
}

func wants(t *testing.T, err error, kind writ.Kind) {
	t.Helper()
	if got := writ.KindOf(err); err == nil || got != kind {
		t.Errorf("got %v (%v), want %s", err, got, kind)
	}
}

func TestApprove(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		done := o.do(t.Context(), call("ls", time.Minute))
		synctest.Wait()
		r := o.only()
		if o.ran() != 0 || r.Shown == nil || string(r.Shown.Args) != `{"command":"ls"}` {
			t.Errorf("before the answer: %d runs, %+v", o.ran(), r.Shown)
		}
		if err := o.answer(r, true); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil || o.ran() != 1 {
			t.Errorf("%v, %d runs", err, o.ran())
		}
		if got := o.state(r.ID); got != "used" {
			t.Error(got)
		}
		// Replay: the same call again asks again.
		_, err := o.gate.Do(t.Context(), call("ls", 0))
		wants(t, err, writ.Pending)
		if again := o.only(); again.ID == r.ID || again.Digest == r.Digest || o.ran() != 1 {
			t.Errorf("an approval was used twice: %+v", again)
		}
		wants(t, o.answer(r, true), writ.Conflict)
	})
}

func TestReject(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		done := o.do(t.Context(), call("ls", time.Minute))
		synctest.Wait()
		r := o.only()
		if err := o.answer(r, false); err != nil {
			t.Fatal(err)
		}
		err := <-done
		wants(t, err, writ.Rejected)
		if _, msg := writ.Public(err); !strings.Contains(msg, `a person rejected this call and said: "because"`) || o.ran() != 0 {
			t.Error(msg, o.ran())
		}
		wants(t, o.answer(r, true), writ.Conflict)
	})
}

func TestExpire(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		done := o.do(t.Context(), call("ls", 24*time.Hour))
		synctest.Wait()
		r := o.only()
		time.Sleep(expiry - time.Nanosecond)
		synctest.Wait()
		if got := o.state(r.ID); got != "pending" {
			t.Fatalf("control: %s before its time", got)
		}
		time.Sleep(time.Nanosecond)
		wants(t, o.answer(r, true), writ.Expired) // at that very moment, whoever is first
		wants(t, <-done, writ.Expired)
		wants(t, o.answer(r, true), writ.Expired)
		if got := o.state(r.ID); got != "expired" || o.ran() != 0 {
			t.Error(got, o.ran())
		}
		entries, err := o.db.EntriesBefore(t.Context(), 0, 10)
		if err != nil {
			t.Fatal(err)
		}
		said := false
		for _, e := range entries {
			said = said || e.Kind == "approval.expired" && e.Agent == "coder"
		}
		if !said {
			t.Error("the ledger does not say whose request expired")
		}
	})
}

// TestExpiredAfterApproval: a yes that nobody came for is worth nothing later.
func TestExpiredAfterApproval(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		_, err := o.gate.Do(t.Context(), call("ls", 0))
		wants(t, err, writ.Pending)
		r := o.only()
		if err := o.answer(r, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(expiry)
		_, err = o.gate.Do(t.Context(), call("ls", 0))
		wants(t, err, writ.Pending)
		if again := o.only(); again.ID == r.ID || o.ran() != 0 || o.state(r.ID) != "expired" {
			t.Errorf("%+v, %d runs, %s", again, o.ran(), o.state(r.ID))
		}
	})
}

// TestPatience: zero does not wait, more waits that long, and neither ends the request.
func TestPatience(t *testing.T) {
	for _, patience := range []time.Duration{-time.Second, 0, time.Nanosecond, time.Minute, expiry - 1} {
		within(t, func(t *testing.T, o *office) {
			began := time.Now()
			_, err := o.gate.Do(t.Context(), call("ls", patience))
			wants(t, err, writ.Pending)
			if waited := time.Since(began); waited != max(0, patience) {
				t.Errorf("patience %s: waited %s", patience, waited)
			}
			r := o.only()
			var e *writ.Error
			if !errors.As(err, &e) || e.Ref != r.ID {
				t.Errorf("the caller does not learn the request's id: %+v", e)
			}
			if patience > time.Minute {
				return
			}
			if err := o.answer(r, true); err != nil {
				t.Fatal(err)
			}
			if _, err := o.gate.Do(t.Context(), call("ls", patience)); err != nil || o.ran() != 1 {
				t.Errorf("after the answer: %v, %d runs", err, o.ran())
			}
		})
	}
}

func TestCallerLeaves(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		ctx, cancel := context.WithCancel(t.Context())
		done := o.do(ctx, call("ls", time.Minute))
		synctest.Wait()
		cancel()
		wants(t, <-done, writ.Pending)
		r := o.only()
		if err := o.answer(r, true); err != nil {
			t.Fatal(err)
		}
		if o.ran() != 0 {
			t.Error("it ran without its caller")
		}
		if _, err := o.gate.Do(t.Context(), call("ls", 0)); err != nil || o.ran() != 1 {
			t.Errorf("coming back: %v, %d runs", err, o.ran())
		}
	})
}

func TestStopVoids(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		_, err := o.gate.Do(t.Context(), call("approved", 0))
		wants(t, err, writ.Pending)
		approved := o.only()
		if err := o.answer(approved, true); err != nil {
			t.Fatal(err)
		}
		done := o.do(t.Context(), call("pending", time.Minute))
		synctest.Wait()
		r := o.only()
		err = o.ledger.Write(t.Context(), func(tx *store.Tx) (ledger.Entry, error) {
			also, err := EndAsked(tx, "coder", "", "", "stopped", o.ledger.Now())
			return ledger.Entry{Kind: "stop.set", Also: also}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		o.desk.Changed()
		wants(t, <-done, writ.Changed)
		wants(t, o.answer(r, true), writ.Conflict)
		_, err = o.gate.Do(t.Context(), call("approved", 0))
		wants(t, err, writ.Pending) // asked anew: the yes from before the stop is gone
		if o.ran() != 0 || o.state(approved.ID) != "void" {
			t.Error(o.ran(), o.state(approved.ID))
		}
	})
}

// TestManyIdenticalCallers: I9, I10. One answer is one run, and all of them get what
// came of it.
func TestManyIdenticalCallers(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		for round := 1; round <= 3; round++ {
			var waiting []<-chan error
			for range 20 {
				waiting = append(waiting, o.do(t.Context(), call("ls", time.Minute)))
			}
			synctest.Wait()
			r := o.only() // they merged
			if err := o.answer(r, true); err != nil {
				t.Fatal(err)
			}
			good := 0
			for _, done := range waiting {
				if err := <-done; err == nil {
					good++
				} else {
					t.Error(err)
				}
			}
			if good != 20 || o.ran() != round {
				t.Errorf("round %d: %d callers were served, %d runs", round, good, o.ran())
			}
		}
		if r, err := o.ledger.Verify(t.Context(), filepath.Join(o.dir, "witness.jsonl"), ""); err != nil || !r.OK() {
			t.Error(r, err)
		}
	})
}

// TestManyLateCallers: the answer is there, and twenty come for it at once.
func TestManyLateCallers(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		_, err := o.gate.Do(t.Context(), call("ls", 0))
		wants(t, err, writ.Pending)
		if err := o.answer(o.only(), true); err != nil {
			t.Fatal(err)
		}
		var waiting []<-chan error
		for range 20 {
			waiting = append(waiting, o.do(t.Context(), call("ls", 0)))
		}
		good := 0
		for _, done := range waiting {
			switch err := <-done; writ.KindOf(err) {
			case writ.Conflict, writ.Pending: // lost, or asked anew after the winner
			default:
				if good++; err != nil {
					t.Error(err)
				}
			}
		}
		if good == 0 || o.ran() != 1 {
			t.Errorf("%d callers were served, %d runs", good, o.ran())
		}
	})
}

// TestChangedAfterApproval: K. What was agreed to is one exact call.
func TestChangedAfterApproval(t *testing.T) {
	for name, change := range map[string]func(*office, *writ.Call){
		"control":    func(*office, *writ.Call) {},
		"arguments":  func(_ *office, c *writ.Call) { *c = call("rm -rf /", 0) },
		"definition": func(_ *office, c *writ.Call) { c.Definition = writ.Digest{2} },
		"policy":     func(o *office, _ *writ.Call) { o.policy++ },
		"agent":      func(_ *office, c *writ.Call) { c.Agent = "other" },
		"person":     func(_ *office, c *writ.Call) { c.Person = "bob" },
		"session":    func(_ *office, c *writ.Call) { c.Session = "s2" },
		"task":       func(_ *office, c *writ.Call) { c.Task = "t2" },
		"directory":  func(_ *office, c *writ.Call) { c.Dir = "/etc" },
		"target":     func(_ *office, c *writ.Call) { c.Targets = []writ.Target{{Path: "/etc/shadow"}} },
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, o *office) {
				_, err := o.gate.Do(t.Context(), call("ls", 0))
				wants(t, err, writ.Pending)
				if err := o.answer(o.only(), true); err != nil {
					t.Fatal(err)
				}
				c := call("ls", 0)
				change(o, &c)
				_, err = o.gate.Do(t.Context(), c)
				if name == "control" {
					if err != nil || o.ran() != 1 {
						t.Errorf("%v, %d runs", err, o.ran())
					}
					return
				}
				if name == "definition" { // no tool of that definition is registered
					wants(t, err, writ.Denied)
				} else {
					wants(t, err, writ.Pending)
				}
				if o.ran() != 0 {
					t.Error("it ran")
				}
			})
		})
	}
}

// TestPolicyChangesWhileWaiting: the person agreed to the call under the rules of then.
func TestPolicyChangesWhileWaiting(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		done := o.do(t.Context(), call("ls", time.Minute))
		synctest.Wait()
		r := o.only()
		o.mu.Lock()
		o.policy++
		o.mu.Unlock()
		if err := o.answer(r, true); err != nil {
			t.Fatal(err)
		}
		wants(t, <-done, writ.Changed)
		if o.ran() != 0 {
			t.Error("it ran")
		}
	})
}

func TestPendingLimit(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		for i := range 20 {
			_, err := o.gate.Do(t.Context(), call(fmt.Sprint(i), 0))
			wants(t, err, writ.Pending)
		}
		_, err := o.gate.Do(t.Context(), call("one more", 0))
		wants(t, err, writ.Conflict)
		_, err = o.gate.Do(t.Context(), call("7", 0))
		wants(t, err, writ.Pending) // an identical one joins
		other := call("one more", 0)
		other.Agent = "other"
		_, err = o.gate.Do(t.Context(), other)
		wants(t, err, writ.Pending) // another agent is not held back
		time.Sleep(expiry)
		// Nobody answered, and nobody was waiting when they expired.
		_, err = o.gate.Do(t.Context(), call("one more", 0))
		wants(t, err, writ.Pending)
		if all := o.list("pending"); len(all) != 1 {
			t.Errorf("%d wait", len(all))
		}
		for _, id := range sealedIDs(t, o) {
			if o.state(id) != "pending" {
				t.Errorf("request %s has ended and still holds its arguments", id)
			}
		}
	})
}

func sealedIDs(t *testing.T, o *office) (ids []string) {
	t.Helper()
	for _, i := range o.list("") {
		if o.invocation(i.ID).Sealed != nil {
			ids = append(ids, i.ID)
		}
	}
	return ids
}

func TestDecideRefuses(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		_, err := o.gate.Do(t.Context(), call("ls", 0))
		wants(t, err, writ.Pending)
		r := o.only()
		other := r
		other.Digest = strings.Repeat("0", 64)
		wants(t, o.answer(other, true), writ.Changed)
		wants(t, o.desk.Decide(t.Context(), Answer{ID: r.ID, Approve: true, Person: "alice", Factor: "passphrase"}), writ.Changed)
		wants(t, o.desk.Decide(t.Context(), Answer{ID: r.ID, Digest: r.Digest, Approve: true}), writ.Unauthenticated)
		wants(t, o.desk.Decide(t.Context(), Answer{ID: "call_guess", Digest: r.Digest, Approve: true, Person: "alice", Factor: "passphrase"}), writ.NotFound)
		if got := o.state(r.ID); got != "pending" {
			t.Errorf("it is %s", got)
		}
		if err := o.answer(r, true); err != nil {
			t.Errorf("control: %v", err)
		}
	})
}

// TestDoubleClick: A1, A2. One answer counts, and every other learns that there was one.
func TestDoubleClick(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		for i := range 10 {
			_, err := o.gate.Do(t.Context(), call(fmt.Sprint(i), 0))
			wants(t, err, writ.Pending)
			r := o.only()
			// The writer is held up, so that all answers meet in one commit.
			hold, held := make(chan struct{}), make(chan error, 1)
			go func() {
				held <- o.ledger.Write(t.Context(), func(*store.Tx) (ledger.Entry, error) {
					<-hold
					return ledger.Entry{Kind: "test"}, nil
				})
			}()
			synctest.Wait()
			answers := make(chan error, 32)
			for j := range cap(answers) {
				go func() { answers <- o.answer(r, j%2 == 0) }()
			}
			synctest.Wait()
			close(hold)
			if err := <-held; err != nil {
				t.Fatal(err)
			}
			good := 0
			for range cap(answers) {
				if err := <-answers; err == nil {
					good++
				} else {
					wants(t, err, writ.Conflict)
				}
			}
			if good != 1 {
				t.Errorf("%d answers counted", good)
			}
		}
	})
}

// TestRestart: a request survives the daemon, pending and approved.
func TestRestart(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		_, err := o.gate.Do(t.Context(), call("ls", 0))
		wants(t, err, writ.Pending)
		before := o.only()
		o.close()
		o.open()
		if r := o.only(); r.ID != before.ID || string(r.Shown.Args) != `{"command":"ls"}` {
			t.Errorf("after a restart: %+v", r)
		}
		if err := o.answer(before, true); err != nil {
			t.Fatal(err)
		}
		o.close()
		o.open()
		if _, err := o.gate.Do(t.Context(), call("ls", 0)); err != nil || o.ran() != 1 {
			t.Errorf("%v, %d runs", err, o.ran())
		}
	})
}

// TestSealed: I7. What a person is shown lies encrypted, while it is open, and
// not even that afterwards.
func TestSealed(t *testing.T) {
	const canary = "canary-1a2b3c4d5e6f"
	within(t, func(t *testing.T, o *office) {
		holds := func(what []byte) (files []string) {
			err := filepath.WalkDir(o.dir, func(path string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				b, err := os.ReadFile(path)
				if bytes.Contains(b, what) {
					files = append(files, d.Name())
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return files
		}
		large := canary + strings.Repeat(" ", 20000) + canary
		_, err := o.gate.Do(t.Context(), call(large, 0))
		wants(t, err, writ.Pending)
		r := o.only()
		if !strings.Contains(string(r.Shown.Args), canary) {
			t.Error("control: the person does not see it")
		}
		a := o.invocation(r.ID)
		start, end := a.Sealed[20:52], a.Sealed[len(a.Sealed)-32:]
		if files := holds([]byte(canary)); len(files) > 0 {
			t.Errorf("%v hold it in the clear", files)
		}
		if len(holds(start)) == 0 || len(holds(end)) == 0 {
			t.Error("control: what is sealed is not to be found")
		}
		if err := o.answer(r, false); err != nil {
			t.Fatal(err)
		}
		if r, err := o.desk.Show(t.Context(), r.ID); err != nil || r.Shown != nil {
			t.Errorf("it can still be read: %+v, %v", r, err)
		}
		o.close() // what the log still had is folded in
		for _, part := range [][]byte{start, end} {
			if files := holds(part); len(files) > 0 {
				t.Errorf("%v still hold what was sealed", files)
			}
		}
		o.open()
	})
}

// TestAlteredRow: somebody who writes the file, guards or no guards, cannot make a
// request show one call and allow another.
func TestAlteredRow(t *testing.T) {
	for name, edit := range map[string]string{
		"the seal of another request": `UPDATE tool_invocations SET sealed = (SELECT sealed FROM tool_invocations WHERE id <> 'A') WHERE id = 'A'`,
		"the id":                      `UPDATE tool_invocations SET id = 'A2' WHERE id = 'A'`,
		"the subject":                 `UPDATE tool_invocations SET subject = 'S' WHERE id = 'A'`,
		"the digest":                  `UPDATE tool_invocations SET digest = 'D' WHERE id = 'A'`,
		"the expiry":                  `UPDATE tool_invocations SET expires_at = '2100-01-01T00:00:00.000000000Z' WHERE id = 'A'`,
		"the agent":                   `UPDATE tool_invocations SET agent = 'other' WHERE id = 'A'`,
		"the tool":                    `UPDATE tool_invocations SET tool_key = 'read_file' WHERE id = 'A'`,
		"the seal cut":                `UPDATE tool_invocations SET sealed = substr(sealed, 1, 40) WHERE id = 'A'`,
		"the seal emptied":            `UPDATE tool_invocations SET sealed = x'' WHERE id = 'A'`,
		"the seal removed":            `PRAGMA ignore_check_constraints = 1; UPDATE tool_invocations SET sealed = NULL WHERE id = 'A'`,
		"control":                     `UPDATE tool_invocations SET approval_reason = 'x' WHERE id = 'A'`,
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, o *office) {
				for _, text := range []string{"a", "b"} {
					_, err := o.gate.Do(t.Context(), call(text, 0))
					wants(t, err, writ.Pending)
				}
				id := o.list("pending")[0].ID
				file, err := sql.Open("sqlite", "file:"+filepath.Join(o.dir, sqlite.Name))
				if err != nil {
					t.Fatal(err)
				}
				defer file.Close()
				file.SetMaxOpenConns(1)
				if _, err := file.Exec(`DROP TRIGGER invocations_steps; DROP TRIGGER invocations_fixed; ` + strings.ReplaceAll(edit, "'A'", "'"+id+"'")); err != nil {
					t.Fatal(err)
				}
				if name == "the id" {
					if _, err := file.Exec(`UPDATE tool_invocations SET id = $1 WHERE id = 'A2'`, id+"2"); err != nil {
						t.Fatal(err)
					}
					id += "2"
				}
				r, err := o.desk.Show(t.Context(), id)
				decided := o.desk.Decide(t.Context(), Answer{ID: id, Digest: r.Digest, Approve: true, Person: "alice", Factor: "passphrase"})
				if name == "control" {
					if err != nil || decided != nil {
						t.Error(err, decided)
					}
					return
				}
				wants(t, err, writ.Internal)
				if decided == nil {
					t.Error("it was approved")
				}
			})
		})
	}
}

// TestForgedApproval: a row that says it was approved, of a request that the desk
// never made, allows nothing.
func TestForgedApproval(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		c := call("ls", 0)
		d, err := o.Decide(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		file, err := sql.Open("sqlite", "file:"+filepath.Join(o.dir, sqlite.Name))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		i := invocationOf(c, d)
		i.ID, i.Asked, i.Subject, i.Expires, i.Quorum = "call_forged", d.Subject.String(), d.Subject.String(), "2100-01-01T00:00:00.000000000Z", 1
		if i.Digest, err = digest(i, nil); err != nil {
			t.Fatal(err)
		}
		_, err = file.Exec(`DROP TRIGGER invocations_begin; INSERT INTO tool_invocations (id, tool_key, definition, agent, acts_for, token, session, task, door, action, risk,
			egress_class, dangerous, reads, args_sha256, args_bytes, idempotency_key, asked, subject, digest, quorum, not_by, edit_of, requested_at, expires_at,
			status, approval_status, approval_reason, escalations, decided_at, decided_by, grant_id, started_at, claimed_at, completed_at, worker, fence, lease_until, outcome, replaced_by, sealed)
			VALUES ($1, 'shell_command', $2, 'coder', '', '', 's', 't', '', '', 'high', 'write', 0, 0, $3, 1, '', $4, $4, $5, 1, '', '', '2000', $6,
			'running', 'approved', '', 0, '2000', 'alice', '', '2000', '', '', '', 0, '', '', '', zeroblob(100))`, i.ID, i.Definition, i.ArgsDigest, i.Asked, i.Digest, i.Expires)
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.gate.Do(t.Context(), c)
		wants(t, err, writ.Internal)
		if o.ran() != 0 || o.state(i.ID) != "void" {
			t.Error("it ran", o.ran(), o.state(i.ID))
		}
	})
}

func TestNoSubject(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		_, err := o.desk.Approve(t.Context(), call("ls", 0), writ.Decision{Effect: writ.Ask})
		wants(t, err, writ.Internal)
	})
	if _, err := NewDesk(Options{Key: make([]byte, 16)}); err == nil {
		t.Error("a desk without a key")
	}
}
