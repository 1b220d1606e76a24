package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/writ-run/writ/store"
)

func approvesAs(person string) func(string) move {
	return func(id string) move {
		return func(tx *store.Tx) (bool, error) {
			if ok, err := tx.AddVote(vote(id, person, "approve")); !ok || err != nil {
				return ok, err
			}
			return tx.ApproveInvocation(id, person, now)
		}
	}
}

func claimsAs(worker string) func(string) move {
	return func(id string) move { return claims(id, worker) }
}

func finishesAs(worker string, fence int64, status string) func(string) move {
	return func(id string) move {
		end := ended(id, status)
		end.Worker, end.Fence = worker, fence
		return finishes(end)
	}
}

func stops(id string) move {
	return func(tx *store.Tx) (bool, error) {
		list, err := tx.CancelInvocations(id, "", "", "stopped", now)
		return slices.ContainsFunc(list, func(i store.Invocation) bool { return i.ID == id }), err
	}
}

func keeps(id string) move {
	return func(tx *store.Tx) (bool, error) { return true, tx.KeepResult(kept(id, late, "")) }
}

func delivers(id string) move {
	return func(tx *store.Tx) (bool, error) { return tx.DeliverResult(id, over) }
}

func resolves(by string) func(string) move {
	return func(id string) move {
		return func(tx *store.Tx) (bool, error) {
			return tx.AddResolution(store.Resolution{Invocation: id, Happened: "yes", By: by, At: over})
		}
	}
}

// races are two sides that want the same invocation, readied by some steps. Each may
// end in the ways that are listed: how many of a won, how many of b, and the status.
var races = []struct {
	name  string
	ready []func(string) move
	a, b  func(string) move
	ends  []string
}{
	{"A1 approve, approve", nil, approvesAs("alice"), approvesAs("alice"), []string{"1 0 running", "0 1 running"}},
	{"A1 two approve", nil, approvesAs("alice"), approvesAs("bob"), []string{"1 0 running", "0 1 running"}},
	{"A2 approve, reject", nil, approves, rejects, []string{"1 0 running", "0 1 rejected"}},
	{"A3 approve, expire", nil, approves, expires, []string{"1 1 cancelled", "0 1 expired"}},
	{"A4 approve, cancel", nil, approves, cancels, []string{"1 1 cancelled", "0 1 cancelled"}},
	{"A4 approve, stop", nil, approves, stops, []string{"1 1 cancelled", "0 1 cancelled"}},
	{"reject, cancel", nil, rejects, cancels, []string{"1 0 rejected", "0 1 cancelled"}},
	{"E4 claim, claim", []func(string) move{approves}, claimsAs("w"), claimsAs("x"), []string{"1 0 running", "0 1 running"}},
	{"A11 claim twice", []func(string) move{approves}, claimsAs("w"), claimsAs("w"), []string{"1 0 running", "0 1 running"}},
	{"claim, cancel", []func(string) move{approves}, claimsAs("w"), cancels, []string{"1 0 running", "0 1 cancelled"}},
	{"claim, expire", []func(string) move{approves}, claimsAs("w"), expires, []string{"1 0 running", "0 1 cancelled"}},
	{"claim, stop", []func(string) move{approves}, claimsAs("w"), stops, []string{"1 0 running", "0 1 cancelled"}},
	{"E5 zombie, holder", []func(string) move{approves, claimsAs("w"), releases, claimsAs("w")}, finishesAs("w", 1, "failed"), finishesAs("w", 2, "completed"), []string{"0 1 completed"}},
	{"E6 complete, approve", nil, finishesAs("w", 1, "completed"), approves, []string{"0 1 running"}},
	{"E7 another worker, holder", []func(string) move{approves, claimsAs("w")}, finishesAs("x", 1, "failed"), finishesAs("w", 1, "completed"), []string{"0 1 completed"}},
	{"E11 end cancelled, complete", []func(string) move{approves, claimsAs("w")}, finishesAs("w", 1, "cancelled"), finishesAs("w", 1, "completed"), []string{"1 0 cancelled", "0 1 completed"}},
	{"E11 cancel, complete", []func(string) move{approves, claimsAs("w")}, cancels, finishesAs("w", 1, "completed"), []string{"0 1 completed"}},
	{"release, complete", []func(string) move{approves, claimsAs("w")}, releases, finishesAs("w", 1, "completed"), []string{"1 0 running", "0 1 completed"}},
	{"outcome handed over", []func(string) move{approves, claimsAs("w"), finishesAs("w", 1, "completed"), keeps}, delivers, delivers, []string{"1 0 completed", "0 1 completed"}},
	{"resolve, resolve", []func(string) move{approves, claimsAs("w"), finishesAs("w", 1, "unknown")}, resolves("alice"), resolves("olga"), []string{"1 0 unknown", "0 1 unknown"}},
}

