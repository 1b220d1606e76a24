package approval

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ"
)

// edited answers with other arguments, as they are previewed.
func (o *office) edited(who string, r Request, args string) error {
	o.t.Helper()
	p, err := o.desk.Preview(o.t.Context(), r.ID, args)
	if err != nil {
		return err
	}
	return o.desk.Decide(o.t.Context(), Answer{ID: r.ID, Digest: r.Digest, Approve: true, Edit: &Edit{Args: args, Digest: p.Digest}, Person: who, Factor: "passphrase"})
}

// TestEdit: what a person wrote is what runs, once, for whoever asked.
func TestEdit(t *testing.T) {
	for _, waits := range []bool{true, false} {
		within(t, func(t *testing.T, o *office) {
			var ran []string
			o.run = func(_ context.Context, w writ.Writ) (writ.Result, error) {
				ran = append(ran, w.Call().Args)
				return writ.Result{Content: "done"}, nil
			}
			var done <-chan error
			if waits {
				done = o.do(t.Context(), call("rm -rf /", time.Minute))
				synctest.Wait()
			} else {
				o.ask(call("rm -rf /", 0))
			}
			r := o.only()
			p, err := o.desk.Preview(t.Context(), r.ID, `{"command":"ls"}`)
			if err != nil || p.Shown == nil || string(p.Shown.Args) != `{"command":"ls"}` || string(p.Shown.Original) != `{"command":"rm -rf /"}` || p.Digest == r.Digest {
				t.Fatalf("%+v %v", p, err)
			}
			if got := o.only(); got.ID != r.ID || got.Digest != r.Digest {
				t.Error("a preview changed the request")
			}
			if err := o.edited("alice", r, `{"command":"ls"}`); err != nil {
				t.Fatal(err)
			}
			if !waits {
				done = o.do(t.Context(), call("rm -rf /", 0)) // the agent does not know what became of it
			}
			if err := <-done; err != nil || strings.Join(ran, " ") != `{"command":"ls"}` {
				t.Errorf("waits %v: %v, ran %v", waits, err, ran)
			}
			if was := o.invocation(r.ID); was.Status != "cancelled" || was.Replaced == "" || o.invocation(was.Replaced).EditOf != r.ID {
				t.Errorf("%+v", was)
			}
			says(t, o.answer(r, true), writ.Conflict, "already void")
			says(t, o.edited("bob", r, `{"command":"id"}`), writ.Conflict, "already void")
		})
	}
}

// TestEditRefused: A17. An edit is gated like a call, and agrees to what was shown.
func TestEditRefused(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		r := o.ask(call("ls", 0))
		o.decide = func(c writ.Call, d *writ.Decision) {
			if strings.Contains(c.Args, "shadow") {
				d.Effect, d.Reasons = writ.Deny, []writ.Reason{{Effect: writ.Deny, Text: "it is protected"}}
			}
		}
		says(t, o.edited("alice", r, `{"command":"cat /etc/shadow"}`), writ.Denied, "denied: it is protected")
		says(t, o.edited("alice", r, `{"command":"ls"}`), writ.Invalid, "the arguments are as they were")
		wants(t, o.edited("alice", r, `{"command":"ls","command":"rm"}`), writ.Invalid)
		wants(t, o.edited("alice", r, `[]`), writ.Invalid)
		ans := Answer{ID: r.ID, Digest: r.Digest, Approve: true, Person: "alice", Factor: "passphrase", Edit: &Edit{Args: `{"command":"id"}`, Digest: r.Digest}}
		says(t, o.desk.Decide(t.Context(), ans), writ.Changed, "what the edited call would do is not what was shown")
		p, err := o.desk.Preview(t.Context(), r.ID, `{"command":"id"}`)
		if err != nil {
			t.Fatal(err)
		}
		ans.Edit.Digest = p.Digest
		o.policy++ // what it would do is another thing now
		wants(t, o.desk.Decide(t.Context(), ans), writ.Changed)
		o.policy--
		ans.Digest = strings.Repeat("0", 64)
		says(t, o.desk.Decide(t.Context(), ans), writ.Changed, "the digest is not that of the request")
		ans.Digest, ans.Person = r.Digest, "victor"
		wants(t, o.desk.Decide(t.Context(), ans), writ.Denied)
		if o.only().ID != r.ID || o.ran() != 0 {
			t.Error("something became of it")
		}
		ans.Person = "alice"
		if err := o.desk.Decide(t.Context(), ans); err != nil {
			t.Errorf("the control: %v", err)
		}
	})
}

// TestEditQuorum: the edited request takes as many people, and the others see it as
// it is now.
func TestEditQuorum(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.terms.Quorum = 2
		r := o.ask(call("rm", 0))
		if err := o.edited("alice", r, `{"command":"ls"}`); err != nil {
			t.Fatal(err)
		}
		now := o.only()
		if now.ID == r.ID || string(now.Shown.Args) != `{"command":"ls"}` || len(now.Votes) != 1 || o.ran() != 0 {
			t.Fatalf("%+v", now)
		}
		wants(t, o.answerAs("alice", now, true), writ.Conflict)
		if err := o.answerAs("bob", now, true); err != nil {
			t.Fatal(err)
		}
		if _, err := o.gate.Do(t.Context(), call("rm", 0)); err != nil || o.ran() != 1 {
			t.Errorf("%v, %d runs", err, o.ran())
		}
	})
}

// TestInputsChange: A18. What the files held is part of what was agreed to.
func TestInputsChange(t *testing.T) {
	within(t, func(t *testing.T, o *office) {
		o.inputs = []Input{{Path: "/work/x", Bytes: 1, SHA256: "aa"}}
		r := o.ask(call("deploy", 0))
		if len(r.Shown.Inputs) != 1 {
			t.Fatalf("%+v", r.Shown)
		}
		if err := o.answer(r, true); err != nil {
			t.Fatal(err)
		}
		o.inputs = []Input{{Path: "/work/x", Bytes: 1, SHA256: "bb"}}
		_, err := o.gate.Do(t.Context(), call("deploy", 0))
		says(t, err, writ.Changed, "a file that the call names changed since it was asked about")
		if o.ran() != 0 || o.state(r.ID) != "void" {
			t.Error(o.ran(), o.state(r.ID))
		}
		again := o.ask(call("deploy", 0))
		if err := o.answer(again, true); err != nil {
			t.Fatal(err)
		}
		if _, err := o.gate.Do(t.Context(), call("deploy", 0)); err != nil || o.ran() != 1 {
			t.Errorf("the control: %v, %d runs", err, o.ran())
		}
	})
}
