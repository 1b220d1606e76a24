package approval

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
)

// free lets calls run without asking anybody; reads says whether they change nothing.
func (o *office) free(reads bool) {
	o.decide = func(_ writ.Call, d *writ.Decision) { d.Effect, d.Class, d.Reads = writ.Allow, writ.ClassNone, reads }
}

// TestDetached: what nobody waits for is kept, and handed over once.
func TestDetached(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		o.must(o.answer(r, true))
		left, err := o.desk.Unclaimed(t.Context())
		if err != nil || len(left) != 1 || left[0].ID != r.ID {
			t.Fatal(left, err)
		}
		again := call("ls", 0)
		again.Detached, again.ID = true, r.ID // it is taken up by its id
		res, err := o.gate.Do(t.Context(), again)
		if err != nil || res.Content != "done" {
			t.Fatal(res, err)
		}
		o.close()
		o.open() // over a restart
		for n := range 2 {
			res, err := o.gate.Do(t.Context(), call("ls", 0))
			switch {
			case n == 0 && (err != nil || res.Content != "done"):
				t.Errorf("coming back: %+v %v", res, err)
			case n == 1:
				wants(t, err, writ.Pending) // a new call, which is asked about
			}
		}
		if o.ran() != 1 {
			t.Errorf("%d runs", o.ran())
		}
	})
}

// TestDetachedNeedsItsApproval: what is taken up by its id runs because it was approved
// and no other way, also where nobody would have to be asked any more.
func TestDetachedNeedsItsApproval(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		o.must(o.answer(r, true))
		again := call("ls", 0)
		again.Detached, again.ID = true, r.ID
		ask := o.decide
		o.free(true)
		_, err := o.gate.Do(t.Context(), again)
		wants(t, err, writ.Changed)
		if o.ran() != 0 {
			t.Error("it ran")
		}
		o.decide = ask
		r = o.ask(call("control", 0))
		o.must(o.answer(r, true))
		again = call("control", 0)
		again.Detached, again.ID = true, r.ID
		_, err = o.gate.Do(t.Context(), again)
		o.must(err)
	})
}

// TestOutcomeRace: of several who come for one outcome at once, one gets it.
func TestOutcomeRace(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		o.must(o.answer(r, true))
		again := call("ls", 0)
		again.Detached, again.ID = true, r.ID
		_, err := o.gate.Do(t.Context(), again)
		o.must(err)
		// The writer is held up until all have seen that there is one.
		hold, held := make(chan struct{}), make(chan error, 1)
		go func() {
			held <- o.ledger.Write(t.Context(), func(*store.Tx) (ledger.Entry, error) { <-hold; return ledger.Entry{Kind: "test"}, nil })
		}()
		synctest.Wait()
		var all []<-chan error
		for range 5 {
			all = append(all, o.do(t.Context(), call("ls", 0)))
		}
		synctest.Wait()
		close(hold)
		o.must(<-held)
		got := 0
		for _, done := range all {
			if err := <-done; err == nil {
				got++
			} else {
				wants(t, err, writ.Pending)
			}
		}
		if got != 1 {
			t.Errorf("%d got it", got)
		}
	})
}

// TestForget: an outcome is not kept for ever.
func TestForget(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.free(false)
		c := call("ls", 0)
		c.Key = "k"
		_, err := o.gate.Do(t.Context(), c)
		o.must(err)
		time.Sleep(keepFor)
		o.must(o.desk.Forget(t.Context()))
		if _, ok, _ := o.db.Result(t.Context(), c.ID); !ok {
			t.Fatal("control: it went too early")
		}
		time.Sleep(time.Second)
		o.must(o.desk.Forget(t.Context()))
		if _, ok, _ := o.db.Result(t.Context(), c.ID); ok {
			t.Error("it is kept for ever")
		}
		says(t, o.recall(c), writ.Conflict, "its outcome is not kept any more")
	})
}

