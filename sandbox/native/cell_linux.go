package native

import (
	"errors"
	"os"
	"sync"

	"github.com/writ-run/writ/sandbox/cgroup"
	"github.com/writ-run/writ/sandbox/reach"
	"golang.org/x/sys/unix"
)

// A cell is a box that has its view: the root that a writ names, and nothing of the host
// besides. Its launcher is the first process in it, and begins what runs there.
type cell struct {
	conn   *conn
	recipe *recipe
	pid    int           // of its first process
	group  *cgroup.Group // nil: none
}

// end lets go of a cell, and of everything in it.
func (c *cell) end() error {
	err := c.conn.close()
	if c.group != nil {
		go c.group.Close() // which waits for its processes to be gone
	}
	return err
}

// bound sets the limits of the whole box, and begins to count what is met of them.
func (c *cell) bound() error {
	if c.group == nil {
		return nil
	}
	l := c.recipe.root.plan.Limits
	return c.group.Limit(cgroup.Limits{Memory: int64(l.Data), Pids: int64(l.Pids) + launcherPids})
}

// launcherPids are the processes of the launcher's own in a box.
const launcherPids = 3

// A recipe is how cells of one view are made, and runners in them: worked out once, since
// boxes are made much oftener than views change.
type recipe struct {
	factory *factory
	root    *root
	view    []byte // the script that makes the view
	mu      sync.Mutex
	run     [2]*script
	encoded [2][]byte // scripts of runners: in a cell that is used once, and again
}

// newRecipe works one out. show are files that the driver itself puts in.
func (f *factory) newRecipe(p *reach.Plan, show map[string]string) (*recipe, error) {
	kind := &f.any
	if p.Listed {
		kind = &f.only
	}
	if err := f.prepare(kind); err != nil {
		return nil, err
	}
	r := &root{script: &script{}, skeleton: kind, plan: p}
	r.private(p, newRoot)
	if err := r.showAll(show); err != nil {
		return nil, err
	}
	r.finish()
	view, err := r.encode(inPlace, 0, "", "")
	return &recipe{factory: f, root: r, view: view}, err
}

// newCell makes a cell.
func (f *factory) newCell(r *recipe) (*cell, error) {
	conn, pid, err := f.make(r.root.skeleton)
	if err != nil {
		return nil, err
	}
	c := &cell{conn: conn, recipe: r, pid: pid}
	if f.groups != nil {
		if c.group, err = f.groups.New(); err == nil {
			err = errors.Join(c.group.Add(pid), c.bound())
		}
	}
	if err == nil {
		err = conn.pass(r.view, nil)
	}
	if err == nil {
		_, err = conn.expect(saysDone, r.root.script)
	}
	if err != nil {
		c.end()
		return nil, err
	}
	return c, nil
}

// runner is the script of a runner that takes its descriptors along: its streams, its
// socket and, in a cell that is used again, that of the process beside it, in this order.
func (r *recipe) runner(again, terminal, beside bool) (*script, []byte, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	if again {
		n = 1
	}
	if r.run[n] != nil && !terminal {
		return r.run[n], r.encoded[n], nil
	}
	s, flags := &script{}, uint64(0)
	if again {
		flags = fresh
		s.renew(r.root)
		if beside {
			s.beside(passed(4))
		}
		s.init()
	}
	if err := s.become(r.root.plan, r.factory.groups != nil, terminal); err != nil {
		return nil, nil, err
	}
	b, err := s.encode(inChild, flags, "", "")
	if err == nil && !terminal {
		r.run[n], r.encoded[n] = s, b
	}
	return s, b, err
}

// A runner is a process in a cell that has given up everything already, and waits to be
// told what to execute. The other ends of its standard streams are here.
type runner struct {
	cell   *cell
	conn   *conn
	mounts *conn // a process beside it that can still mount; nil: nothing is to be
	ours   [3]*os.File
	again  bool // the cell outlives it
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
	fds := []int{int(theirs[0].Fd()), int(theirs[1].Fd()), int(theirs[2].Fd()), control}
	beside := c.recipe.factory.protects
	if beside {
		mounts, theirs, err := c.beside(again)
		if err != nil {
			r.end()
			return nil, err
		}
		defer unix.Close(theirs)
		r.mounts, fds = mounts, append(fds, theirs)
	}
	s, encoded, err := c.recipe.runner(again, terminal != nil, beside)
	if err == nil {
		err = c.conn.pass(encoded, fds)
	}
	if err == nil {
		_, err = conn.expect(saysReady, s)
	}
	if err != nil {
		r.end()
		if failed, ok := c.why(s); ok { // it told the cell's launcher
			err = failed
		}
		return nil, err
	}
	return r, nil
}

// beside makes the socket of a process that can mount in a runner's view when the runner
// itself cannot any more. In a cell that is used once its launcher begins it right away.
func (c *cell) beside(again bool) (ours *conn, theirs int, err error) {
	ours, theirs, err = newPair()
	if err != nil || again {
		return ours, theirs, err
	}
	var s script
	s.doing(stepSpace)
	s.beside(s.fd(theirs))
	if err = c.conn.send(&s, inPlace, 0, "", ""); err == nil {
		_, err = c.conn.expect(saysDone, &s)
	}
	if err != nil {
		ours.close()
		unix.Close(theirs)
	}
	return ours, theirs, err
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
	if r.mounts != nil {
		r.mounts.close()
	}
	shut(r.ours)
	if !r.again {
		r.cell.end()
	}
}
