package usage_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/writ-run/writ/sandbox/usage"
)

// TestWatch: a limit ends a run at once, what cannot be measured at the second time in a
// row, and nothing that is within its limits does.
func TestWatch(t *testing.T) {
	const looks = 6
	some, much, unknown := usage.Use{Written: 1}, usage.Use{Written: 11}, errors.New("it cannot be looked at")
	type look struct {
		used usage.Use
		err  error
	}
	ok, over, failed := look{some, nil}, look{much, nil}, look{usage.Use{}, unknown}
	for _, tc := range []struct {
		name  string
		seen  []look // the last one goes on
		limit string
		at    int
	}{
		{"within its limits", []look{ok}, "", looks},
		{"over them", []look{ok, over}, "disk", 2},
		{"unknown once", []look{failed, ok}, "", looks},
		{"unknown now and then", []look{failed, ok, failed, ok}, "", looks},
		{"unknown once, and then over them", []look{ok, failed, over}, "disk", 3},
		{"unknown", []look{ok, failed}, "unmeasured", 3},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ended, n, limit := make(chan struct{}), 0, ""
				usage.Limits{Written: 10}.Watch(ended, func() (usage.Use, error) {
					l := tc.seen[min(n, len(tc.seen)-1)]
					if n++; n == looks {
						close(ended)
					}
					return l.used, l.err
				}, func(l string) { limit = l })
				time.Sleep(time.Minute)
				synctest.Wait()
				if limit != tc.limit || n != tc.at {
					t.Errorf("%q after %d looks, want %q after %d", limit, n, tc.limit, tc.at)
				}
			})
		})
	}
}
