package native

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-run/writ/need"
	"golang.org/x/sys/unix"
)

// TestManyAtOnce: boxes are made at the same time, and one that cannot be made tells nobody
// else's.
func TestManyAtOnce(t *testing.T) {
	f := begun(t)
	bad := beginsBadly(t)
	var wg sync.WaitGroup
	for n := range 64 {
		wg.Go(func() {
			m := f.box
			if n%4 == 0 {
				m = bad
			}
			c, pid, err := f.make(m, nil)
			if err == nil {
				defer c.close()
				err = c.settle()
			}
			var failed *failure
			if n%4 == 0 {
				if !errors.As(err, &failed) || failed.Step != "lead nowhere" || failed.Errno != unix.ENOENT {
					t.Errorf("a box that cannot be made: %v", err)
				}
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
			_, rest, _ := strings.Cut(string(stat), ") ")
			if parts := strings.Fields(rest); err != nil || len(parts) < 2 || parts[1] != strconv.Itoa(f.pid) {
				t.Errorf("process %d is no child of the factory, %d: %s (%v)", pid, f.pid, stat, err)
			}
		})
	}
	wg.Wait()
	if err := f.answers(); err != nil {
		t.Error(err)
	}
}

// TestMakersKilled: where those that make boxes were killed since they made one, others do.
func TestMakersKilled(t *testing.T) {
	f := begun(t)
	var wg sync.WaitGroup
	boxes := make(chan int, 32)
	for range cap(boxes) {
		wg.Go(func() {
			c, pid, err := f.make(f.box, nil)
			if err != nil {
				t.Error(err)
				return
			}
			c.close()
			boxes <- pid
		})
	}
	wg.Wait()
	close(boxes)
	for pid := range boxes {
		ends(pid)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", f.pid, f.pid))
	makers := strings.Fields(string(text))
	if err != nil || len(makers) == 0 || len(makers) > mostMakers {
		t.Fatalf("the factory has the children %q (%v)", text, err)
	}
	for _, name := range makers {
		pid, err := strconv.Atoi(name)
		if err != nil {
			t.Fatal(err)
		}
		unix.Kill(pid, unix.SIGKILL)
		ends(pid)
	}
	for range 2 * mostMakers {
		c, _, err := f.make(f.box, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.close()
	}
}

// TestKilledWhileMaking: whoever waits for a box of a factory that is killed hears of it,
// whatever else of it is left; and no box is.
func TestKilledWhileMaking(t *testing.T) {
	for round := range 40 {
		f, err := startFactory()
		if errors.Is(err, errNoLauncher) {
			need.Lacking(t, "%v", err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := f.prepare(&f.any); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		var mu sync.Mutex
		var made []*conn
		var pids []int
		for range 16 {
			wg.Go(func() {
				for {
					c, pid, err := f.make(f.box, nil)
					if err != nil {
						if !errors.Is(err, errFactory) {
							t.Error(err)
						}
						return
					}
					mu.Lock()
					made = append(made, c) // and it is kept: nothing else ends it
					pids = append(pids, pid)
					mu.Unlock()
				}
			})
		}
		time.Sleep(time.Duration(round) * time.Millisecond)
		unix.Kill(f.pid, unix.SIGKILL)
		told := make(chan struct{})
		go func() { wg.Wait(); close(told) }()
		select {
		case <-told:
		case <-time.After(20 * time.Second):
			t.Fatalf("round %d: somebody waits still", round)
		}
		for _, pid := range pids {
			if !ends(pid) {
				t.Errorf("round %d: the box of process %d has outlived its factory", round, pid)
			}
		}
		for _, c := range made {
			c.close()
		}
		f.end(nil)
	}
}

// ends reports whether a process is gone soon.
func ends(pid int) bool {
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil || strings.Contains(string(stat), ") Z ") {
			return true
		}
	}
	return false
}

// TestInheritsNothing: what whoever has started this program left open for it is not held by
// a factory, nor by its boxes.
func TestInheritsNothing(t *testing.T) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], 0); err != nil { // and so each process that is begun has it
		t.Fatal(err)
	}
	read := os.NewFile(uintptr(pipe[0]), "pipe")
	defer read.Close()
	begun(t)
	unix.Close(pipe[1])
	poll := []unix.PollFd{{Fd: int32(pipe[0])}}
	if n, err := unix.Poll(poll, 5000); n != 1 || poll[0].Revents&unix.POLLHUP == 0 {
		t.Errorf("somebody holds it still: %d %v", n, err)
	}
}

// Launchers may have as many descriptors as there may be: whoever may have fewer is refused to
// send one while boxes of the same user have many under way.
func TestDescriptorsOfLaunchers(t *testing.T) {
	f := begun(t)
	var now unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &now); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", f.pid))
	if want := fmt.Sprintf(`(?m)^Max open files +%d +%[1]d `, now.Max); err != nil || !regexp.MustCompile(want).Match(text) {
		t.Errorf("%v\n%s", err, text)
	}
}
