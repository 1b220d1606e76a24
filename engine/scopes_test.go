package engine

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// token makes a token of an agent and says who comes with it.
func (f *fixture) token(agent string) (secret string, who Caller) {
	f.t.Helper()
	secret, _, err := f.NewToken(f.t.Context(), agent, f.alice())
	f.must(err)
	who, err = f.Authenticate(secret)
	f.must(err)
	return secret, who
}

func as(who Caller) func(*Call) {
	return func(c *Call) { c.Agent, c.Token, c.Session = who.Agent, who.Token, who.Session }
}

// A session is its token's. Nobody else's id opens it, guessed or known.
func TestSessionsAreBound(t *testing.T) {
	f := newFixture(t, agentsText, Options{Tools: []Tool{probe("look", "code:read", nil)}})
	_, one := f.token("coder")
	_, two := f.token("coder")
	mine, err := f.OpenSession(t.Context(), Call{Agent: one.Agent, Token: one.Token}, "mine")
	f.must(err)
	use := func(who Caller, session string) error {
		_, err := f.call("look", args(1), as(who), in(session, ""))
		return err
	}
	f.must(use(one, mine.ID))
	wants(t, use(two, mine.ID), writ.NotFound, "there is no such open session of this token")
	wants(t, use(one, "ses_guess"), writ.NotFound, "there is no such open session of this token")
	wants(t, use(Caller{Agent: "coder"}, mine.ID), writ.NotFound, "no such open session")
	wants(t, f.EndSession(t.Context(), two.Token, mine.ID, "ended"), writ.NotFound, "there is no open session")
	f.must(f.EndSession(t.Context(), one.Token, mine.ID, "ended"))
	wants(t, use(one, mine.ID), writ.NotFound, "no such open session")
	f.must(use(one, "")) // the session of the day
	wants(t, f.EndSession(t.Context(), one.Token, one.Token+"/coder/2026-03-01", "ended"), writ.Conflict, "ends with the day")
}

// Tasks open by name, are the session's own, and end.
func TestTasks(t *testing.T) {
	f := newFixture(t, agentsText, Options{Tools: []Tool{probe("look", "code:read", nil)}})
	_, one := f.token("coder")
	who := Call{Agent: one.Agent, Token: one.Token, Task: "fix it"}
	first, err := f.StartTask(t.Context(), who)
	f.must(err)
	same, err := f.StartTask(t.Context(), who)
	if err != nil || same.ID != first.ID {
		t.Errorf("%+v %v", same, err)
	}
	_, err = f.call("look", args(1), as(one), in("", first.ID))
	f.must(err)
	f.must(f.EndTask(t.Context(), one.Token, first.Session, "fix it", "ended"))
	_, err = f.call("look", args(1), as(one), in("", first.ID))
	wants(t, err, writ.NotFound, "there is no such open task in this session")
	again, err := f.StartTask(t.Context(), who) // the name is free again
	if err != nil || again.ID == first.ID {
		t.Errorf("%+v %v", again, err)
	}
	for _, bad := range []string{"", "task_x", "two\nlines", "ü"} {
		who.Task = bad
		if _, err := f.StartTask(t.Context(), who); writ.KindOf(err) != writ.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
	f.must(f.RateTask(t.Context(), first.ID, 7, f.alice()))
	wants(t, f.RateTask(t.Context(), first.ID, 11, f.alice()), writ.Invalid, "from 0 to 10")
	wants(t, f.RateTask(t.Context(), "task_nope", 3, f.alice()), writ.NotFound, "there is no task")
	wants(t, f.RateTask(t.Context(), first.ID, 3, Credentials{"alice", "wrong wrong wrong"}), writ.Unauthenticated, "")
	got, _, err := f.store.Task(t.Context(), first.ID)
	if err != nil || got.Rating == nil || *got.Rating != 7 || got.RatedBy != "alice" {
		t.Errorf("%+v %v", got, err)
	}
}

// Both end after an hour idle, not before, and not while a call is under way; they
// survive a restart.
func TestIdle(t *testing.T) {
	hold, began := make(chan struct{}), make(chan struct{}, 1)
	o := Options{Tools: []Tool{probe("look", "code:read", nil), probe("long", "code:read", func(context.Context, json.RawMessage) (writ.Result, error) {
		began <- struct{}{}
		<-hold
		return writ.Result{}, nil
	})}}
	f := newFixture(t, agentsText, o)
	s, err := f.OpenSession(t.Context(), Call{Agent: "coder"}, "")
	f.must(err)
	look := func(task string) error {
		_, err := f.call("look", args(1), in(s.ID, task))
		return err
	}
	f.must(look("a"))
	f.pass(59 * time.Minute)
	f.must(f.sweepOnce(t.Context()))
	f.must(look("")) // the session is used, the task is not
	f.pass(2 * time.Minute)
	f.must(f.sweepOnce(t.Context()))
	if n := f.kinds()["task.ended"]; n != 1 {
		t.Errorf("%d tasks ended", n)
	}
	f.reopen(o)
	f.must(look(""))
	done := make(chan error)
	go func() {
		_, err := f.call("long", args(1), in(s.ID, ""))
		done <- err
	}()
	<-began
	f.pass(3 * time.Hour)
	f.must(f.sweepOnce(t.Context()))
	close(hold)
	f.must(<-done)
	f.must(look(""))
	f.pass(time.Hour)
	f.must(f.sweepOnce(t.Context()))
	wants(t, look(""), writ.NotFound, "no such open session")
	// The session of the day stays itself, so that what was counted in it stays counted.
	_, err = f.call("look", args(1))
	f.must(err)
	f.pass(2 * time.Hour)
	f.must(f.sweepOnce(t.Context()))
	_, err = f.call("look", args(1))
	f.must(err)
	f.pass(24 * time.Hour)
	f.must(f.sweepOnce(t.Context()))
	if k := f.kinds(); k["session.opened"] != 2 || k["session.ended"] != 2 {
		t.Errorf("%v", k)
	}
}

// Ending a session ends what runs in it.
func TestEndSessionEndsRuns(t *testing.T) {
	began := make(chan struct{}, 1)
	o := Options{Tools: []Tool{probe("long", "code:read", func(ctx context.Context, _ json.RawMessage) (writ.Result, error) {
		began <- struct{}{}
		<-ctx.Done()
		return writ.Result{}, context.Cause(ctx)
	})}}
	f := newFixture(t, agentsText, o)
	s, err := f.OpenSession(t.Context(), Call{Agent: "coder"}, "")
	f.must(err)
	done := make(chan error)
	go func() {
		_, err := f.call("long", args(1), in(s.ID, ""))
		done <- err
	}()
	<-began
	f.must(f.EndSession(t.Context(), "", s.ID, "ended"))
	wants(t, <-done, writ.Denied, "the session or task of the call has ended")
}

func TestTooManyScopes(t *testing.T) {
	f := newFixture(t, agentsText, Options{})
	for range maxSessions {
		_, err := f.OpenSession(t.Context(), Call{Agent: "coder"}, "")
		f.must(err)
	}
	_, err := f.OpenSession(t.Context(), Call{Agent: "coder"}, "")
	wants(t, err, writ.Conflict, "this token has 1024 sessions open")
}
