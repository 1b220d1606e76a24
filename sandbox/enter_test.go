package sandbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

var one = writ.Call{Agent: "a", Session: "s", Task: "t"}

// operator enters a box under a writ of its own.
type operator struct {
	caller
	id string
}

func (o operator) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	b, err := o.boxes.Enter(ctx, o.id, w, sandbox.Spec{})
	if err != nil {
		return writ.Result{}, err
	}
	_, err = b.Wait(ctx)
	return writ.Result{}, err
}

func (o operator) enters() error {
	c := with(writ.Call{Agent: "operator", Person: "p"})
	_, err := writ.NewGate(o, o, o, o).Do(o.t.Context(), c)
	return err
}

func TestEnter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{slowRenewal: true}
		b := sandbox.NewBoxes(sandbox.Set{k}, sandbox.Lifecycle{Strategy: sandbox.PerAgent})
		c := caller{t, b, writ.ClassNone, "/ws"}
		c.call(one)
		id := b.List()[0].ID
		refused := func(what string, o operator, want string) {
			t.Helper()
			if err := o.enters(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := (operator{c, id}).enters(); err != nil { // after it has been readied
			t.Error(err)
		}
		synctest.Wait()
		if l := b.List()[0]; l.ID != id || l.Calls != 2 || l.Agent != "a" || l.Session != "s" || k.made != 1 {
			t.Errorf("%+v", l)
		}
		time.Sleep(2 * time.Second)
		c.ws = "/wider"
		refused("another reach", operator{c, id}, "something else")
		c.ws = "/ws"
		refused("no such box", operator{c, "box_x"}, "there is no sandbox")
		go c.call(one)
		time.Sleep(500 * time.Millisecond)
		refused("beside a call", operator{c, id}, "one command at a time")
		time.Sleep(3 * time.Second)
		k.mu.Lock()
		k.unfit = true
		k.mu.Unlock()
		refused("one that has died", operator{c, id}, "had ended")
		s, ok := b.Show(id)
		if !ok || s.Ended.IsZero() || len(s.Runs) != 3 || s.Runs[1].Agent != "operator" || s.Confine.Write[0] != "/ws" || len(b.List()) != 0 {
			t.Errorf("%+v", s)
		}
		b.Close()
	})
}

// Of each box the last runs are remembered, and of those that ended the last ones.
func TestHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{}
		b := sandbox.NewBoxes(sandbox.Set{k}, sandbox.Lifecycle{Strategy: sandbox.PerAgent})
		c := caller{t, b, writ.ClassNone, "/ws"}
		for range 30 {
			c.call(one)
		}
		first := b.List()[0].ID
		if s, _ := b.Show(first); len(s.Runs) != 20 || s.Calls != 30 {
			t.Errorf("%d runs of %d", len(s.Runs), s.Calls)
		}
		b.EndAgent("a")
		for i := range 64 {
			if s, ok := b.Show(first); !ok || s.Ended.IsZero() || len(s.Runs) != 20 {
				t.Fatalf("after %d others: %+v", i, s)
			}
			c.call(writ.Call{Agent: fmt.Sprint(i), Session: "s"})
			b.EndAgent("*")
		}
		if _, ok := b.Show(first); ok {
			t.Error("it is not forgotten")
		}
	})
}

// A box's time is over in the same moment in which a call takes it: either the call has
// another box, or it has this one and keeps it. A timer of before never ends a box that is
// used, or was used since.
func TestIdleRace(t *testing.T) {
	taken, ended := 0, 0
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			k := &keeper{}
			b := sandbox.NewBoxes(sandbox.Set{k}, sandbox.Lifecycle{Strategy: sandbox.PerAgent, Idle: time.Minute})
			c := caller{t, b, writ.ClassNone, "/ws"}
			c.call(one)
			time.Sleep(time.Minute)
			c.call(one)
			k.mu.Lock()
			made, closed := k.made, k.closed
			k.mu.Unlock()
			switch {
			case made == 1 && closed == 0 && len(b.List()) == 1:
				taken++
			case made == 2 && closed == 1 && len(b.List()) == 1:
				ended++
			default:
				t.Errorf("made %d, closed %d, %+v", made, closed, b.List())
			}
			b.Close()
			synctest.Wait()
		})
	}
	if taken == 0 || ended == 0 {
		t.Errorf("inconclusive: taken %d times, ended %d times", taken, ended)
	}
}
