package person

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/writ-run/writ"
)

// Checker checks passphrases and slows guessing down. Safe for concurrent use.
type Checker struct {
	now func() time.Time

	// mu is held through a check, so that guesses made at once count one by one.
	// They could not be checked at once anyway: see hashing.
	mu      sync.Mutex
	known   map[string]tries // of people there are
	unknown map[string]tries // of names that nobody has
	resumed bool             // what was counted before the start is in known
}

type tries struct {
	failed int
	until  time.Time // no attempt counts before
}

// NewChecker uses the clock now; nil means time.Now.
func NewChecker(now func() time.Time) *Checker {
	if now == nil {
		now = time.Now
	}
	return &Checker{now: now, known: map[string]tries{}, unknown: map[string]tries{}}
}

// freeTries is how many wrong passphrases cost no waiting.
const freeTries = 5

// maxUnknown bounds how many names that nobody has are remembered. They are only
// so that such a name is answered like any other.
const maxUnknown = 1000

// ErrEarly marks the refusal of a guess that came before its time: it was not
// looked at, and does not count.
var ErrEarly = errors.New("the guess came too early")

// Check returns nil when passphrase is name's, and how many wrong ones came in a
// row: with this one when it is wrong, before it when it is right. stored is "" for
// somebody who does not exist, which takes as long and says the same.
func (c *Checker) Check(name, stored, passphrase string) (failed int, err error) {
	if len(passphrase) > maxPassphrase || len(name) > maxName {
		return 0, writ.Fail(writ.Unauthenticated, "wrong name or passphrase", nil)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	of := c.known
	if stored == "" {
		of = c.unknown
	}
	t := of[name]
	if wait := t.until.Sub(c.now()); wait > 0 {
		return t.failed, writ.Fail(writ.Unauthenticated, fmt.Sprintf("too many wrong passphrases; try again in %s", max(time.Second, wait.Round(time.Second))), ErrEarly)
	}
	if matches(stored, passphrase) {
		delete(of, name)
		return t.failed, nil
	}
	if len(c.unknown) >= maxUnknown {
		clear(c.unknown) // never of people: flooding with names must not free a guesser
	}
	of[name] = after(t.failed+1, c.now())
	return t.failed + 1, writ.Fail(writ.Unauthenticated, "wrong name or passphrase", nil)
}

// after is how somebody stands when the last of several wrong passphrases in a row
// came at a time.
func after(failed int, at time.Time) tries {
	t := tries{failed: failed}
	if failed >= freeTries {
		t.until = at.Add(time.Second << min(failed-freeTries, 9))
	}
	return t
}

// Failure is how wrong passphrases of somebody stood when they were last written down.
type Failure struct {
	InARow int
	Last   time.Time
}

// Window is how far back failures are taken up after a restart. Nobody gains by
// letting it pass: 14 guesses fit before the waits are at their longest, and 14 of
// the longest waits are over sooner.
const Window = 2 * time.Hour

// Resume takes up what was counted before this program started, so that restarting
// it gives nobody fresh tries. load is asked once, before anybody is checked; while
// it fails, nobody may be.
func (c *Checker) Resume(load func() (map[string]Failure, error)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resumed {
		return nil
	}
	before, err := load()
	if err != nil {
		return err
	}
	for name, f := range before {
		c.known[name] = after(f.InARow, f.Last)
	}
	c.resumed = true
	return nil
}

// Forget starts somebody's count anew: guesses at a passphrase that was replaced say
// nothing of the new one.
func (c *Checker) Forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, name)
}
