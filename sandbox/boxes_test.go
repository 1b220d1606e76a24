package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// keeper is a driver whose boxes take a second each, and which counts them.
type keeper struct {
	mu                            sync.Mutex
	made, closed, renewed, alone  int
	unfit, noRenewal, slowRenewal bool
}

func (k *keeper) Name() string { return "fake" }
func (k *keeper) Probe(context.Context) (sandbox.Features, error) {
	return sandbox.Features{{Feature: sandbox.ProtectedName, Enforced: true}}, nil
}
func (k *keeper) Start(context.Context, writ.Writ, sandbox.Spec) (sandbox.Box, error) {
	return nil, errors.New("not asked")
}
func (k *keeper) Plan(_ context.Context, w writ.Writ, _ sandbox.Spec) (sandbox.Plan, error) {
	return run{k, fmt.Sprint(w.Confinement().Write)}, nil
}

func (k *keeper) count(n *int) { k.mu.Lock(); *n++; k.mu.Unlock() }

type run struct {
	k     *keeper
	alike string
}

func (r run) Alike() string                              { return r.alike }
func (r run) Start(context.Context) (sandbox.Box, error) { r.k.count(&r.k.alone); return second{}, nil }
func (r run) Keep(context.Context) (sandbox.Kept, error) {
	r.k.count(&r.k.made)
	return kept{r.k}, nil
}
func (r run) StartIn(context.Context, sandbox.Kept) (sandbox.Box, error) {
	if r.k.unfit {
		r.k.unfit = false
		return nil, sandbox.ErrUnfit
	}
	return second{}, nil
}

type kept struct{ k *keeper }

func (x kept) Renew(context.Context) error {
	x.k.count(&x.k.renewed)
	if x.k.slowRenewal {
		time.Sleep(time.Second)
	}
	if x.k.noRenewal {
		return sandbox.ErrUnfit
	}
	return nil
}
func (x kept) Close() error { x.k.count(&x.k.closed); return errors.New("nobody minds") }

type second struct{}

func (second) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-time.After(time.Second):
		return sandbox.Exit{}, nil
	case <-ctx.Done():
		return sandbox.Exit{Code: -1, Limit: "cancelled"}, nil
	}
}

// A caller makes calls through a gate.
type caller struct {
	t     *testing.T
	boxes *sandbox.Boxes
	class writ.Class
	ws    string
}

func (c caller) Decide(context.Context, writ.Call) (writ.Decision, error) {
	return writ.Decision{Effect: writ.Allow, Class: c.class, Confine: writ.Confinement{Write: []string{c.ws}}}, nil
}
func (c caller) Approve(context.Context, writ.Call, writ.Decision) (writ.Approval, error) {
	return writ.Approval{}, errors.New("nobody is asked")
}
func (c caller) Record(context.Context, writ.Event) error { return nil }
func (c caller) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	b, _, err := c.boxes.Start(ctx, w, sandbox.Spec{Alone: w.Call().Tool == "alone"})
	if err != nil {
		return writ.Result{}, err
	}
	exit, err := b.Wait(ctx)
	return writ.Result{Content: exit.Limit}, err
}

func (c caller) call(call writ.Call) string {
	c.t.Helper()
	call.ID, call.Definition, call.Resolved = "call", writ.Digest{1}, true
	if call.Tool == "" {
		call.Tool = "tool"
	}
	res, err := writ.NewGate(c, c, c, c).Do(c.t.Context(), call)
	if err != nil {
		c.t.Error(err)
	}
	synctest.Wait()
	return res.Content
}

