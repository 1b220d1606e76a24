package files

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// exchange swaps two names for as long as f runs, as fast as it can.
func exchange(t *testing.T, a, b string, f func()) {
	t.Helper()
	if err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE); err != nil {
		t.Fatalf("RENAME_EXCHANGE: %v", err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE) // one may be gone for a moment
			}
		}
	})
	defer wg.Wait()
	defer close(stop)
	f()
}

// Two names change places all the time while a tool runs: a directory and a
// symlink out, a file and a symlink out. Some calls must come through, or the
// race was not one, and none may get out.
func TestRaces(t *testing.T) {
	const each = 400 * time.Millisecond
	for _, row := range []struct {
		name, tool string
		args       m
		link       string // what stands in for d or d/f
		leaf       bool
	}{
		{"read, parent", "read_file", m{"path": "d/canary"}, "../out", false},
		{"read, leaf", "read_file", m{"path": "d/canary"}, "../../out/canary", true},
		{"stat, parent", "stat", m{"path": "d/canary"}, "../out", false},
		{"list, parent", "list_directory", m{"recursive": true}, "../out", false},
		{"search, parent", "search_files", m{"pattern": "."}, "../out", false},
		{"search, leaf", "search_files", m{"pattern": "."}, "../../out/canary", true},
		{"write, parent", "write_file", m{"path": "d/canary", "content": "mine"}, "../out", false},
		{"write, new, parent", "write_file", m{"path": "d/new", "content": "mine"}, "../out", false},
		{"write, make parents", "write_file", m{"path": "d/e/f", "content": "mine", "create_directories": true}, "../out", false},
		{"edit, parent", "edit_file", m{"path": "d/canary", "edits": []m{{"old_text": "m", "new_text": "mm"}, {"old_text": "mm", "new_text": "m"}}}, "../out", false},
		{"delete, parent", "delete_file", m{"path": "d/canary"}, "../out", false},
		{"move, from", "move_file", m{"source": "d/canary", "destination": "moved", "overwrite": true}, "../out", false},
		{"move, to", "move_file", m{"source": "moved", "destination": "d/new", "overwrite": true}, "../out", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			w := newWorld(t)
			w.put(t, "d/canary", "mine")
			a, b := w.path("d"), w.path("other")
			if row.leaf {
				a, b = w.path("d/canary"), w.path("d/other")
			}
			must(t, os.Symlink(row.link, b))
			through, refused := 0, 0
			exchange(t, a, b, func() {
				// On a busy machine it takes longer until one comes through.
				for began := time.Now(); time.Since(began) < each || through == 0 && time.Since(began) < 50*each; {
					res, err := w.try(t, row.tool, row.args)
					if err == nil && !res.IsError {
						through++
					} else {
						refused++
					}
					w.safe(t, res.Content)
					if row.tool == "delete_file" || row.tool == "move_file" {
						for _, name := range []string{"d/canary", "other/canary", "moved"} {
							if f, err := os.OpenFile(w.path(name), os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW|os.O_EXCL, 0o644); err == nil && inside(f, w) {
								f.WriteString("mine")
								f.Close()
							}
						}
					}
				}
			})
			t.Logf("%d came through, %d were refused", through, refused)
			if through == 0 {
				t.Error("control: no call came through")
			}
		})
	}
}

// inside reports whether an open file lies in the workspace: the test's own
// writes race as well. One outside is removed again.
func inside(f *os.File, w *world) bool {
	at, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err == nil && strings.HasPrefix(at, w.ws+"/") {
		return true
	}
	os.Remove(at)
	f.Close()
	return false
}

// A search walks; where a directory it is about to enter becomes a symlink to
// what is hidden or secret, inside the same root, it must not go there.
func TestSearchRaceInsideTheRoot(t *testing.T) {
	for _, to := range []string{"../state", "../.aws"} {
		w := newWorld(t)
		w.put(t, "a/d/file", "mine")
		w.put(t, "state/file", canary)
		w.put(t, ".aws/file", canary)
		w.confine.Hide = []string{w.path("state")}
		must(t, os.Symlink(to, w.path("a/link")))
		found := 0
		exchange(t, w.path("a/d"), w.path("a/link"), func() {
			for end := time.Now().Add(800 * time.Millisecond); time.Now().Before(end); {
				got := w.ok(t, "search_files", m{"pattern": "."})
				if strings.Contains(got, canary) {
					t.Fatalf("%s was searched: %s", to, got)
				}
				if strings.Contains(got, "mine") {
					found++
				}
			}
		})
		if found == 0 {
			t.Error("control: nothing was found")
		}
	}
}

// Without overwrite nothing is replaced, also when it appears at the last moment.
func TestMoveDoesNotReplaceUnasked(t *testing.T) {
	w := newWorld(t)
	moved := 0
	for end := time.Now().Add(1 * time.Second); time.Now().Before(end); {
		w.put(t, "f", "moved")
		os.Remove(w.path("g"))
		var wg sync.WaitGroup
		made := false
		wg.Go(func() {
			f, err := os.OpenFile(w.path("g"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
			if made = err == nil; made {
				f.Close()
			}
		})
		res, err := w.try(t, "move_file", m{"source": "f", "destination": "g"})
		wg.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if made && !res.IsError {
			t.Fatal("a file that somebody made was replaced")
		}
		if !res.IsError {
			moved++
		}
	}
	if moved == 0 {
		t.Error("control: nothing was moved")
	}
}