// TestKey: E10. Calls with one key are one call.
func TestKey(t *testing.T) {
	for name, asks := range map[string]bool{"free": false, "asked": true} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, o *office) {
				if !asks {
					o.free(false)
				}
				var all []<-chan error
				for range 20 {
					c := call("ls", time.Minute)
					c.Key = "k"
					all = append(all, o.do(t.Context(), c))
				}
				synctest.Wait()
				if asks {
					o.must(o.answer(o.only(), true))
				}
				for _, done := range all {
					o.must(<-done)
				}
				if o.ran() != 1 {
					t.Errorf("%d runs", o.ran())
				}
				c := call("ls", 0)
				c.Key = "k"
				var before *writ.Already
				if err := o.recall(c); !errors.As(err, &before) || before.Result.Content != "done" {
					t.Errorf("made again: %v", err)
				}
				c = call("rm", 0)
				c.Key = "k"
				says(t, o.recall(c), writ.Conflict, "the idempotency key was used for another call")
				_, err := o.gate.Do(t.Context(), c)
				says(t, err, writ.Conflict, "the idempotency key was used for another call")
				c.Agent = "other"
				if err := o.recall(c); err != nil {
					t.Errorf("another agent's key: %v", err)
				}
			})
		})
	}
}

// TestRecover: E3, I10. What may have had an effect is unknown and not run again; what
// changes nothing is.
func TestRecover(t *testing.T) {
	for name, tt := range map[string]struct {
		reads, asked bool
		class        writ.Class
		status       string
		runs         int
	}{
		"a change, free":         {false, false, writ.ClassNone, "unknown", 1},
		"a change, asked":        {false, true, writ.ClassWrite, "unknown", 1},
		"a read, free":           {true, false, writ.ClassReadOnly, "failed", 2},
		"a read, asked":          {true, true, writ.ClassReadOnly, "completed", 2},
		"class write is no read": {false, true, writ.ClassWrite, "unknown", 1},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, o *office) {
				o.decide = func(_ writ.Call, d *writ.Decision) {
					d.Class, d.Reads = tt.class, tt.reads
					if !tt.asked {
						d.Effect = writ.Allow
					}
				}
				c := call("ls", 0)
				c.Key = "k"
				if tt.asked {
					o.must(o.answer(o.ask(c), true))
				}
				began, dead := make(chan struct{}), make(chan struct{})
				o.run = func(context.Context, writ.Writ) (writ.Result, error) {
					close(began)
					<-dead
					return writ.Result{}, errors.New("this process is gone")
				}
				zombie, old := o.do(t.Context(), c), o.desk
				<-began
				o.run = nil
				o.reopenDesk() // another worker, while the first one still believes it runs
				i := o.invocation(c.ID)
				if tt.status == "completed" {
					if i.Status != "running" || i.Worker != "" || i.Fence != 1 {
						t.Fatalf("%+v", i)
					}
				} else if i.Status != tt.status || (i.Outcome == "interrupted") != tt.reads || i.Sealed != nil {
					t.Fatalf("%+v", i)
				}
				again := call("ls", time.Minute)
				again.Key = "k"
				err := o.recall(again)
				if err == nil {
					_, err = o.gate.Do(t.Context(), again)
				} else {
					var before *writ.Already
					if errors.As(err, &before) {
						err = before.Err
					}
				}
				if tt.status == "unknown" {
					says(t, err, writ.Unknown, "what came of it is not known; it is not run again by itself")
				} else {
					o.must(err)
				}
				if o.ran() != tt.runs {
					t.Errorf("%d runs, want %d", o.ran(), tt.runs)
				}
				// E5: the first worker comes back to life, and its word does not count.
				close(dead)
				if err := <-zombie; !errors.Is(err, errLate) || writ.KindOf(err) != writ.Unknown {
					t.Errorf("the zombie: %v", err)
				}
				_ = old
				if after := o.invocation(c.ID); after.Status != tt.status || after.Outcome == "internal" {
					t.Errorf("the zombie changed it: %+v", after)
				}
			})
		})
	}
}