// testRaces: many callers at once, over and over; of those who want the same thing, one
// gets it.
func (e Engine) testRaces(t *testing.T) {
	db := e.open(t, t.TempDir())
	cast(t, db)
	change(t, db, func(tx *store.Tx) error {
		for _, race := range races {
			for round := range rounds {
				i := reading(fmt.Sprint(race.name, round))
				i.Agent = i.ID
				if ok, err := tx.AddInvocation(&i); !ok || err != nil {
					return fmt.Errorf("add %s: %v, %v", i.ID, ok, err)
				}
				for n, ready := range race.ready {
					if ok, err := ready(i.ID)(tx); !ok || err != nil {
						return fmt.Errorf("ready %s, %d: %v, %v", i.ID, n, ok, err)
					}
				}
			}
		}
		return nil
	})
	write := e.Writer(t, db) // from here on the only one who writes
	for _, race := range races {
		t.Run(race.name, func(t *testing.T) {
			for round := range rounds {
				id := fmt.Sprint(race.name, round)
				a, b := contend(t, write, race.a(id), race.b(id))
				if got := fmt.Sprintf("%d %d %s", a, b, find(t, db, id).Status); !slices.Contains(race.ends, got) {
					t.Errorf("round %d ended %q, want one of %q", round, got, race.ends)
				}
			}
		})
	}
}

// rounds is how often each race is run.
const rounds = 8

var errLost = errors.New("lost")

// contend sets 32 callers off at once, and counts who was told that they won.
func contend(t *testing.T, write func(func(*store.Tx) error) error, sides ...move) (a, b int64) {
	t.Helper()
	var wins [2]atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range 32 {
		wg.Go(func() {
			<-start
			err := write(func(tx *store.Tx) error {
				ok, err := sides[i%len(sides)](tx)
				if err == nil && !ok {
					err = errLost
				}
				return err
			})
			switch {
			case err == nil:
				wins[i%len(sides)].Add(1)
			case !errors.Is(err, errLost):
				t.Error(err)
			}
		})
	}
	close(start)
	wg.Wait()
	return wins[0].Load(), wins[1].Load()
}

// asks adds a request as package approval does: within a limit, and once.
func asks(i store.Invocation, limit int) move {
	return func(tx *store.Tx) (bool, error) {
		if t, n, err := tx.There(i.Asked, i.Agent, i.Tool); t.Open || n >= limit || err != nil {
			return false, err
		}
		return tx.AddInvocation(&i)
	}
}

