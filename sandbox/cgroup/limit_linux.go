package cgroup

import (
	"errors"
	"fmt"
	"strconv"
)

// Limit sets the limits of the group, and starts counting anew for Hit. It may
// be called again for another run. A limit that cannot be enforced here is an error, and
// so is one that the group is over already.
func (g *Group) Limit(l Limits) error {
	if l.Memory < 0 || l.Pids < 0 {
		return fmt.Errorf("limits %+v: use positive numbers, or zero for no limit", l)
	}
	for _, x := range []struct {
		name string
		file control
		want bool
	}{{memory, g.memory, l.Memory > 0}, {pids, g.pids, l.Pids > 0}} {
		if x.want && !x.file.there() {
			return fmt.Errorf("the limit of %s cannot be enforced here; leave it out, or make its controller available", x.name)
		}
	}
	g.mu.Lock()
	same := g.limits != nil && *g.limits == l
	kills := g.kills // each may leave other limits
	g.limits = nil
	g.mu.Unlock()
	if !same {
		if err := errors.Join(g.limitMemory(l.Memory), g.limitPids(l.Pids)); err != nil {
			return fmt.Errorf("set limits: %w", err)
		}
	}
	now, err := g.counts()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.since, g.ended, g.last = now, nil, nil
	if g.kills == kills {
		g.limits = &l
	}
	return err
}

func (g *Group) limitPids(most int64) error {
	switch {
	case !g.pids.there():
		return nil
	case most == 0:
		return g.pids.put("max")
	}
	return g.pids.put(strconv.FormatInt(most, 10))
}

func (g *Group) limitMemory(bytes int64) error {
	switch {
	case !g.memory.there():
		return nil
	case g.memoryUnified:
		return g.limitUnified(bytes)
	}
	text := "-1"
	if bytes > 0 {
		text = strconv.FormatInt(bytes, 10)
	}
	if g.tcp.there() {
		if err := g.tcp.put(text); err != nil {
			return err
		}
	}
	if !g.swap.there() {
		return g.memory.put(text)
	}
	// Memory alone can never be allowed more than memory and swap together, so which of
	// the two goes first depends on whether this is more than before.
	if now, err := g.swap.number(""); err != nil {
		return err
	} else if bytes == 0 || bytes > now {
		return errors.Join(g.swap.put(text), g.memory.put(text))
	}
	return errors.Join(g.memory.put(text), g.swap.put(text))
}

// limitUnified: version 2 counts swap apart, so a group with a limit gets none.
func (g *Group) limitUnified(bytes int64) error {
	most, swap := "max", "max"
	if bytes > 0 {
		most, swap = strconv.FormatInt(bytes, 10), "0"
	}
	if g.swap.there() {
		if err := g.swap.put(swap); err != nil {
			return err
		}
	}
	return g.memory.put(most)
}
