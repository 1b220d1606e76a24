package engine

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
)

var standardFamily = strings.Replace(family, "LEVEL", "standard", 1)

// A request that was let in before its token was revoked, and goes on after it,
// opens, delegates and runs nothing.
func TestRevokedWhileUnderWay(t *testing.T) {
	f := newFixture(t, standardFamily, Options{Tools: []Tool{probe("look", "code:read", nil)}})
	_, who := f.token("coder")
	s, err := f.OpenSession(t.Context(), Call{Agent: "coder", Token: who.Token}, "")
	f.must(err)
	_, other := f.token("coder") // the control
	for _, tt := range []struct {
		who Caller
		ok  bool
	}{{who, true}, {other, true}, {who, false}, {other, true}} {
		c := Call{Agent: "coder", Token: tt.who.Token}
		if tt.who == who && tt.ok {
			c.Session = s.ID
		}
		check := func(what string, err error) {
			t.Helper()
			if (err == nil) != tt.ok {
				t.Errorf("%s with the token good %v: %v", what, tt.ok, err)
			}
		}
		_, err := f.Delegate(t.Context(), c, "ghost", 24*time.Hour, config.Request{})
		check("delegate", err)
		_, err = f.OpenSession(t.Context(), c, "more")
		check("open a session", err)
		c.Task = "a task " + newID("")
		_, err = f.StartTask(t.Context(), c)
		check("open a task", err)
		c.Task, c.Tool = "", "look"
		_, err = f.Do(t.Context(), c)
		check("call", err)
		if tt.who == other && f.stops.revoked == nil {
			f.must(f.RevokeToken(t.Context(), who.Token))
		}
	}
}

// What was begun is carried out, also when whoever asked has gone; asking again heals.
func TestEndsOutliveTheirCaller(t *testing.T) {
	f := newFixture(t, standardFamily, Options{Tools: []Tool{probe("look", "code:read", nil)}})
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	secret, parent := f.token("coder")
	kid := f.child(parent, "kid", config.Request{})
	f.must(f.EndDelegation(gone, "coder", kid.Agent))
	_, err := f.call("look", args(1), as(kid))
	if err == nil {
		t.Error("an ended child calls")
	}
	wants(t, f.EndDelegation(gone, "coder", kid.Agent), writ.NotFound, "there is no delegated agent")
	f.must(f.RevokeToken(gone, parent.Token))
	if _, err := f.Authenticate(secret); writ.KindOf(err) != writ.Unauthenticated {
		t.Errorf("a revoked token is good: %v", err)
	}
	wants(t, f.RevokeToken(gone, parent.Token), writ.NotFound, "there is no good token")
	s, err := f.OpenSession(t.Context(), Call{Agent: "coder"}, "")
	f.must(err)
	f.must(f.EndSession(gone, "", s.ID, "ended"))
}

// A child that ends between the decision about its call and the run of it runs
// nothing, and a stop of its parent finds what it did begin.
func TestEndedBetweenDecidingAndRunning(t *testing.T) {
	var f *fixture
	var kid Caller
	ran := false
	o := Options{Tools: []Tool{probe("look", "code:read", func(context.Context, json.RawMessage) (writ.Result, error) {
		ran = true
		return writ.Result{}, nil
	})}}
	o.Hooks.OnBeforeCall = []func(context.Context, writ.Call) Verdict{func(ctx context.Context, c writ.Call) Verdict {
		if c.Agent == kid.Agent {
			f.must(f.EndDelegation(ctx, "coder", kid.Agent))
		}
		return Proceed()
	}}
	f = newFixture(t, standardFamily, o)
	_, parent := f.token("coder")
	kid = f.child(parent, "kid", config.Request{})
	if _, err := f.call("look", args(1), as(kid)); err == nil || ran {
		t.Errorf("it ran: %v", err)
	}
	// The same at the very last moment: the gate has decided, recorded and is about to run.
	kid2 := f.child(parent, "kid", config.Request{})
	call, leave, err := f.prepare(t.Context(), Call{Agent: kid2.Agent, Token: kid2.Token, Tool: "look"}, "call_x")
	f.must(err)
	defer leave()
	f.must(f.EndDelegation(t.Context(), "coder", kid2.Agent))
	begin := func(r *run) error {
		_, done, err := f.stops.begin(t.Context(), r)
		if err == nil {
			done()
		}
		return err
	}
	wants(t, begin(&run{chain: call.Chain, token: call.Token}), writ.Unauthenticated, "has ended meanwhile")
	wants(t, begin(&run{}), writ.Unauthenticated, "has ended meanwhile")
	f.must(begin(&run{chain: []string{"coder"}, token: parent.Token})) // the control
}