// reopenDesk is another worker on the same store.
func (o *office) reopenDesk() {
	o.t.Helper()
	d, err := NewDesk(Options{Store: o.db, Ledger: o.ledger, Key: o.key(), Terms: func() Terms { return o.terms }, Edit: o.edit})
	o.must(err)
	o.must(d.Recover(context.Background()))
	o.desk = d
	o.gate = writ.NewGate(o, d, d, o)
}

// TestUnsaid: E14. An end that could not be written down is said later.
func TestUnsaid(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.free(false)
		c := call("ls", 0)
		c.Key = "k"
		ev := writ.Event{Kind: writ.EventStarted, Call: c, Decision: writ.Decision{Effect: writ.Allow, Class: writ.ClassNone}}
		o.must(o.desk.Record(t.Context(), ev))
		ev.Kind, ev.Result = writ.EventFinished, writ.Result{Content: "done"}
		gone, cancel := context.WithCancel(t.Context())
		cancel() // stands for a store that does not take it now
		if err := o.desk.Record(gone, ev); writ.KindOf(err) != writ.StoreUnavailable {
			t.Fatal(err)
		}
		if i := o.invocation(c.ID); i.Status != "running" {
			t.Fatalf("%+v", i)
		}
		o.must(o.desk.SayUnsaid(t.Context()))
		if i := o.invocation(c.ID); i.Status != "completed" || *i.Bytes != 4 {
			t.Errorf("%+v", i)
		}
	})
}

// TestMeasured: E15. What was measured stands beside what the caller claimed.
func TestMeasured(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.free(false)
		o.run = func(context.Context, writ.Writ) (writ.Result, error) {
			time.Sleep(3 * time.Second)
			return writ.Result{Content: "12345", Metadata: map[string]any{"cpu_micros": int64(1500), "cost_estimate": 0.0}}, nil
		}
		c, cost := call("ls", 0), 0.001
		c.Cost = &cost
		_, err := o.gate.Do(t.Context(), c)
		o.must(err)
		if i := o.invocation(c.ID); *i.Cost != 0.001 || *i.Micros != 3_000_000 || *i.CPU != 1500 || *i.Bytes != 5 {
			t.Errorf("%+v", i)
		}
	})
}

// TestRenew: a lease goes on while something runs.
func TestRenew(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.free(false)
		ends := make(chan struct{})
		o.run = func(context.Context, writ.Writ) (writ.Result, error) { <-ends; return writ.Result{}, nil }
		c := call("ls", 0)
		done := o.do(t.Context(), c)
		synctest.Wait()
		first := o.invocation(c.ID).Lease
		time.Sleep(RenewEvery)
		o.must(o.desk.Renew(t.Context()))
		if got := o.invocation(c.ID).Lease; got <= first {
			t.Errorf("%s, then %s", first, got)
		}
		close(ends)
		o.must(<-done)
	})
}

// TestResolve: what was unknown stays so, with a person's word beside it.
func TestResolve(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.free(false)
		began := make(chan struct{})
		o.run = func(ctx context.Context, _ writ.Writ) (writ.Result, error) {
			close(began)
			<-ctx.Done()
			return writ.Result{}, ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		c := call("ls", 0)
		done := o.do(ctx, c)
		<-began
		o.reopenDesk()
		cancel()
		<-done
		before := o.invocation(c.ID)
		word := store.Resolution{Invocation: c.ID, Happened: "yes", Note: "it is there", By: "alice"}
		long := word
		long.Note = strings.Repeat("x", maxWords+1)
		says(t, o.desk.Resolve(t.Context(), long, "passphrase"), writ.Invalid, "note: it has 2001 bytes and may have 2000")
		o.must(o.desk.Resolve(t.Context(), word, "passphrase"))
		says(t, o.desk.Resolve(t.Context(), word, "passphrase"), writ.Conflict, "only an unknown outcome is resolved, once")
		if after := o.invocation(c.ID); after.Status != "unknown" || after.Completed != before.Completed {
			t.Errorf("%+v", after)
		}
		got, ok, err := o.db.Resolution(t.Context(), c.ID)
		if err != nil || !ok || got.Happened != "yes" || got.By != "alice" {
			t.Error(got, ok, err)
		}
	})
}

