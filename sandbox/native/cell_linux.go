package native

import (
	"os"

	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// A cell is a box that has its view: the root that a writ names, and nothing of the host
// besides. Its launcher is the first process in it, and begins what runs there.
type cell struct {
	conn *conn
	root *root
}

// newCell makes one for a plan. show are files that the driver itself puts into it.
func (f *factory) newCell(p *reach.Plan, show map[string]string) (*cell, error) {
	kind := &f.any
	if p.Listed {
		kind = &f.only
	}
	c, err := f.make(kind)
	if err != nil {
		return nil, err
	}
	r := &root{script: &script{}, skeleton: kind, plan: p}
	r.private(p, newRoot)
	if err = r.showAll(show); err == nil {
		r.finish()
		if err = c.send(r.script, inPlace, 0, "", ""); err == nil {
			_, err = c.expect(saysDone, r.script)
		}
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return &cell{c, r}, nil
}

// A runner is a process in a cell that has given up everything already, and waits to be
// told what to execute. The other ends of its standard streams are here.
type runner struct {
	cell  *cell
	conn  *conn
	ours  [3]*os.File
	again bool // the cell outlives it
}

// fresh are what each run in a cell that is used again has for itself.
const fresh = unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC

// ready begins a runner. In a cell that is used again it gets a process table, mounts,
// temporary directories and a home of its own.
func (c *cell) ready(again bool) (*runner, error) { return c.readyAt(again, nil) }

// readyAt is ready for a command at a terminal; nil: it has none.
func (c *cell) readyAt(again bool, terminal *os.File) (*runner, error) {
	conn, control, err := newPair()
	if err != nil {
		return nil, err
	}
	defer unix.Close(control)
	r := &runner{cell: c, conn: conn, again: again}
	theirs := [3]*os.File{terminal, terminal, terminal}
	if terminal == nil {
		if theirs, err = r.pipes(); err != nil {
			return nil, err
		}
		defer shut(theirs)
	}
	var s script
	flags := uint64(0)
	if again {
		flags = fresh
		s.renew(c.root)
		s.init()
	}
	if err = s.become(c.root.plan, theirs, terminal != nil, control); err == nil {
		err = c.conn.send(&s, inChild, flags, "", "")
	}
	if err == nil {
		_, err = conn.expect(saysReady, &s)
	}
	if err != nil {
		r.end()
		if failed, ok := c.why(&s); ok { // it told the cell's launcher
			err = failed
		}
		return nil, err
	}
	return r, nil
}

// why is the failure that a script which did not come to its end left behind.
func (c *cell) why(s *script) (error, bool) {
	r, err := c.conn.next()
	return s.failure(r), err == nil && r.What == saysFailed
}

// pipes makes the standard streams. It gives the ends that are the runner's.
func (r *runner) pipes() (theirs [3]*os.File, err error) {
	for i := range theirs {
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
	if !r.again {
		r.cell.conn.close()
	}
}