// atOnce makes so many calls at the same time.
func (c caller) atOnce(call writ.Call, many int) {
	var wg sync.WaitGroup
	for range many {
		wg.Go(func() {
			if _, err := writ.NewGate(c, c, c, c).Do(c.t.Context(), with(call)); err != nil {
				c.t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestBoxes(t *testing.T) {
	one := writ.Call{Agent: "a", Session: "s", Task: "t"}
	other := func(change func(*writ.Call)) writ.Call { c := one; change(&c); return c }
	for _, tc := range []struct {
		name                string
		keep                sandbox.Lifecycle
		do                  func(caller, *keeper)
		made, closed, alone int
	}{
		{"the same agent's", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, _ *keeper) {
			c.call(one)
			c.call(one)
			c.call(other(func(c *writ.Call) { c.Task = "u" }))
		}, 1, 0, 0},
		{"another agent, person, session", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, _ *keeper) {
			c.call(one)
			c.call(other(func(c *writ.Call) { c.Agent = "b" }))
			c.call(other(func(c *writ.Call) { c.Person = "p" }))
			c.call(other(func(c *writ.Call) { c.Session = "z" }))
		}, 4, 0, 0},
		{"another reach", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, _ *keeper) { c.call(one); c.ws = "/wider"; c.call(one) }, 2, 0, 0},
		{"another task", sandbox.Lifecycle{Strategy: sandbox.PerTask}, func(c caller, _ *keeper) {
			c.call(one)
			c.call(one)
			c.call(other(func(c *writ.Call) { c.Task = "u" }))
			c.boxes.EndTask("t")
		}, 2, 1, 0},
		{"no owner", sandbox.Lifecycle{Strategy: sandbox.PerTask}, func(c caller, _ *keeper) {
			c.call(other(func(c *writ.Call) { c.Task = "" }))
			c.call(writ.Call{Agent: "a"})
		}, 0, 0, 2},
		{"each call", sandbox.Lifecycle{Strategy: sandbox.PerCall}, func(c caller, _ *keeper) { c.call(one); c.call(one) }, 0, 0, 2},
		{"the zero lifecycle", sandbox.Lifecycle{}, func(c caller, _ *keeper) { c.call(one) }, 0, 0, 1},
		{"writes, and what goes on", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, _ *keeper) {
			c.call(other(func(c *writ.Call) { c.Tool = "alone" }))
			c.class = writ.ClassWrite
			c.call(one)
		}, 0, 0, 2},
		{"idle", sandbox.Lifecycle{Strategy: sandbox.PerAgent, Idle: time.Minute}, func(c caller, k *keeper) {
			c.call(one)
			time.Sleep(59 * time.Second)
			c.call(one)
			time.Sleep(59 * time.Second)
			synctest.Wait()
			k.mu.Lock()
			if k.closed != 0 {
				c.t.Error("it ended too soon")
			}
			k.mu.Unlock()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			c.call(one)
		}, 2, 1, 0},
		{"grace after a session", sandbox.Lifecycle{Strategy: sandbox.PerAgent, Grace: time.Minute, Idle: time.Hour}, func(c caller, k *keeper) {
			c.call(one)
			c.boxes.EndSession("s")
			time.Sleep(30 * time.Second)
			c.call(one) // it is there still
			c.boxes.EndSession("s")
			time.Sleep(2 * time.Minute)
			synctest.Wait()
		}, 1, 1, 0},
		{"the agent is gone", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, _ *keeper) { c.call(one); c.boxes.EndAgent("a"); c.boxes.EndAgent("b") }, 1, 1, 0},
		{"a dead box", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) { c.call(one); k.unfit = true; c.call(one) }, 2, 1, 0},
		{"one that cannot be renewed", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) { k.noRenewal = true; c.call(one); c.call(one) }, 2, 2, 0},
		{"another strategy", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) {
			c.call(one)
			c.boxes.Use(sandbox.Lifecycle{Strategy: sandbox.PerCall})
			c.call(one)
		}, 1, 1, 1},
		{"at once", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) {
			c.atOnce(one, 3)
			synctest.Wait()
			c.call(one)
		}, 3, 0, 0},
		{"sooner than another one is made", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) {
			k.slowRenewal = true
			for range 3 {
				writ.NewGate(c, c, c, c).Do(c.t.Context(), with(one))
			}
			time.Sleep(2 * time.Second)
		}, 1, 0, 0},
		{"handed to those who wait, and one more is made", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) {
			k.slowRenewal = true
			c.atOnce(one, 2) // both are being readied then
			c.atOnce(one, 3)
			time.Sleep(2 * time.Second)
		}, 3, 0, 0},
		{"waited for, and it cannot be renewed", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) {
			k.slowRenewal, k.noRenewal = true, true
			c.atOnce(one, 1)
			c.atOnce(one, 1)
			time.Sleep(2 * time.Second)
		}, 2, 2, 0},
		{"waited for by one who gives up", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) {
			k.slowRenewal = true
			c.atOnce(one, 1)
			ctx, cancel := context.WithTimeout(c.t.Context(), time.Second/2)
			defer cancel()
			writ.NewGate(c, c, c, c).Do(ctx, with(one)) // has one made, which this driver does for anybody
			time.Sleep(2 * time.Second)
			c.atOnce(one, 2) // nobody has taken the other away
			time.Sleep(2 * time.Second)
		}, 2, 0, 0},
		{"more than are kept", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) {
			for i := range 70 {
				c.call(other(func(c *writ.Call) { c.Agent = fmt.Sprint(i) }))
			}
		}, 70, 6, 0},
		{"killed while it runs", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) {
			go func() {
				time.Sleep(500 * time.Millisecond)
				c.boxes.Kill(c.boxes.List()[0].ID)
			}()
			if got := c.call(one); got != "killed by an operator" {
				c.t.Errorf("ended: %q", got)
			}
		}, 1, 1, 0},
		{"killed while it waits", sandbox.Lifecycle{Strategy: sandbox.PerAgent}, func(c caller, k *keeper) {
			c.call(one)
			if !c.boxes.Kill(c.boxes.List()[0].ID) || c.boxes.Kill("box_x") {
				c.t.Error("kill")
			}
		}, 1, 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &keeper{}
				b := sandbox.NewBoxes(sandbox.Set{k}, tc.keep)
				tc.do(caller{t, b, writ.ClassNone, "/ws"}, k)
				synctest.Wait()
				k.mu.Lock()
				defer k.mu.Unlock()
				if k.made != tc.made || k.closed != tc.closed || k.alone != tc.alone {
					t.Errorf("made %d, closed %d, alone %d; want %d, %d, %d", k.made, k.closed, k.alone, tc.made, tc.closed, tc.alone)
				}
				k.mu.Unlock()
				b.Close()
				synctest.Wait()
				k.mu.Lock()
				if k.closed != k.made || len(b.List()) != 0 {
					t.Errorf("after the end %d of %d are closed, %v left", k.closed, k.made, b.List())
				}
			})
		})
	}
}

func with(c writ.Call) writ.Call {
	c.ID, c.Tool, c.Definition, c.Resolved = "call", "tool", writ.Digest{1}, true
	return c
}
