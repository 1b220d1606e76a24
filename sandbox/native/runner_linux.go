package native

import (
	"errors"
	"os"

	"github.com/writ-run/writ/sandbox/calls"
	"golang.org/x/sys/unix"
)

// A runner is a process in a cell that has given up everything already, and waits to be
// told what to execute. What comes out of it comes out here; nothing goes in, unless it gets
// an input with its command. What it says, it says as the cell's launcher.
type runner struct {
	cell  *cell
	conn  *conn
	ours  [2]*os.File     // its output and its errors; nil: it has a terminal
	calls *calls.Listener // that its filter leaves to the daemon; nil: none
	front bool            // its command is a person's, who waits for the names under protection to be removed
	made  stamps          // what the mounts over protected names in its view were made for
}

// fresh are what each run in a cell that is used again has for itself. What outlives its
// processes besides, queues and memory of System V, the cell's launcher removes.
const fresh = unix.CLONE_NEWPID | unix.CLONE_NEWNS

// ready begins a runner. In a cell that is used again it gets a process table, mounts,
// temporary directories and a home of its own.
func (c *cell) ready() (*runner, error) { return c.readyAt(nil) }

// readyAt is ready for a command at a terminal; nil: it has none.
func (c *cell) readyAt(terminal *os.File) (*runner, error) {
	conn, control, err := newLine()
	if err != nil {
		if !c.again {
			c.end()
		}
		return nil, err
	}
	r := &runner{cell: c, conn: conn, made: c.made}
	var theirs [2]int
	if terminal != nil {
		theirs = [2]int{int(terminal.Fd()), int(terminal.Fd())}
	} else {
		for i := range theirs {
			if r.ours[i], theirs[i], err = pipe(); err != nil {
				unix.Close(control)
				r.end()
				return nil, err
			}
			defer unix.Close(theirs[i])
		}
	}
	hears := -1
	fds := []int{theirs[0], theirs[1], control}
	m, err := c.recipe.runner(c.again, terminal != nil)
	if err == nil && c.recipe.root.plan.Agent {
		var pair [2]int
		if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
			defer unix.Close(pair[0])
			defer unix.Close(pair[1])
			fds, hears = append(fds, pair[1]), pair[0]
		}
	}
	if err == nil {
		err = c.conn.pass(m.encoded, fds)
	}
	unix.Close(control) // or a launcher that is gone would be waited for
	if err == nil {
		_, err = c.conn.expect(saysReady, m.script) // and what it waits in is whole
	}
	if err == nil && hears >= 0 {
		err = r.hear(hears)
	}
	if err != nil {
		err = c.why(m.script, err) // it told the cell's launcher
		r.end()
		return nil, err
	}
	return r, nil
}

// hear takes what hears of the calls that its filter leaves to the daemon.
func (r *runner) hear(from int) error {
	fds, err := received(from, 1)
	if err == nil {
		r.calls, err = calls.NewListener(fds[0])
	}
	return err
}

// why is the first failure that the cell's launcher has told of, of what it was asked before
// or of a script that did not come to its end; or err, where there is none. The launcher is
// asked nothing any more, so that it ends, and is not waited for when it has nothing to say.
func (c *cell) why(s *script, err error) error {
	var failed *failure
	if errors.As(err, &failed) || c.conn.hangUp() != nil {
		return err
	}
	for {
		r, last := c.conn.next()
		switch {
		case errors.As(last, &failed):
			return last
		case last != nil:
			return err
		case r.What == saysFailed:
			return s.failure(r)
		}
	}
}

// pipe is what comes out of a box, and the end of it that goes in. Go's own would watch both
// ends, and takes four times as long.
func pipe() (ours *os.File, theirs int, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, -1, err
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, -1, err
	}
	return os.NewFile(uintptr(fds[0]), "output"), fds[1], nil
}

func shut(files [2]*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// end lets a runner go that was not told anything.
func (r *runner) end() {
	r.conn.close()
	shut(r.ours)
	if r.calls != nil {
		r.calls.Close()
	}
	if !r.cell.again {
		r.cell.end()
	}
}
