package approval

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
)

// to is a call whose argument leads somewhere.
func to(path string) writ.Call {
	c := call("write", 0)
	c.Targets = []writ.Target{{Pointer: "/command", Value: "write", Path: path}}
	return c
}

// TestGrantBindsPlaces: the same words, after a link was moved, are another call.
func TestGrantBindsPlaces(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.must(o.grants(o.ask(to("/out/job")), Allow{Uses: 9, For: time.Hour}))
		_, err := o.gate.Do(t.Context(), to("/out/job"))
		o.must(err)
		same := to("/out/job")
		same.Task = "another"
		_, err = o.gate.Do(t.Context(), same)
		o.must(err) // the control
		_, err = o.gate.Do(t.Context(), to("/etc/cron.d/job"))
		wants(t, err, writ.Pending)
		if o.ran() != 2 {
			t.Errorf("%d runs", o.ran())
		}
	})
}

// TestGrantCoversItsOwn: a pattern that the request itself does not match is a mistake.
func TestGrantCoversItsOwn(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls a", 0))
		says(t, o.grants(r, Allow{Uses: 1, For: time.Hour, Match: map[string]string{"command": "git log *"}}), writ.Invalid, "does not cover the request that it is granted from")
		o.must(o.grants(r, Allow{Uses: 1, For: time.Hour, Match: map[string]string{"command": "ls *"}}))
	})
}

// TestGrantEndsWithItsMaker: who may not approve any more allows nothing any more.
func TestGrantEndsWithItsMaker(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		o.must(o.desk.Decide(t.Context(), Answer{ID: r.ID, Digest: r.Digest, Approve: true, Grant: &Allow{Uses: 9, For: time.Hour}, Person: "bob", Factor: "passphrase"}))
		_, err := o.gate.Do(t.Context(), call("ls", 0))
		o.must(err)
		_, err = o.gate.Do(t.Context(), call("ls", 0))
		o.must(err) // the control
		o.roles(map[string]string{"bob": "viewer"})
		_, err = o.gate.Do(t.Context(), call("ls", 0))
		wants(t, err, writ.Pending)
	})
}

// TestGrantTakesOverWaiting: a request that only waits ends when a grant covers it, for
// whoever waits and whoever comes again; each runs under the grant.
func TestGrantTakesOverWaiting(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		early := call("ls b", 0)
		early.Key = "k"
		_, err := o.gate.Do(t.Context(), early)
		wants(t, err, writ.Pending)
		waits := o.do(t.Context(), call("ls b", time.Hour))
		synctest.Wait()
		b := o.only()
		_, err = o.gate.Do(t.Context(), call("ls a", 0))
		wants(t, err, writ.Pending)
		var a Request
		for _, i := range o.list("pending") {
			if i.ID != b.ID {
				a, err = o.desk.Show(t.Context(), i.ID)
				o.must(err)
			}
		}
		o.must(o.grants(a, Allow{Uses: 9, For: time.Hour, Match: map[string]string{"command": "ls *"}}))
		again := call("ls b", 0)
		again.Key = "k" // the same caller, who was never served
		_, err = o.gate.Do(t.Context(), again)
		o.must(err)
		o.must(<-waits)
		if o.state(b.ID) != "void" || o.invocation(again.ID).Grant == "" {
			t.Errorf("%s, %+v", o.state(b.ID), o.invocation(again.ID))
		}
		says(t, o.answer(b, true), writ.Conflict, "already void")
	})
}

// TestRejectionIsTold: whoever was not there hears it when the call is made again, once.
func TestRejectionIsTold(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.must(o.answer(o.ask(call("ls", 0)), false))
		_, err := o.gate.Do(t.Context(), call("ls", 0))
		says(t, err, writ.Rejected, `said: "because"`)
		_, err = o.gate.Do(t.Context(), call("ls", 0))
		wants(t, err, writ.Pending)
		o.must(o.answer(o.only(), false))
		done := o.do(t.Context(), call("rm", time.Minute))
		synctest.Wait()
		o.must(o.answer(o.only(), false))
		wants(t, <-done, writ.Rejected)
		_, err = o.gate.Do(t.Context(), call("rm", 0))
		wants(t, err, writ.Pending) // who waited has heard it
	})
}