// TestResolvedKeepsNoArguments: what an unknown call was about is there for whoever finds
// out what it did, until somebody has.
func TestResolvedKeepsNoArguments(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		began := make(chan struct{})
		o.run = func(ctx context.Context, _ writ.Writ) (writ.Result, error) {
			close(began)
			<-ctx.Done()
			return writ.Result{}, ctx.Err()
		}
		o.must(o.answer(r, true))
		ctx, cancel := context.WithCancel(t.Context())
		done := o.do(ctx, call("ls", time.Hour))
		<-began
		o.reopenDesk()
		cancel()
		<-done
		for _, want := range []string{`{"command":"ls"}`, ""} {
			got, err := o.desk.Outcome(t.Context(), r.ID, false)
			if err != nil || got == nil || got.Args != want {
				t.Errorf("%+v, %v; want %s", got, err, want)
			}
			if want != "" {
				o.must(o.desk.Resolve(t.Context(), store.Resolution{Invocation: r.ID, Happened: "yes", Note: "it is there", By: "alice"}, "passphrase"))
			}
		}
	})
}

// TestEvents: each entry that says something of an invocation, in the words there are.
func TestEvents(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.must(o.answer(o.ask(call("a", 0)), true))
		_, err := o.gate.Do(t.Context(), call("a", 0))
		o.must(err)
		o.must(o.answer(o.ask(call("b", 0)), false))
		r := o.ask(call("c", 0))
		o.must(o.desk.Cancel(t.Context(), r.ID, "cancelled"))
		o.decide = func(_ writ.Call, d *writ.Decision) { d.Effect = writ.Deny }
		_, err = o.gate.Do(t.Context(), call("d", 0))
		wants(t, err, writ.Denied)
		o.free(true)
		_, err = o.gate.Do(t.Context(), call("e", 0))
		o.must(err)
		entries, err := o.db.After(t.Context(), 0, 1000)
		o.must(err)
		var got []string
		for _, e := range entries {
			for _, ev := range Events(e) {
				got = append(got, ev.Name[len(eventPrefix):])
			}
		}
		want := "[requested approval_required approved started completed requested approval_required rejected requested approval_required cancelled requested denied requested started completed]"
		if fmt.Sprint(got) != want {
			t.Errorf("got  %v\nwant %s", got, want)
		}
	})
}

func (o *office) recall(c writ.Call) error {
	_, err := o.desk.Recall(o.t.Context(), c)
	return err
}

// TestChangedByItsOwnRun: a caller who comes for an approved call at the moment at which
// another one takes it up is not told that its files changed: they did by that run, and it
// gets what came of it.
func TestChangedByItsOwnRun(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.inputs = []Input{{Path: "/work/x", Note: "not there"}}
		r := o.ask(call("clone", 0))
		o.must(o.answer(r, true))
		late := o.invocation(r.ID) // as somebody saw it who goes on only later
		if _, err := o.gate.Do(t.Context(), call("clone", 0)); err != nil || o.ran() != 1 {
			t.Fatalf("%v, %d runs", err, o.ran())
		}
		o.inputs = []Input{{Path: "/work/x", Note: "a directory; what is in it is not bound"}}
		if got, done, err := o.desk.answered(t.Context(), late, call("clone", 0)); done || err != nil {
			t.Errorf("%+v, done %t: %v", got, done, err)
		}
		if o.state(r.ID) != "used" {
			t.Error(o.state(r.ID))
		}
	})
}
