package ledger

import (
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
)

// A change that panics takes its commit down and nothing else: the ledger goes on.
func TestPanickingChange(t *testing.T) {
	l, _ := reopen(t, t.TempDir())
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			err := l.Write(t.Context(), func(tx *store.Tx) (Entry, error) {
				if i%4 == 0 {
					panic("secret")
				}
				return Entry{Kind: "test"}, nil
			})
			if i%4 == 0 && (writ.KindOf(err) != writ.Internal || strings.Contains(publicText(err), "secret")) {
				t.Errorf("a panic: %v", err)
			}
		})
	}
	wg.Wait()
	if err := l.Append(t.Context(), Entry{Kind: "after"}); err != nil {
		t.Errorf("after the panics: %v", err)
	}
}

func publicText(err error) string { _, msg := writ.Public(err); return msg }
