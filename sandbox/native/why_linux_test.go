package native

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// begun is a factory that can make boxes.
func begun(t *testing.T) *factory {
	t.Helper()
	f, err := startFactory()
	if errors.Is(err, errNoLauncher) {
		need.Lacking(t, "%v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.end(nil) })
	if err := f.prepare(&f.any); err != nil {
		t.Fatal(err)
	}
	return f
}

// failing is a script that fails.
func failing() *script {
	s := &script{}
	s.doing("lead nowhere")
	s.call(unix.SYS_CHDIR, s.text("/there-is-no-such-thing"))
	return s
}

// beginsBadly begins a box that fails.
func beginsBadly(t *testing.T) message {
	t.Helper()
	s := failing()
	uid, gid := everybody()
	b, err := s.encode(aBox, namespaces, uid, gid)
	if err != nil {
		t.Fatal(err)
	}
	return message{s, b}
}

// simple is a box with nothing of anybody's in it.
func simple() *reach.Plan { return simply(true) }

// cells are the kinds of cells: used again, and with an agent, so that each command has a
// filter of its own.
var cells = [][2]bool{{false, true}, {true, true}, {true, false}}

func simply(agent bool) *reach.Plan {
	return &reach.Plan{Limits: reach.Limits{Address: 1 << 40, Data: 1 << 30, Pids: 1000, Files: 100, Size: 1 << 20}, Agent: agent, Tmp: 1 << 20}
}

// TestUnfinished: no runner waits in a box or in a view that is not whole, and what it lacks
// is told.
func TestUnfinished(t *testing.T) {
	f := begun(t)
	for _, kind := range cells {
		again := kind[0]
		for _, viewFails := range []bool{false, true} {
			by, err := f.newRecipe(simply(kind[1]), nil)
			if err != nil {
				t.Fatal(err)
			}
			usual := f.box
			if viewFails {
				by.view, err = failing().message(inPlace, 0)
			} else {
				f.box = beginsBadly(t)
			}
			if err != nil {
				t.Fatal(err)
			}
			c, err := f.newCell(by, again, nil)
			f.box = usual
			if err == nil {
				_, err = c.ready()
				c.end()
			}
			var failed *failure
			if !errors.As(err, &failed) || failed.Step != "lead nowhere" || failed.Errno != unix.ENOENT {
				t.Errorf("again %t, the view fails %t: %v", again, viewFails, err)
			}
		}
	}
}

// beyondAll is a number above those of all descriptors; those that are free below it are
// used until the test ends.
func beyondAll(t *testing.T) int {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	last := 0
	for _, fd := range open {
		n, _ := strconv.Atoi(fd.Name())
		last = max(last, n)
	}
	for {
		fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		if fd > last {
			unix.Close(fd)
			return fd
		}
		t.Cleanup(func() { unix.Close(fd) })
	}
}

// TestNoDescriptors: however many descriptors are left, a runner is made or an error is
// told soon, and a box that nobody has then is gone.
func TestNoDescriptors(t *testing.T) {
	f := begun(t)
	var usual unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &usual); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Setrlimit(unix.RLIMIT_NOFILE, &usual) })
	made, refused := 0, 0
	for _, kind := range cells {
		again := kind[0]
		by, err := f.newRecipe(simply(kind[1]), nil)
		if err != nil {
			t.Fatal(err)
		}
		for room := range 14 {
			c, err := f.newCell(by, again, nil)
			if err != nil {
				t.Fatal(err)
			}
			next := beyondAll(t)
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(next + room), Max: usual.Max}); err != nil {
				t.Fatal(err)
			}
			told := make(chan error, 1)
			go func() {
				r, err := c.ready()
				if err == nil {
					r.end()
				}
				told <- err
			}()
			select {
			case err = <-told:
			case <-time.After(10 * time.Second):
				t.Fatalf("again %t, %d descriptors: somebody waits still", again, room)
			}
			if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &usual); err != nil {
				t.Fatal(err)
			}
			switch {
			case err == nil:
				made++
			case errors.Is(err, unix.EMFILE):
				refused++
			}
			if again {
				c.end()
			}
			if !ends(c.pid) {
				t.Errorf("again %t, %d descriptors: the box is left (%v)", again, room, err)
			}
		}
	}
	if made == 0 || refused == 0 {
		t.Errorf("%d were made, and %d refused", made, refused)
	}
}

// TestSkeletonAgain: a root that could not be made is made whole the next time.
func TestSkeletonAgain(t *testing.T) {
	f := begun(t)
	s := failing()
	f.only.build(s)
	if err := f.add(&f.only, s); err == nil {
		t.Fatal("it was made")
	}
	if err := f.prepare(&f.only); err != nil {
		t.Fatal(err)
	}
	look := &script{}
	look.doing("look at it")
	look.call(unix.SYS_FACCESSAT, here, look.text(f.only.at+"/usr/share"), num(0))
	if err := f.do(look); err != nil {
		t.Error(err)
	}
}
