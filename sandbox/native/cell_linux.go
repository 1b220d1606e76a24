package native

import (
	"errors"
	"sync"
	"sync/atomic"

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
	again  bool          // commands run in it one after the other
	group  *cgroup.Group // nil: none
	ending sync.Once
	made   stamps // what its mounts over protected names were made for
}

// end lets go of a cell, and of everything in it.
func (c *cell) end() error {
	var err error
	c.ending.Do(func() {
		err = c.conn.close()
		if c.group != nil {
			c.group.GiveBack()
		}
		c.recipe.factory.over()
	})
	return err
}

// gone waits, for a moment, until a cell that was let go is gone with its mounts. Names that
// something is mounted over take the kernel a hundred times longer to remove.
func (c *cell) gone() {
	fd, err := unix.PidfdOpen(c.pid, 0)
	if err != nil {
		return // it is gone
	}
	defer unix.Close(fd)
	unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 100) // else they are removed slowly
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
	view    message // makes the view, where the host is seen
	own     message // makes what a cell that is used again has for itself
	bare    shared  // the view, made already,
	whole   shared  // and with mounts over protected names
	mu      sync.Mutex
	run     [2]*message // scripts of runners: in a cell that is used once, and again
	mounts  atomic.Pointer[mounting]
}

// newRecipe works one out. show are files that the driver itself puts in.
func (f *factory) newRecipe(p *reach.Plan, show map[string]string) (*recipe, error) {
	kind := f.kind(p.Listed)
	if err := f.prepare(kind); err != nil {
		return nil, err
	}
	r := &root{script: &script{}, skeleton: kind, plan: p}
	r.seeProc()
	r.attach(r.copyOf(kind.at), newRoot)
	if err := r.showAll(show); err != nil {
		return nil, err
	}
	r.finish()
	own := &script{}
	own.endow() // the rest is fresh for each command
	if locks(p) {
		if err := own.lock(p); err != nil {
			return nil, err
		}
	}
	by := &recipe{factory: f, root: r}
	var err1, err2 error
	alone := r.copy()
	alone.call(unix.SYS_CLOSE, theProc)
	by.view, err1 = alone.message(inPlace, 0)
	by.own, err2 = own.message(inPlace, 0)
	return by, errors.Join(err1, err2)
}

// newCell makes a cell, for one command or for more: in a view that was made before, or with
// one of its own (nil).
func (f *factory) newCell(r *recipe, again bool, in *template) (*cell, error) {
	if err := f.begin(); err != nil {
		return nil, err
	}
	conn, pid, err := f.make(f.box, in)
	if err != nil {
		f.over()
		return nil, err
	}
	c := &cell{conn: conn, recipe: r, pid: pid, again: again}
	if in != nil {
		c.made = in.made
	}
	if f.groups != nil {
		if c.group, err = f.groups.New(); err == nil {
			err = errors.Join(c.group.Add(pid), c.bound())
		}
	}
	if err == nil && in == nil {
		err = c.soon(r.view)
	}
	if err == nil && again {
		err = c.soon(r.own) // else its one runner does
	}
	if err != nil {
		err = c.why(r.own.script, err) // it may have ended before
		c.end()
		return nil, err
	}
	return c, nil
}

// soon has the cell's launcher do what a message says. How it went is heard before anything
// else is.
func (c *cell) soon(m message) error {
	if err := c.conn.pass(m.encoded, nil); err != nil {
		return err
	}
	c.conn.later(saysDone, m.script)
	return nil
}

// runner is the script of a runner that takes its descriptors along: its streams and its
// socket, in this order.
func (r *recipe) runner(again, terminal bool) (message, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, flags := &r.run[0], uint64(0)
	s := &script{}
	if again {
		known, flags = &r.run[1], fresh
	}
	if *known != nil && !terminal {
		return **known, nil
	}
	if again {
		s.renew(r.root)
		if !r.root.plan.Root {
			s.terminals() // the box's own belong to the user of its commands, who could leave something with them
		}
		s.init()
	} else {
		s.settle(r.root)
	}
	if err := s.become(r.root.plan, r.factory.groups != nil, terminal, again && locks(r.root.plan)); err != nil {
		return message{}, err
	}
	m, err := s.message(inChild, flags)
	if err == nil && !terminal {
		*known = &m
	}
	return m, err
}