// A denial that the interceptors were spared for stays one, whatever the gate would
// say a moment later.
func TestInterceptorsAreNotPassedBy(t *testing.T) {
	asked := 0
	o := Options{Tools: []Tool{probe("look", "code:read", nil)}}
	o.Hooks.OnBeforeCall = []func(context.Context, writ.Call) Verdict{func(context.Context, writ.Call) Verdict { asked++; return Proceed() }}
	f := newFixture(t, agentsText+"tools: {look: {disabled: true}}\n", o)
	f.Engine.gate = writ.NewGate(allowing{}, approver{f.Engine}, f.desk, runner{f.Engine})
	_, err := f.call("look", args(1))
	wants(t, err, writ.Denied, "tool look is disabled")
	if asked != 0 {
		t.Error("an interceptor was asked about a denied call")
	}
}

type allowing struct{}

func (allowing) Decide(context.Context, writ.Call) (writ.Decision, error) {
	return writ.Decision{Effect: writ.Allow}, nil
}

// Whoever can make a symlink does not choose what an accepted tool reaches.
func TestSymlinkSuspends(t *testing.T) {
	f := newFixture(t, agentsText, Options{})
	f.must(os.Mkdir(filepath.Join(f.dir, "ws/data"), 0o700))
	f.must(os.Mkdir(filepath.Join(f.dir, "other"), 0o700))
	f.write("tools/count.yaml", strings.Replace(countTool, `["/**"]`, `["$DIR/ws/data/**"]`, 1))
	_, err := f.Reload(t.Context())
	f.must(err)
	d, err := f.DiffTool("count")
	f.must(err)
	f.must(f.AcceptTool(t.Context(), "count", d.Digest, f.alice()))
	if len(f.at().held) != 0 {
		t.Fatalf("%v", f.at().held)
	}
	f.must(os.Remove(filepath.Join(f.dir, "ws/data")))
	f.must(os.Symlink(filepath.Join(f.dir, "other"), filepath.Join(f.dir, "ws/data")))
	f.must(f.refresh(t.Context()))
	if why := f.at().held["count"]; !strings.Contains(why, "leads through a symlink") {
		t.Errorf("held: %q", why)
	}
	if _, err := f.Reload(t.Context()); err != nil { // and nobody keeps the operator from reloading by it
		t.Error(err)
	}
}

// An agent that left the configuration can be stopped by name, and its children do
// not come back with it.
func TestRemovedAgent(t *testing.T) {
	f := newFixture(t, standardFamily, Options{Tools: []Tool{probe("look", "code:read", nil)}})
	_, parent := f.token("coder")
	kid := f.child(parent, "kid", config.Request{})
	f.write("writ.yaml", strings.Replace(standardFamily, "coder:", "other:", 1))
	_, err := f.Reload(t.Context())
	f.must(err)
	f.must(f.Stop(t.Context(), "coder", ""))
	wants(t, f.Stop(t.Context(), "nobody", ""), writ.NotFound, "there is no agent")
	f.must(f.Lift(t.Context(), "coder", f.alice()))
	f.write("writ.yaml", standardFamily)
	_, err = f.Reload(t.Context())
	f.must(err)
	if _, err := f.call("look", args(1), as(kid)); err == nil {
		t.Error("a child came back")
	}
	_, err = f.call("look", args(1), as(parent))
	f.must(err)
}

// What an ended child asked people is not theirs to answer any more.
func TestEndedChildAsksNobody(t *testing.T) {
	s := newStage()
	f := newFixture(t, asking, s.options())
	_, parent := f.token("coder")
	kid := f.child(parent, "kid", config.Request{})
	for i := range 20 {
		_, err := f.call("erase", args(i), as(kid))
		wants(t, err, writ.Pending, "")
	}
	_, err := f.call("erase", args(1), as(parent))
	wants(t, err, writ.Conflict, "already has 20 requests waiting")
	f.must(f.EndDelegation(t.Context(), "", kid.Agent))
	_, err = f.call("erase", args(1), as(parent))
	wants(t, err, writ.Pending, "")
}

