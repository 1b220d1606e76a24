package sandbox

import (
	"slices"
	"time"

	"github.com/writ-run/writ"
)

// Bounds of what is remembered.
const (
	lastRuns  = 20       // of each box
	lastBoxes = 64       // that have ended
	lastSaid  = 16 << 10 // bytes of what the sidecar said of each run
)

// Contained is what a box of a driver of containers is besides.
type Contained interface {
	// Container is the one that its command runs in.
	Container() Container
}

// Shown is everything that is known of a box, also of one that has ended not long ago.
type Shown struct {
	Live
	Ended   time.Time        // zero: it is there
	Confine writ.Confinement // what the last call in it could reach
	Dir     string           // and where it began
	Runs    []Run            // the last ones, the oldest first, without what they wrote
}

// Show is what is known of a box; false: nothing.
func (b *Boxes) Show(id string) (Shown, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e := b.find(id); e != nil {
		return e.shown(), true
	}
	for _, s := range b.gone {
		if s.ID == id {
			return s, true
		}
	}
	return Shown{}, false
}

func (e *entry) shown() Shown {
	return Shown{Live: e.Live, Confine: e.confine, Dir: e.dir, Runs: slices.Clone(e.runs)}
}

// forget takes a box that is over off the list, and remembers what was in it. The caller
// holds the lock.
func (b *Boxes) forget(e *entry) {
	if _, there := b.live[e]; !there {
		return
	}
	delete(b.live, e)
	s := e.shown()
	s.Ended, s.Call, s.Tool = time.Now(), "", ""
	if e.noted {
		b.noted(s)
	}
	b.gone = append(b.gone, s)
	if len(b.gone) > lastBoxes {
		b.gone = slices.Delete(b.gone, 0, 1)
	}
}

// remember keeps a run among the last ones of its box. The caller holds the lock.
func (e *entry) remember(r Run) {
	r.Output = nil
	if c := r.Exit.Container; c != nil {
		short := *c
		short.Lines = c.Lines.last(lastSaid)
		r.Exit.Container = &short
	}
	e.runs = append(e.runs, r)
	if len(e.runs) > lastRuns {
		e.runs = slices.Delete(e.runs, 0, 1)
	}
}

// last leaves out the first objects where there are too many bytes of them.
func (l Lines) last(most int) Lines {
	from := len(l.Parsed)
	for from > 0 && len(l.Parsed[from-1]) <= most {
		from--
		most -= len(l.Parsed[from])
	}
	return Lines{Parsed: slices.Clone(l.Parsed[from:]), Malformed: l.Malformed, Left: l.Left + from}
}
