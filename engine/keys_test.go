package engine

import (
	"context"
	"sync"
	"testing"

	"github.com/writ-run/writ"
)

// meeting is a decider at which calls wait for each other: each has looked for its key
// by then, and none has begun.
type meeting struct {
	decider
	all *sync.WaitGroup
}

func (m meeting) Decide(ctx context.Context, c writ.Call) (writ.Decision, error) {
	m.all.Done()
	m.all.Wait()
	return m.decider.Decide(ctx, c)
}

// Calls that were made at once with one key all have the id of the one that ran.
func TestOneKeyOneCallID(t *testing.T) {
	f := newFixture(t, standardFamily, Options{Tools: []Tool{probe("look", "code:read", nil)}})
	_, err := f.call("look", args(0)) // the session of the day is there
	f.must(err)
	const many = 20
	m := meeting{decider{f.Engine}, &sync.WaitGroup{}}
	f.Engine.gate = writ.NewGate(m, approver{f.Engine}, f.desk, runner{f.Engine})
	atOnce := func(key string) map[string]int {
		m.all.Add(many)
		ids := make([]string, many)
		each(many, func(i int) {
			out, err := f.call("look", args(1), func(c *Call) { c.Key = key })
			if err != nil || out.Content != "look" {
				t.Errorf("%+v, %v", out, err)
			}
			ids[i] = out.CallID
		})
		count := map[string]int{}
		for _, id := range ids {
			count[id]++
			if _, err := f.Invocation(t.Context(), "coder", id); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		return count
	}
	if got := atOnce("one"); len(got) != 1 {
		t.Errorf("one key: %d ids", len(got))
	}
	if got := atOnce(""); len(got) != many { // the control: without one they are as many calls
		t.Errorf("no key: %d ids", len(got))
	}
}
