package protect

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// What one run made, and another from which it is kept writes when the first has ended, is
// found at the end of the other one; in one process and in several, and in directories that
// are within each other.
func TestHandedOver(t *testing.T) {
	const evil = "sub/r/.git/config=[core]\n\tfsmonitor = evil\n"
	repository := []string{"sub/r/.git/HEAD=x", "sub/r/.git/config=[core]\n\tbare = false\n", "sub/r/.git/hooks/x.sample=y", "sub/r/.vscode/"}
	for name, dirs := range map[string][2]string{"one directory": {"", ""}, "below": {"", "sub"}, "above": {"sub", ""}} {
		for _, processes := range []string{"one", "two"} {
			t.Run(name+", processes: "+processes, func(t *testing.T) {
				ws, a, b := two(t, 0)
				if processes == "one" {
					b = a
				}
				put(t, ws, "sub/x=y")
				first := prepared(t, a, filepath.Join(ws, dirs[0]), nil)
				for _, item := range repository {
					put(t, ws, item)
				}
				second := prepared(t, b, filepath.Join(ws, dirs[1]), nil)
				finished(t, first)
				put(t, ws, evil)
				put(t, ws, "sub/r/.git/hooks/post-checkout=evil")
				put(t, ws, "sub/r/.vscode/settings.json=evil")
				found := ended(t, second)
				var want []string
				for _, rel := range []string{"sub/r/.git/config", "sub/r/.git/hooks/post-checkout", "sub/r/.vscode"} {
					below, _ := filepath.Rel(dirs[1], rel)
					want = append(want, below)
				}
				if diff := cmp.Diff(want, found); diff != "" {
					t.Errorf("found (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Nor does it matter that the placeholders of the first are gone, by which the second would know
// it: one that began before them both has nothing over them. It may have moved the directory, too.
func TestHandedOverUnseen(t *testing.T) {
	for _, moved := range []bool{false, true} {
		ws, a, b := two(t, 0)
		put(t, ws, "sub/x=y")
		sub := filepath.Join(ws, "sub")
		first := prepared(t, a, sub, nil)
		for _, m := range first.Placeholders {
			if err := os.Remove(m.Path); err != nil {
				t.Fatal(err)
			}
		}
		if moved {
			if err := os.Rename(sub, filepath.Join(ws, "sub2")); err != nil {
				t.Fatal(err)
			}
			sub = filepath.Join(ws, "sub2")
		}
		put(t, sub, "r/.git/config=[core]\n\tbare = false\n")
		put(t, sub, "r/.git/hooks/")
		second := prepared(t, b, ws, nil)
		first.Done()
		put(t, sub, "r/.git/config=[core]\n\tfsmonitor = evil\n")
		if diff := cmp.Diff([]string{filepath.Base(sub) + "/r/.git/config"}, ended(t, second)); diff != "" {
			t.Errorf("moved %v: found (-want +got):\n%s", moved, diff)
		}
	}
}

// It may go through several hands.
func TestHandedOnInARow(t *testing.T) {
	ws, a, b := two(t, 0)
	third := finder(t, Options{})
	put(t, ws, "sub/x=y")
	first := prepared(t, a, ws, nil)
	put(t, ws, "sub/r/.git/config=[core]\n\tbare = false\n")
	put(t, ws, "sub/r/.git/hooks/")
	second := prepared(t, b, filepath.Join(ws, "sub"), nil) // which has another lock
	finished(t, first)
	last := prepared(t, third, ws, nil)
	finished(t, second)
	put(t, ws, "sub/r/.git/hooks/post-checkout=evil")
	if diff := cmp.Diff([]string{"sub/r/.git/hooks/post-checkout"}, ended(t, last)); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
}

// A placeholder that is there for others is no place to leave something, whoever ends first.
func TestFilledForOthers(t *testing.T) {
	for _, first := range []string{"the maker ends first", "the keeper ends first"} {
		t.Run(first, func(t *testing.T) {
			ws, a, b := two(t, 0)
			c := prepared(t, a, ws, nil)
			put(t, ws, "r/.git/config=[core]\n\tbare = false\n")
			keeper := prepared(t, b, ws, nil)
			hooks := filepath.Join(ws, "r/.git/hooks")
			if !exists(hooks) {
				t.Fatal("there is no placeholder")
			}
			if err := os.Chmod(hooks, 0o755); err != nil {
				t.Fatal(err)
			}
			put(t, ws, "r/.git/hooks/post-checkout=evil")
			if err := os.Chmod(hooks, 0o555|os.ModeSticky); err != nil {
				t.Fatal(err)
			}
			ends := []*Cover{c, keeper}
			if first == "the keeper ends first" {
				ends = []*Cover{keeper, c}
			}
			found := append(ended(t, ends[0]), ended(t, ends[1])...)
			if len(found) != 1 || exists(filepath.Join(hooks, "post-checkout")) {
				t.Errorf("found %q", found)
			}
		})
	}
}

// What was there already is for those who made it; put back, it is not.
func TestNotHandedOver(t *testing.T) {
	for _, processes := range []string{"one", "two"} {
		t.Run("processes: "+processes, func(t *testing.T) {
			ws, a, b := two(t, 0)
			if processes == "one" {
				b = a
			}
			first := prepared(t, a, ws, nil)
			put(t, ws, "r/.git/config=[core]\n\tfsmonitor = evil\n")
			put(t, ws, "r/.git/hooks/post-checkout=evil")
			finished(t, prepared(t, b, ws, nil))
			second := prepared(t, b, ws, nil)
			both := []string{"r/.git/config", "r/.git/hooks/post-checkout"}
			if diff := cmp.Diff(both, ended(t, first)); diff != "" {
				t.Errorf("found by the first (-want +got):\n%s", diff)
			}
			put(t, ws, "r/.git/config=[core]\n\tfsmonitor = evil\n")
			put(t, ws, "r/.git/hooks/post-checkout=evil")
			if diff := cmp.Diff(both, ended(t, second)); diff != "" {
				t.Errorf("found by the second (-want +got):\n%s", diff)
			}
		})
	}
}

// Without other runs, or with those elsewhere, a hook that a person puts into a repository that was
// there is not taken from them.
func TestOwnHooks(t *testing.T) {
	ws, a, b := two(t, 0)
	other := prepared(t, b, t.TempDir(), nil)
	put(t, ws, "r/.git/config=[core]\n\tbare = false\n")
	put(t, ws, "r/.git/hooks/x.sample=y")
	c := prepared(t, a, ws, nil)
	put(t, ws, "r/.git/hooks/pre-commit=mine")
	finished(t, c)
	finished(t, other)
	if text, err := os.ReadFile(filepath.Join(ws, "r/.git/hooks/pre-commit")); string(text) != "mine" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
}

// A lock that comes to be is seen, also where it is known that there was none.
func TestLockAfterNone(t *testing.T) {
	ws, a, b := two(t, 0)
	put(t, ws, "sub/x=y")
	below := filepath.Join(ws, "sub")
	fd, err := unix.Open(ws, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	is, err := statFD(fd)
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(20 * time.Second); !a.free.dirs[is.place()]; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Log("others keep taking locks, so nothing is remembered")
			break
		}
		a.mu.Lock()
		a.free.look()
		if a.rowAt(is.place(), 0) != alone {
			t.Error("a directory without a lock has a row")
		}
		a.mu.Unlock()
	}
	around := prepared(t, b, ws, nil)
	run := prepared(t, a, below, nil)
	if run.row == alone {
		t.Error("the row of another process was not seen")
	}
	finished(t, run)
	finished(t, around)
}
