package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/writ-run/writ/store"
)

// contender is one side of a race for a request.
type contender struct {
	name string
	f    func(*store.Tx) (bool, error)
	ends string // the state that its winning leaves
}

var (
	approve = contender{"approve", func(tx *store.Tx) (bool, error) {
		return tx.DecideApproval("r", "digest-r", "approved", "alice", "", now)
	}, "approved"}
	reject = contender{"reject", func(tx *store.Tx) (bool, error) {
		return tx.DecideApproval("r", "digest-r", "rejected", "bob", "", now)
	}, "rejected"}
	use    = contender{"use", func(tx *store.Tx) (bool, error) { return tx.UseApproval("r", "subject-r", now) }, "used"}
	expire = contender{"expire", func(tx *store.Tx) (bool, error) { return tx.ExpireApproval("r", over) }, "expired"}
	void   = contender{"void", func(tx *store.Tx) (bool, error) { return true, tx.VoidApprovals("coder") }, "void"}
)

// testRaces: 64 callers at once; of those who want the same request, one gets it.
func (e Engine) testRaces(t *testing.T) {
	for _, race := range []struct {
		from  string
		a, b  contender
		after map[string]bool // states the race may end in
	}{
		{"pending", approve, approve, map[string]bool{"approved": true}},
		{"pending", approve, reject, map[string]bool{"approved": true, "rejected": true}},
		{"pending", approve, expire, map[string]bool{"expired": true}}, // an approved one whose time is over expires too
		{"pending", approve, void, map[string]bool{"void": true}},
		{"approved", use, use, map[string]bool{"used": true}},
		{"approved", use, void, map[string]bool{"used": true, "void": true}},
		{"approved", use, expire, map[string]bool{"used": true, "expired": true}},
	} {
		t.Run(race.a.name+" and "+race.b.name, func(t *testing.T) {
			db := e.open(t, t.TempDir())
			add(t, db, asked("r"))
			if race.from == "approved" && !try(t, db, approve.f) {
				t.Fatal("not approved")
			}
			wins := contend(t, e.Writer(t, db), race.a, race.b)
			end := state(t, db, "r")
			if !race.after[end] {
				t.Errorf("ended %s", end)
			}
			for _, c := range []contender{race.a, race.b} {
				n := wins[c.name]
				if c.name != "void" && n > 1 {
					t.Errorf("%d callers %s", n, c.name)
				}
				if c.name != "void" && end == c.ends && n != 1 {
					t.Errorf("ended %s and %d callers did it", end, n)
				}
			}
			if wins["approve"] > 0 && wins["reject"] > 0 {
				t.Error("approved and rejected")
			}
			if wins["use"] > 0 && end != "used" {
				t.Errorf("used, and ended %s", end)
			}
		})
	}
}

var errLost = errors.New("lost")

// contend sets 64 callers off at once, and counts who was told that they won.
func contend(t *testing.T, write func(func(*store.Tx) error) error, a, b contender) map[string]int64 {
	t.Helper()
	var wins [2]atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 64 {
		c := []contender{a, b}[i%2]
		wg.Go(func() {
			<-start
			err := write(func(tx *store.Tx) error {
				ok, err := c.f(tx)
				if err == nil && !ok {
					err = errLost
				}
				return err
			})
			switch {
			case err == nil:
				wins[i%2].Add(1)
			case !errors.Is(err, errLost):
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	out := map[string]int64{a.name: wins[0].Load()}
	out[b.name] += wins[1].Load()
	return out
}

// testLimit: 64 callers ask at once, for themselves and for the same thing.
func (e Engine) testLimit(t *testing.T) {
	for name, subject := range map[string]func(int) string{
		"different":        func(i int) string { return fmt.Sprint("subject", i) },
		"identical":        func(int) string { return "subject" },
		"by many children": func(i int) string { return fmt.Sprint("subject", i) },
	} {
		t.Run(name, func(t *testing.T) {
			db := e.open(t, t.TempDir())
			write := e.Writer(t, db)
			var wg sync.WaitGroup
			var added atomic.Int64
			for i := range 64 {
				wg.Go(func() {
					a := asked(fmt.Sprint("r", i))
					a.Subject = subject(i)
					if name == "by many children" && i%3 > 0 { // asking through others is asking
						a.Agent = fmt.Sprintf("coder/child-%d/grandchild", i)
					}
					err := write(func(tx *store.Tx) error {
						ok, err := tx.AddApproval(a, 20)
						if err == nil && !ok {
							err = errLost
						}
						return err
					})
					if err == nil {
						added.Add(1)
					} else if !errors.Is(err, errLost) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			want := int64(20)
			if name == "identical" {
				want = 1
			}
			if got, err := db.Approvals(t.Context(), "pending"); err != nil || int64(len(got)) != want || added.Load() != want {
				t.Errorf("%d pending, %d told so, want %d (%v)", len(got), added.Load(), want, err)
			}
		})
	}
}
