package main

import (
	"os/exec"
	"sync"
	"testing"
	"time"
)

// TestStartedAtOnce has many callers find no daemon at the same moment: each gets its
// answer from the one that starts.
func TestStartedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	for range 3 {
		var callers sync.WaitGroup
		for range 6 {
			callers.Go(func() {
				if o := w.run("", "tool", "list"); o.code != 0 {
					t.Errorf("%d, %s", o.code, o.err)
				}
			})
		}
		callers.Wait()
		w.run("", "serve", "--stop")
	}
}

// TestStartedBeside has callers find no daemon while somebody starts one by hand: what they
// started for themselves does not take over from it.
func TestStartedBeside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, asksToDelete, "").init()
	for range 3 {
		w.run("", "serve", "--stop")
		w.daemonGone()
		byHand := exec.Command(program, "serve")
		byHand.Env, byHand.Dir = w.env(), "/"
		var callers sync.WaitGroup
		for i := range 4 {
			callers.Go(func() {
				time.Sleep(time.Duration(i) * 20 * time.Millisecond)
				if o := w.run("", "tool", "list"); o.code != 0 {
					t.Errorf("%d, %s", o.code, o.err)
				}
			})
		}
		if err := byHand.Start(); err != nil {
			t.Fatal(err)
		}
		callers.Wait()
		if byHand.Process.Kill() == nil {
			byHand.Wait()
		}
		w.run("", "serve", "--stop") // where one of the callers was first
		w.daemonGone()
	}
}