// testLimit: 64 callers ask at once, for themselves and for the same thing.
func (e Engine) testLimit(t *testing.T) {
	for name, asked := range map[string]func(int) string{
		"different":        func(i int) string { return fmt.Sprint("asked", i) },
		"identical":        func(int) string { return "asked" },
		"by many children": func(i int) string { return fmt.Sprint("asked", i) },
	} {
		t.Run(name, func(t *testing.T) {
			db := e.open(t, t.TempDir())
			cast(t, db)
			want := int64(20)
			if name == "identical" {
				want = 1
			}
			write := e.Writer(t, db)
			added := crowd(t, write, 64, func(n int) move {
				i := request(fmt.Sprint("r", n))
				i.Asked = asked(n)
				if name == "by many children" && n%3 > 0 { // asking through others is asking
					i.Agent = fmt.Sprintf("coder/child-%d/grandchild", n)
				}
				return asks(i, 20)
			})
			if got, err := db.PendingInvocations(t.Context(), now); err != nil || int64(len(got)) != want || added != want {
				t.Errorf("%d pending, %d told so, want %d (%v)", len(got), added, want, err)
			}
			err := write(func(tx *store.Tx) error {
				for agent, n := range map[string]int{"coder": int(want), "coder/child-1/grandchild": int(want), "code": 0, "coder0": 0} {
					if got, err := tx.Asked(agent, "2025"); got != n || err != nil {
						t.Errorf("%s asked %d times, want %d: %v", agent, got, n, err)
					}
				}
				if got, err := tx.Asked("coder", early); got != 0 || err != nil {
					t.Errorf("asked %d times since: %v", got, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// crowd sets many callers off at once, and counts who was told that they won.
func crowd(t *testing.T, write func(func(*store.Tx) error) error, n int, of func(int) move) int64 {
	t.Helper()
	var won atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		m := of(i)
		wg.Go(func() {
			err := write(func(tx *store.Tx) error {
				ok, err := m(tx)
				if err == nil && !ok {
					err = errLost
				}
				return err
			})
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, errLost) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return won.Load()
}

// testOneKey (E10): 50 callers with one key are one call; with keys of their own, or as
// other agents, they are not.
func (e Engine) testOneKey(t *testing.T) {
	db := e.open(t, t.TempDir())
	cast(t, db)
	write := e.Writer(t, db)
	for name, tt := range map[string]struct {
		alter func(*store.Invocation, int)
		want  int64
	}{
		"one key":             {func(i *store.Invocation, _ int) { i.Key = "key'; --" }, 1},
		"one key of each":     {func(i *store.Invocation, n int) { i.Agent, i.Key = fmt.Sprint("agent", n), "key" }, 50},
		"keys of their own":   {func(i *store.Invocation, n int) { i.Key = fmt.Sprint("key", n) }, 50},
		"no key":              {func(*store.Invocation, int) {}, 50},
		"one key and a write": {func(i *store.Invocation, n int) { *i = request(i.ID); i.Key = "write" }, 1},
	} {
		got := crowd(t, write, 50, func(n int) move {
			i := begun(fmt.Sprint(name, n))
			tt.alter(&i, n)
			return func(tx *store.Tx) (bool, error) {
				if id, _, _, err := tx.Keyed(i.Agent, i.Key); id != "" || err != nil {
					return false, err
				}
				return tx.AddInvocation(&i)
			}
		})
		if got != tt.want {
			t.Errorf("%s: %d were added, want %d", name, got, tt.want)
		}
	}
	i := begun("again")
	i.Key = "key1"
	again := crowd(t, write, 1, func(int) move { return func(tx *store.Tx) (bool, error) { return tx.AddInvocation(&i) } })
	if again != 0 {
		t.Error("a key was taken again by somebody who did not look")
	}
}

// testOneGrant: of 50 callers under a grant for so many, so many run.
func (e Engine) testOneGrant(t *testing.T) {
	for _, most := range []int{1, 7, 50} {
		db := e.open(t, t.TempDir())
		cast(t, db)
		grants(t, db, request("r"), func(g *store.Grant) { g.Max = most })
		write := e.Writer(t, db)
		got := crowd(t, write, 50, func(n int) move {
			i := granted(fmt.Sprint("c", n), "g-r")
			return func(tx *store.Tx) (bool, error) {
				if live, err := tx.GrantLive("g-r", now); !live || err != nil {
					return false, err
				}
				return tx.AddInvocation(&i)
			}
		})
		all, err := db.Grants(t.Context())
		if err != nil || got != int64(most) || all[0].Used != most {
			t.Errorf("%d ran under a grant for %d that says %+v: %v", got, most, all, err)
		}
		i := granted("more", "g-r")
		if crowd(t, write, 1, func(int) move { return func(tx *store.Tx) (bool, error) { return tx.AddInvocation(&i) } }) != 0 {
			t.Error("one more ran, of somebody who did not look")
		}
	}
}
