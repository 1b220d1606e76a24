package approval

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
)

// ask leaves one request pending and shows it.
func (o *office) ask(c writ.Call) Request {
	o.t.Helper()
	_, err := o.gate.Do(o.t.Context(), c)
	wants(o.t, err, writ.Pending)
	return o.only()
}

func says(t *testing.T, err error, kind writ.Kind, text string) {
	t.Helper()
	wants(t, err, kind)
	if _, msg := writ.Public(err); !strings.Contains(msg, text) {
		t.Errorf("%q does not say %q", msg, text)
	}
}

// TestQuorum: A7. Two different people, and the same one twice is one.
func TestQuorum(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.terms.Quorum = 2
		r := o.ask(call("ls", 0))
		if err := o.answerAs("alice", r, true); err != nil {
			t.Fatal(err)
		}
		if got := o.state(r.ID); got != "pending" {
			t.Fatalf("after one of two it is %s", got)
		}
		says(t, o.answerAs("alice", r, true), writ.Conflict, "alice has answered this request already; it takes 2 different people")
		_, err := o.gate.Do(t.Context(), call("ls", 0))
		wants(t, err, writ.Pending)
		if err := o.answerAs("bob", r, true); err != nil {
			t.Fatal(err)
		}
		if _, err := o.gate.Do(t.Context(), call("ls", 0)); err != nil || o.ran() != 1 {
			t.Errorf("%v, %d runs", err, o.ran())
		}
		// One no is enough, also after a yes.
		r = o.ask(call("rm", 0))
		if err := o.answerAs("alice", r, true); err != nil {
			t.Fatal(err)
		}
		if err := o.answerAs("bob", r, false); err != nil {
			t.Fatal(err)
		}
		says(t, o.answerAs("carol", r, true), writ.Conflict, "already rejected")
	})
}

// TestFourEyes: A7. Whoever the agent acts for does not approve what is dangerous.
func TestFourEyes(t *testing.T) {
	for name, tt := range map[string]struct {
		rule      FourEyes
		dangerous bool
		person    string
		alone     bool // only one person may approve
		kind      writ.Kind
	}{
		"dangerous, for the approver":   {Dangerous, true, "alice", false, writ.Denied},
		"dangerous, for somebody else":  {Dangerous, true, "bob", false, ""},
		"dangerous, for nobody":         {Dangerous, true, "", false, ""},
		"dangerous, one approver alone": {Dangerous, true, "alice", true, ""},
		"harmless":                      {Dangerous, false, "alice", false, ""},
		"always":                        {Always, false, "alice", false, writ.Denied},
		"always, one approver alone":    {Always, false, "alice", true, writ.Denied},
		"never":                         {UnsafeNever, true, "alice", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, o *office) {
				o.terms.FourEyes = tt.rule
				o.decide = func(_ writ.Call, d *writ.Decision) { d.Dangerous = tt.dangerous }
				if tt.alone {
					o.roles(map[string]string{"bob": "viewer", "carol": "viewer"})
				}
				c := call("ls", 0)
				c.Person = tt.person
				r := o.ask(c)
				err := o.answerAs("alice", r, true)
				if tt.kind != "" {
					says(t, err, tt.kind, "the agent acts for alice, and this call takes four eyes")
					if err := o.answerAs("alice", r, false); err != nil {
						t.Errorf("saying no is for everybody: %v", err)
					}
				} else if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// roles changes what people may do.
func (o *office) roles(to map[string]string) {
	o.t.Helper()
	err := o.ledger.Write(context.Background(), func(tx *store.Tx) (ledger.Entry, error) {
		for name, role := range to {
			if _, err := tx.SetRole(name, role); err != nil {
				return ledger.Entry{}, err
			}
		}
		return ledger.Entry{Kind: "test"}, nil
	})
	if err != nil {
		o.t.Fatal(err)
	}
}

// TestWhoMayAnswer: A6, A8. Nobody without the role, also where it was lost between
// looking and answering; never an agent, whose name is no person's.
func TestWhoMayAnswer(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		for _, who := range []string{"victor", "olga", "coder", "nobody", "alice ", "ALICE"} {
			says(t, o.answerAs(who, r, true), writ.Denied, "may not answer requests any more")
			says(t, o.answerAs(who, r, false), writ.Denied, "may not answer requests any more")
		}
		o.roles(map[string]string{"bob": "viewer"})
		says(t, o.answerAs("bob", r, true), writ.Denied, "may not answer requests any more")
		if got := o.state(r.ID); got != "pending" {
			t.Fatal(got)
		}
		if err := o.answerAs("carol", r, true); err != nil {
			t.Errorf("the control: %v", err)
		}
	})
}

// TestRate: A16. So many questions within a time, whoever answered them.
func TestRate(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.terms.Rate = writ.Quota{Max: 3, Per: writ.PerWindow, Window: time.Minute}
		for _, text := range []string{"a", "b", "c"} {
			if err := o.answer(o.ask(call(text, 0)), false); err != nil {
				t.Fatal(err)
			}
		}
		_, err := o.gate.Do(t.Context(), call("d", 0))
		says(t, err, writ.Conflict, "agent coder asked a person 3 times within 1m0s")
		child := call("d", 0)
		child.Agent = "coder/kid"
		_, err = o.gate.Do(t.Context(), child)
		wants(t, err, writ.Conflict) // a child's questions are its parent's
		other := call("d", 0)
		other.Agent = "coder2"
		_, err = o.gate.Do(t.Context(), other)
		wants(t, err, writ.Pending)
		time.Sleep(time.Minute)
		_, err = o.gate.Do(t.Context(), call("d", 0))
		wants(t, err, writ.Pending)
	})
}