// TestTwoKeysOneCall: E10. Callers whose calls were one stay so, each with its own key.
func TestTwoKeysOneCall(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		var all []<-chan error
		for _, key := range []string{"a", "b"} {
			c := call("ls", time.Minute)
			c.Key = key
			all = append(all, o.do(t.Context(), c))
			synctest.Wait()
		}
		o.must(o.grants(o.only(), Allow{Uses: 9, For: time.Hour})) // which would cover a call that is made again
		for _, done := range all {
			o.must(<-done)
		}
		for _, key := range []string{"a", "b"} {
			c := call("ls", 0)
			c.Key = key
			var before *writ.Already
			if err := o.recall(c); !errors.As(err, &before) {
				t.Errorf("%s: %v", key, err)
			}
			c = call("rm", 0)
			c.Key = key
			wants(t, o.recall(c), writ.Conflict)
		}
		if o.ran() != 1 {
			t.Errorf("%d runs", o.ran())
		}
	})
}

// TestKeyInAnotherSession: a key that waits under another session is not an error of ours.
func TestKeyInAnotherSession(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		for _, session := range []string{"one", "two"} {
			c := call("ls", 0)
			c.Key, c.Session = "k", session
			_, err := o.gate.Do(t.Context(), c)
			wants(t, err, writ.Pending)
		}
		if n := len(o.list("")); n != 1 {
			t.Errorf("%d rows", n)
		}
	})
}

// TestDetachedIsOnlyItself: an approved call that does not ask any more, or is denied,
// or asks about something else, ends; nothing runs, and nothing is made of it.
func TestDetachedIsOnlyItself(t *testing.T) {
	for name, now := range map[string]func(writ.Call, *writ.Decision){
		"allowed":   func(_ writ.Call, d *writ.Decision) { d.Effect, d.Class = writ.Allow, writ.ClassNone },
		"denied":    func(_ writ.Call, d *writ.Decision) { d.Effect = writ.Deny },
		"otherwise": func(_ writ.Call, d *writ.Decision) { d.Confine.Write = []string{"/etc"} },
		"control":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, o *office) {
				r := o.ask(call("ls", 0))
				o.must(o.answer(r, true))
				o.decide = now
				c := call("ls", 0)
				c.ID, c.Detached = r.ID, true
				_, err := o.gate.Do(t.Context(), c)
				i, all := o.invocation(r.ID), o.list("")
				if name == "control" {
					if err != nil || o.ran() != 1 || i.Status != "completed" {
						t.Errorf("%v, %d runs, %s", err, o.ran(), i.Status)
					}
					return
				}
				if err == nil || o.ran() != 0 || i.Status != "cancelled" || len(all) != 1 {
					t.Errorf("%v, %d runs, %s, %d rows", err, o.ran(), i.Status, len(all))
				}
				left, err := o.desk.Unclaimed(t.Context())
				if err != nil || len(left) != 0 {
					t.Errorf("it would be tried again: %v %v", left, err)
				}
			})
		})
	}
}

// TestCountedReadAgain: a read that is taken up a second time is counted once, and its
// commit hurts nobody's.
func TestCountedReadAgain(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.decide = func(_ writ.Call, d *writ.Decision) {
			d.Class, d.Reads = writ.ClassReadOnly, true
			d.Reserve = writ.Reserve{Keep: true, Quotas: []writ.Quota{{Max: 5, Per: writ.PerWindow, Window: time.Hour}}}
		}
		c := call("ls", 0)
		o.must(o.answer(o.ask(c), true))
		began, dead := make(chan struct{}), make(chan struct{})
		o.run = func(context.Context, writ.Writ) (writ.Result, error) {
			close(began)
			<-dead
			return writ.Result{}, errors.New("this process is gone")
		}
		zombie := o.do(t.Context(), c)
		<-began
		o.run = nil
		o.reopenDesk()
		again := call("ls", 0)
		again.ID, again.Detached = c.ID, true
		_, err := o.gate.Do(t.Context(), again)
		o.must(err)
		close(dead)
		<-zombie
		if i := o.invocation(c.ID); i.Status != "completed" || i.Fence != 2 {
			t.Errorf("%+v", i)
		}
	})
}

