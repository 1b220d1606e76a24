package cgroup

import "time"

const (
	maxBack  = 64               // groups that wait to be used again
	backTime = 30 * time.Second // and how long
	dying    = time.Second      // how long processes may take to end by themselves
	leftover = 8 << 20          // bytes, such as of files that were read, that may still count
)

// GiveBack lets go of a group whose processes have ended or are about to: when none is
// left, New gives it out again, since making one and removing it takes the kernel longer
// than most commands do. What does not end soon is killed.
func (g *Group) GiveBack() {
	r := g.root
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		go g.Close()
		return
	}
	if len(r.back) >= maxBack {
		r.leaves.Go(func() { g.Close() })
		return
	}
	g.given = time.Now()
	r.back = append(r.back, g)
	if len(r.back) == 1 {
		time.AfterFunc(dying, r.tidy)
	}
}

// reuse gives a group that was given back and is empty; nil: there is none.
func (r *Root) reuse() *Group {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, g := range r.back {
		if g.empty() {
			r.back = append(r.back[:i], r.back[i+1:]...)
			return g
		}
		if i == 4 {
			break // those given back later are the less likely
		}
	}
	return nil
}

// empty reports whether nothing is in the group, and next to nothing counts for it.
func (g *Group) empty() bool {
	if n, err := g.left(); err != nil || n > 0 {
		return false
	}
	bytes, err := g.bytes.number("")
	return err == nil && bytes <= leftover
}

// left is how many processes, or threads, are in the group. A file with their numbers that
// is held open says in version 1 what it said for whoever asked within the last second.
func (g *Group) left() (int64, error) {
	if g.count.there() && !g.apart {
		return g.count.number("")
	}
	all := int64(0)
	for _, dir := range g.dirs {
		here, err := processes(dir)
		if err != nil {
			return 0, err
		}
		all += int64(len(here))
	}
	return all, nil
}

// tidy removes groups that nobody came for, with what does not end in them.
func (r *Root) tidy() {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := r.back[:0]
	for _, g := range r.back {
		age := time.Since(g.given)
		if age < dying || age < backTime && g.empty() {
			kept = append(kept, g)
			continue
		}
		r.leaves.Go(func() { g.Close() })
	}
	clear(r.back[len(kept):])
	if r.back = kept; len(kept) > 0 {
		time.AfterFunc(dying, r.tidy)
	}
}