// TestTimeouts: each policy, by the clock. Nothing approves by itself.
func TestTimeouts(t *testing.T) {
	chain := []Step{{"approver", 10 * time.Minute}, {"admin", 20 * time.Minute}}
	for name, tt := range map[string]struct {
		terms Terms
		risk  string
		ends  time.Duration // 0: never
	}{
		"deny":                 {Terms{Timeout: Deny}, "high", time.Hour},
		"wait":                 {Terms{Timeout: Wait}, "high", 0},
		"tier that denies":     {Terms{Timeout: Tiered, Tiers: map[string]Tier{"high": {After: 5 * time.Minute}}}, "high", 5 * time.Minute},
		"tier of another risk": {Terms{Timeout: Tiered, Tiers: map[string]Tier{"low": {After: 5 * time.Minute}}}, "high", time.Hour},
		"tier that escalates":  {Terms{Timeout: Tiered, Tiers: map[string]Tier{"critical": {After: 5 * time.Minute, Escalate: true}}, Escalation: chain}, "critical", 35 * time.Minute},
		"escalation":           {Terms{Timeout: Escalate, Escalation: chain}, "low", 30 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			within(t, func(t *testing.T, o *office) {
				tt.terms.Expiry, tt.terms.MaxPending = time.Hour, 20
				o.terms = tt.terms
				o.decide = func(_ writ.Call, d *writ.Decision) { d.Risk = tt.risk }
				done := o.do(t.Context(), call("ls", 1000*time.Hour))
				synctest.Wait()
				r := o.only()
				if tt.ends == 0 {
					time.Sleep(999 * time.Hour)
					synctest.Wait()
					if got := o.state(r.ID); got != "pending" {
						t.Fatal(got)
					}
					if err := o.answer(r, true); err != nil {
						t.Fatal(err)
					}
					if err := <-done; err != nil || o.ran() != 1 {
						t.Errorf("%v, %d runs", err, o.ran())
					}
					return
				}
				time.Sleep(tt.ends - time.Nanosecond)
				synctest.Wait()
				if got := o.state(r.ID); got != "pending" {
					t.Fatalf("control: %s before its time", got)
				}
				time.Sleep(time.Nanosecond)
				wants(t, <-done, writ.Expired)
				wants(t, o.answer(r, true), writ.Expired)
				if o.ran() != 0 {
					t.Error("it ran")
				}
			})
		})
	}
}

// TestEscalation: who may answer grows along the chain, and each step is written down
// once, also over a restart.
func TestEscalation(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.terms = Terms{Timeout: Escalate, MaxPending: 20, Escalation: []Step{{"admin", 10 * time.Minute}, {"approver", 20 * time.Minute}}}
		r := o.ask(call("ls", 0))
		says(t, o.answerAs("bob", r, true), writ.Denied, "this request is put to people with the role admin now")
		steps := func() (n int) {
			entries, err := o.db.EntriesBefore(t.Context(), 0, 100)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				if e.Kind == "approval.escalated" {
					n++
				}
			}
			return n
		}
		for _, at := range []struct {
			after time.Duration
			want  int
		}{{0, 1}, {9 * time.Minute, 1}, {time.Minute, 2}, {time.Minute, 2}} {
			time.Sleep(at.after)
			for range 2 {
				if err := o.desk.Escalate(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if got := steps(); got != at.want {
				t.Errorf("%d steps are written down, want %d", got, at.want)
			}
			o.close()
			o.open()
		}
		if err := o.answerAs("bob", r, true); err != nil {
			t.Errorf("it reached the approvers: %v", err)
		}
	})
}

// TestClockSetBack: A19. What expired stays expired, whatever becomes of the machine's
// clock, over a restart too.
func TestClockSetBack(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		time.Sleep(expiry + time.Minute)
		o.ledger.Now() // the ledger has seen this time
		if err := o.ledger.Append(t.Context(), ledger.Entry{Kind: "test"}); err != nil {
			t.Fatal(err)
		}
		o.back = 2 * expiry
		o.close()
		o.open()
		wants(t, o.answer(r, true), writ.Expired)
		before := o.ledger.Time()
		time.Sleep(time.Minute)
		if got := o.ledger.Time().Sub(before); got != time.Minute {
			t.Errorf("time stands still: %s", got)
		}
	})
}

// TestWordsAreBounded: what a person says to an agent is not a way to flood it.
func TestWordsAreBounded(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		no := Answer{ID: r.ID, Digest: r.Digest, Reason: strings.Repeat("x", maxWords+1), Person: "alice", Factor: "passphrase"}
		says(t, o.desk.Decide(t.Context(), no), writ.Invalid, "reason: it has 2001 bytes and may have 2000")
		no.Reason = no.Reason[1:]
		o.must(o.desk.Decide(t.Context(), no))
	})
}
