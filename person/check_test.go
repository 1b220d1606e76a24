package person

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// What Check says of the count is what a restart takes up again: the same wait, to
// the moment, and the same next one.
func TestResume(t *testing.T) {
	clock := &clock{time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	c := NewChecker(clock.now)
	hash := cheap()
	for i := range 7 {
		n, err := c.Check("alice", hash, "wrong passphrase")
		if n != i+1 || err == nil || errors.Is(err, ErrEarly) {
			t.Fatalf("guess %d: %d, %v", i+1, n, err)
		}
		if i >= 4 && i < 6 {
			clock.at = clock.at.Add(4 * time.Second)
		}
	}
	last := clock.at
	clock.at = clock.at.Add(time.Second)
	if n, err := c.Check("alice", hash, right); n != 7 || !errors.Is(err, ErrEarly) || !strings.Contains(err.Error(), "try again in 3s") {
		t.Fatalf("early: %d, %v", n, err)
	}
	again := NewChecker(clock.now)
	loads := 0
	load := func() (map[string]Failure, error) {
		loads++
		return map[string]Failure{"alice": {InARow: 7, Last: last}, "bob": {InARow: 4, Last: last}}, nil
	}
	broken := errors.New("the store is away")
	if err := again.Resume(func() (map[string]Failure, error) { return nil, broken }); err != broken {
		t.Errorf("a load that fails: %v", err)
	}
	for range 2 {
		if err := again.Resume(load); err != nil {
			t.Fatal(err)
		}
	}
	if loads != 1 {
		t.Errorf("asked %d times", loads)
	}
	says := func(name, pass, want string, counted int) {
		t.Helper()
		n, err := again.Check(name, hash, pass)
		if _, msg := writ.Public(err); n != counted || err == nil || msg != want {
			t.Errorf("%s: %d %v, want %d %q", name, n, err, counted, want)
		}
	}
	says("alice", right, "too many wrong passphrases; try again in 3s", 7)
	says("bob", "wrong passphrase", "wrong name or passphrase", 5)
	says("bob", right, "too many wrong passphrases; try again in 1s", 5)
	says("carol", "wrong passphrase", "wrong name or passphrase", 1) // control: nobody held her back
	clock.at = clock.at.Add(3 * time.Second)
	says("alice", "wrong passphrase", "wrong name or passphrase", 8)
	says("alice", right, "too many wrong passphrases; try again in 8s", 8)
	again.Forget("alice")
	if n, err := again.Check("alice", hash, right); n != 0 || err != nil {
		t.Errorf("forgotten: %d, %v", n, err)
	}
	if n, err := again.Check("bob", hash, right); n != 5 || err != nil {
		t.Errorf("another's count is not forgotten: %d, %v", n, err)
	}
}

// The window is long enough that sitting it out gains nothing.
func TestWindow(t *testing.T) {
	at := time.Time{}
	quick := freeTries
	for after(quick, at).until.Sub(at) < 512*time.Second {
		quick++
	}
	if slow := time.Duration(quick) * 512 * time.Second; Window < slow-512*time.Second {
		t.Errorf("%d guesses can be made anew after %s, and waiting for as many takes %s", quick, Window, slow)
	}
}
