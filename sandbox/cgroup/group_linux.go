package cgroup

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"
)

// Group holds the processes of one box. Kill may be called at any time before Close; the
// rest by one goroutine at a time.
type Group struct {
	root  *Root
	dirs  []string // one a hierarchy
	procs []control
	apart bool      // a process may be in it in some hierarchies only
	given time.Time // back; guarded by the root

	memory, swap, killed, bytes control
	tcp                         control // what buffers of connections take, which version 1 counts apart
	pids, refused, count        control
	memoryUnified               bool

	mu     sync.Mutex
	limits *Limits // as they are set; nil: nobody knows
	kills  int     // since the group was made
	since  counts  // when Limit was called
	last   *counts // that Hit found; nil: Limit was called since then
	ended  *counts // when Kill was: killing refuses new processes, which is not the box's doing
}

// counts are what the kernel only ever adds to.
type counts struct{ killed, refused int64 }

// New makes a group without processes. What its limits are, Limit says.
func (r *Root) New() (*Group, error) {
	if g := r.reuse(); g != nil {
		return g, nil
	}
	g := &Group{root: r}
	name := "/" + strconv.FormatUint(r.made.Add(1), 10)
	for _, p := range r.places {
		if err := g.make(p, p.dir+name); err != nil {
			return nil, errors.Join(fmt.Errorf("make a control group: %w", err), g.Close())
		}
	}
	return g, nil
}

// make makes the group in one hierarchy.
func (g *Group) make(p place, dir string) error {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	g.dirs = append(g.dirs, dir)
	g.files(p, dir)
	return nil
}

// files opens the control files of the group in one hierarchy.
func (g *Group) files(p place, dir string) {
	g.procs = append(g.procs, openControl(dir, "cgroup.procs"))
	for _, c := range p.has {
		switch {
		case c == pids:
			g.pids, g.refused, g.count = openControl(dir, "pids.max"), openControl(dir, "pids.events"), openControl(dir, "pids.current")
		case c == memory && p.unified:
			g.memoryUnified = true
			g.memory, g.swap = openControl(dir, "memory.max"), openControl(dir, "memory.swap.max")
			g.killed, g.bytes = openControl(dir, "memory.events"), openControl(dir, "memory.current")
		case c == memory:
			g.memory, g.swap = openControl(dir, "memory.limit_in_bytes"), openControl(dir, "memory.memsw.limit_in_bytes")
			g.killed, g.bytes = openControl(dir, "memory.oom_control"), openControl(dir, "memory.usage_in_bytes")
			g.tcp = openControl(dir, "memory.kmem.tcp.limit_in_bytes")
		}
	}
}

// Add moves a process, with all of its threads, into the group. Children that it starts
// from then on are in it too.
func (g *Group) Add(pid int) error {
	for _, f := range g.procs {
		if err := f.put(strconv.Itoa(pid)); err != nil {
			g.apart = true
			return fmt.Errorf("put process %d into its control group: %w", pid, err)
		}
	}
	if len(g.procs) == 0 {
		return errors.New("put a process into its control group: the group is closed")
	}
	return nil
}

// Hit names the limit that was met since Limit was called last: memory when the kernel
// killed a process of the group for it, pids when it refused to start one, else nothing.
func (g *Group) Hit() (string, error) {
	now, err := g.counts()
	if err != nil {
		return "", err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended != nil {
		now = *g.ended
	}
	g.last = &now
	switch {
	case now.killed > g.since.killed:
		return memory, nil
	case now.refused > g.since.refused:
		return pids, nil
	}
	return "", nil
}

// Again is Limit for another run with the same limits, where nothing has run in the group
// since Hit was called. It reports whether there was such a run, and its limits hold.
func (g *Group) Again() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.limits == nil || g.last == nil || g.ended != nil {
		return false
	}
	g.since, g.last = *g.last, nil
	return true
}

func (g *Group) counts() (counts, error) {
	killed, err1 := g.killed.number("oom_kill")
	refused, err2 := g.refused.number("max")
	return counts{killed, refused}, errors.Join(err1, err2)
}

// Kill ends every process of the group, and returns when none is left or after a few
// seconds with an error. It may leave the group so that nothing can be started in it until
// Limit is called.
func (g *Group) Kill() error {
	now, err := g.counts()
	g.mu.Lock()
	if g.ended == nil && err == nil {
		g.ended = &now
	}
	g.limits, g.kills = nil, g.kills+1
	g.mu.Unlock()
	return errors.Join(err, killAll(g.dirs))
}

// Close kills what is left in the group and removes it.
func (g *Group) Close() error {
	err := killAll(g.dirs)
	for i := range g.procs {
		g.procs[i].close()
	}
	for _, f := range []*control{&g.memory, &g.swap, &g.killed, &g.bytes, &g.tcp, &g.pids, &g.refused, &g.count} {
		f.close()
	}
	for _, dir := range g.dirs {
		err = errors.Join(err, remove(dir))
	}
	g.dirs, g.procs = nil, nil
	return err
}
