package ledger

import (
	"sync"
	"testing"
)

// Whoever asks before reading misses nothing, however many write and read at once.
func TestGrown(t *testing.T) {
	l, _ := reopen(t, t.TempDir())
	const writers, each, readers = 8, 25, 4
	var all sync.WaitGroup
	for range writers {
		all.Go(func() {
			for range each {
				if err := l.Append(t.Context(), Entry{Kind: "test"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range readers {
		all.Go(func() {
			seen := int64(0)
			for seen < writers*each {
				grown := l.Grown()
				page, err := l.db.After(t.Context(), seen, 1000)
				if err != nil {
					t.Error(err)
					return
				}
				for _, e := range page {
					if e.Seq != seen+1 {
						t.Errorf("after %d comes %d", seen, e.Seq)
					}
					seen = e.Seq
				}
				if len(page) == 0 {
					<-grown
				}
			}
		})
	}
	all.Wait()
	// Control: without a commit nobody is woken.
	select {
	case <-l.Grown():
		t.Error("woken by nothing")
	default:
	}
}