// TestOneMistakeIsOnes: a change that a guard of the database refuses is dropped alone.
func TestOneMistakeIsOnes(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		count := func(tx *store.Tx) error {
			return tx.AddUse(store.Use{Call: "once", Agent: "a", Tool: "t", Session: "s", Task: "k", At: o.ledger.Now()})
		}
		o.must(o.ledger.Write(t.Context(), func(tx *store.Tx) (ledger.Entry, error) { return ledger.Entry{Kind: "test"}, count(tx) }))
		// The writer is held up, so that all changes meet in one commit.
		hold, held := make(chan struct{}), make(chan error, 1)
		go func() {
			held <- o.ledger.Write(t.Context(), func(*store.Tx) (ledger.Entry, error) { <-hold; return ledger.Entry{Kind: "test"}, nil })
		}()
		synctest.Wait()
		answers := make(chan error, 9)
		for n := range cap(answers) {
			go func() {
				answers <- o.ledger.Write(t.Context(), func(tx *store.Tx) (ledger.Entry, error) {
					if n == 4 {
						return ledger.Entry{Kind: "bad"}, count(tx)
					}
					return ledger.Entry{Kind: "good"}, nil
				})
			}()
		}
		synctest.Wait()
		close(hold)
		o.must(<-held)
		bad := 0
		for range cap(answers) {
			if err := <-answers; err != nil {
				if bad++; !errors.Is(err, store.ErrRefused) {
					t.Error(err)
				}
			}
		}
		if bad != 1 {
			t.Errorf("%d changes were refused", bad)
		}
		if r, err := o.ledger.Verify(t.Context(), filepath.Join(o.dir, "witness.jsonl"), ""); err != nil || !r.OK() {
			t.Error(r, err)
		}
	})
}

// TestManyWaitersOnALargeRequest: H6. Whoever waits looks at a request whenever
// anything changes, and must not load what it shows each time.
func TestManyWaitersOnALargeRequest(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		const waiters, changes, size = 50, 10, 1 << 18
		c := call(strings.Repeat("x", size), time.Hour)
		var all []<-chan error
		for range waiters {
			all = append(all, o.do(t.Context(), c))
		}
		synctest.Wait()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range changes {
			o.desk.Changed()
			synctest.Wait()
		}
		runtime.ReadMemStats(&after)
		if spent := after.TotalAlloc - before.TotalAlloc; spent > waiters*changes*size/10 {
			t.Errorf("%d waiters took %d MiB to look %d times", waiters, spent>>20, changes)
		}
		o.must(o.answer(o.only(), true))
		for _, done := range all {
			o.must(<-done)
		}
		if o.ran() != 1 {
			t.Errorf("%d runs", o.ran())
		}
	})
}

// TestForgedAnswer: an answer that somebody wrote into the database, with all its guards
// content, runs nothing; one that was given here does.
func TestForgedAnswer(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		o.must(o.ledger.Write(t.Context(), func(tx *store.Tx) (ledger.Entry, error) {
			at := o.ledger.Now()
			v := store.Vote{Invocation: r.ID, Person: "alice", Decision: "approve", Digest: r.Digest, Factor: "passphrase", At: at, Proof: make([]byte, 32)}
			if ok, err := tx.AddVote(v); err != nil || !ok {
				t.Fatal(ok, err)
			}
			ok, err := tx.ApproveInvocation(r.ID, "alice", at)
			if !ok {
				t.Error("inconclusive: the database refused it already")
			}
			return ledger.Entry{Kind: "test"}, err
		}))
		_, err := o.gate.Do(t.Context(), call("ls", 0))
		says(t, err, writ.Internal, "is not as it was made, and allows nothing")
		r = o.ask(call("control", 0))
		o.must(o.answer(r, true))
		_, err = o.gate.Do(t.Context(), call("control", 0))
		o.must(err)
		if o.ran() != 1 {
			t.Errorf("%d ran", o.ran())
		}
	})
}

// TestWaitersAreBounded: H6. Callers that wait hold their arguments; beyond a bound one
// is told at once that its call is pending, and nothing else changes for it.
func TestWaitersAreBounded(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.desk.mayHold = 1 << 20
		big := strings.Repeat("x", o.desk.mayHold/4-100)
		var all []<-chan error
		for n := range 4 {
			all = append(all, o.do(t.Context(), call(fmt.Sprint(n, big[1000:]), time.Hour)))
		}
		synctest.Wait()
		_, err := o.gate.Do(t.Context(), call("one more"+big[1000:], time.Hour))
		wants(t, err, writ.Pending)
		other := call("another's"+big[1000:], time.Hour)
		other.Agent = "other"
		all = append(all, o.do(t.Context(), other))
		synctest.Wait()
		for _, done := range all {
			select {
			case err := <-done:
				t.Error(err)
			default:
			}
		}
		for _, r := range o.list("pending") {
			o.must(o.desk.Decide(t.Context(), Answer{ID: r.ID, Digest: r.Digest, Approve: true, Person: "alice", Factor: "passphrase"}))
		}
		for _, done := range all {
			o.must(<-done)
		}
		if len(o.desk.waiting) != 0 {
			t.Errorf("still counted: %v", o.desk.waiting)
		}
	})
}
