package main

import (
	"sync"
	"testing"
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
