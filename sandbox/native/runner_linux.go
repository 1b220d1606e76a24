package native

import (
	"errors"
	"os"

	"github.com/writ-run/writ/sandbox/calls"
	"golang.org/x/sys/unix"
)

// A runner is a process in a cell that has given up everything already, and waits to be
// told what to execute. The other ends of its standard streams are here. What it says, it
// says as the cell's launcher.
type runner struct {
	cell  *cell
	conn  *conn
	ours  [3]*os.File
	calls *calls.Listener // that its filter leaves to the daemon; nil: none
	again bool            // the cell outlives it
	front bool            // its command is a person's, who waits for the names under protection to be removed
	made  stamps          // what the mounts over protected names in its view were made for
}

// fresh are what each run in a cell that is used again has for itself.
const fresh = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC

// ready begins a runner. In a cell that is used again it gets a process table, mounts,
// temporary directories and a home of its own.
func (c *cell) ready(again bool) (*runner, error) { return c.readyAt(again, nil, false) }

// readyAt is ready for a command at a terminal; nil: it has none. Without one it can have
// the null device for its input.
func (c *cell) readyAt(again bool, terminal *os.File, noInput bool) (*runner, error) {
	conn, control, err := newLine()
	if err != nil {
		if !again {
			c.end()
		}
		return nil, err
	}
	r := &runner{cell: c, conn: conn, again: again, made: c.made}
	theirs := [3]*os.File{terminal, terminal, terminal}
	if terminal == nil {
		if theirs, err = r.pipes(noInput); err != nil {
			unix.Close(control)
			return nil, err
		}
		defer shut(theirs)
	}
	hears := -1
	fds := []int{int(theirs[0].Fd()), int(theirs[1].Fd()), int(theirs[2].Fd()), control}
	s, encoded, err := c.recipe.runner(again, terminal != nil)
	if err == nil && c.recipe.root.plan.Agent {
		var pair [2]int
		if pair, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err == nil {
			defer unix.Close(pair[0])
			defer unix.Close(pair[1])
			fds, hears = append(fds, pair[1]), pair[0]
		}
	}
	if err == nil {
		err = c.conn.pass(encoded, fds)
	}
	unix.Close(control) // or a launcher that is gone would be waited for
	if err == nil {
		_, err = c.conn.expect(saysReady, s) // and what it waits in is whole
	}
	if err == nil && hears >= 0 {
		err = r.hear(hears)
	}
	if err != nil {
		err = c.why(s, err) // it told the cell's launcher
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

// pipes makes the standard streams. It gives the ends that are the runner's.
func (r *runner) pipes(noInput bool) (theirs [3]*os.File, err error) {
	for i := range theirs {
		if i == 0 && noInput {
			if theirs[0], err = os.Open(os.DevNull); err != nil {
				r.end()
				return theirs, err
			}
			continue
		}
		read, write, err := os.Pipe()
		if err != nil {
			shut(theirs)
			r.end()
			return theirs, err
		}
		r.ours[i], theirs[i] = read, write
		if i == 0 {
			r.ours[i], theirs[i] = write, read
		}
	}
	return theirs, nil
}

func shut(files [3]*os.File) {
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
	if !r.again {
		r.cell.end()
	}
}