// A child works in the task it was made in.
func TestChildWorksInItsTask(t *testing.T) {
	var task string
	o := Options{Tools: []Tool{probe("look", "code:read", nil)}}
	o.Hooks.OnCalled = func(c writ.Call, _ writ.Result, _ error) { task = c.Task }
	f := newFixture(t, standardFamily, o)
	_, parent := f.token("coder")
	c := Call{Agent: "coder", Token: parent.Token, Task: "mine"}
	d, err := f.Delegate(t.Context(), c, "kid", time.Hour, config.Request{})
	f.must(err)
	kid, err := f.Authenticate(d.Token)
	f.must(err)
	_, err = f.call("look", args(1), as(kid))
	f.must(err)
	if !strings.HasPrefix(task, "task_") {
		t.Errorf("it worked in %s", task)
	}
}

func TestDelegationIsBounded(t *testing.T) {
	f := newFixture(t, standardFamily, Options{})
	_, parent := f.token("coder")
	c := Call{Agent: "coder", Token: parent.Token}
	many := make([]string, 257)
	for i := range many {
		many[i] = "stat"
	}
	for want, r := range map[string]config.Request{
		"allowed: a request has at most 256 entries in a list, not 257": {Allowed: &many},
		"denied: a request has at most 256 entries in a list, not 257":  {Denied: many},
		"denied: an entry has at most 128 characters":                   {Denied: []string{strings.Repeat("x", 100_000)}},
	} {
		_, err := f.Delegate(t.Context(), c, "kid", time.Hour, r)
		wants(t, err, writ.TooLarge, want)
		if _, msg := writ.Public(err); len(msg) > 200 {
			t.Errorf("%d bytes come back", len(msg))
		}
	}
}

// However many calls an agent's batches have, so many run at once and no more.
func TestPlaces(t *testing.T) {
	s := newStage()
	f := newFixture(t, agentsText, s.options())
	each(3, func(int) {
		if _, err := f.DoAll(t.Context(), Batch{Calls: batch(strings.Repeat("look ", MaxBatch)), Order: Concurrent}); err != nil {
			t.Error(err)
		}
	})
	if s.most > maxRunning {
		t.Errorf("%d ran at once", s.most)
	}
	leaves := []func(){}
	for range maxRunning {
		leave, err := f.places.take(t.Context(), "coder")
		f.must(err)
		leaves = append(leaves, leave)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.places.take(ctx, "coder"); err == nil {
		t.Error("one more than there is room for")
	}
	leave, err := f.places.take(t.Context(), "somebody else")
	f.must(err)
	leave()
	for _, l := range leaves {
		l()
	}
}

// The results of a batch are bounded together.
func TestBatchBytes(t *testing.T) {
	big := strings.Repeat("x", 1<<20)
	f := newFixture(t, agentsText, Options{Tools: []Tool{probe("big", "code:read", func(context.Context, json.RawMessage) (writ.Result, error) {
		return writ.Result{Content: big}, nil
	})}})
	got, err := f.DoAll(t.Context(), Batch{Calls: batch(strings.Repeat("big ", 40))})
	f.must(err)
	total, cut := 0, 0
	for _, a := range got {
		total += len(a.Content)
		if a.IsError && strings.Contains(a.Content, "are left out") {
			cut++
		}
	}
	if total > maxBatchBytes+64<<10 || cut != 8 {
		t.Errorf("%d bytes, %d left out", total, cut)
	}
}

// What came of a call before is not handed to an agent that may not make it any more.
func TestOutcomeAfterStop(t *testing.T) {
	f := newFixture(t, standardFamily, Options{Tools: []Tool{probe("look", "code:read", nil)}})
	keyed := func(c *Call) { c.Key = "k" }
	first, err := f.call("look", args(1), keyed)
	f.must(err)
	again, err := f.call("look", args(1), keyed) // the control
	f.must(err)
	if again.CallID != first.CallID {
		t.Errorf("%s, not %s again", again.CallID, first.CallID)
	}
	f.must(f.Stop(t.Context(), "coder", "enough"))
	got, err := f.call("look", args(1), keyed)
	if err == nil || got.Result.Content != "" || got.CallID == first.CallID {
		t.Errorf("after the stop: %+v, %v", got, err)
	}
}
