package native

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/writ-run/writ/sandbox/mounted"
	"github.com/writ-run/writ/sandbox/reach"
)

// A life is how long a factory serves. It has the host's mounts as they were when it was
// begun; when others are asked for, another factory is begun, and this one goes on until the
// last of its cells has ended.
type life struct {
	ending sync.Once
	ended  atomic.Bool // and nothing of it is left

	mu      sync.Mutex
	cells   int
	retired bool
	doubt   []string       // where something was mounted or unmounted while it was begun
	last    *mounted.Table // that was looked at,
	changed []string       // and where that is another one
}

// errRetired is of a factory that begins nothing any more.
var errRetired = fmt.Errorf("%w: it has the mounts of an earlier time", errFactory)

// begin notes a cell.
func (f *factory) begin() error {
	f.life.mu.Lock()
	defer f.life.mu.Unlock()
	if f.life.retired {
		return errRetired
	}
	f.life.cells++
	return nil
}

// over notes that one has ended.
func (f *factory) over() {
	f.life.mu.Lock()
	defer f.life.mu.Unlock()
	f.life.cells--
	f.rest()
}

// retire has a factory begin nothing any more.
func (f *factory) retire() {
	f.life.mu.Lock()
	defer f.life.mu.Unlock()
	f.life.retired = true
	f.rest()
}

// rest ends one that is not needed any more. It is called with the lock held.
func (f *factory) rest() {
	if f.life.retired && f.life.cells == 0 {
		go f.end(nil)
	}
}

// stale reports whether something was mounted or unmounted since the factory was begun, of
// which a box with these paths would know.
func (f *factory) stale(now *mounted.Table, paths []string) bool {
	f.life.mu.Lock()
	defer f.life.mu.Unlock()
	touched := func(place string) bool {
		return slices.ContainsFunc(paths, func(path string) bool { return mounted.Touches(place, path) })
	}
	if slices.ContainsFunc(f.life.doubt, touched) {
		return true
	}
	if now == f.mounts {
		return false
	}
	if f.life.last != now {
		f.life.last, f.life.changed = now, now.Since(f.mounts)
	}
	return slices.ContainsFunc(f.life.changed, touched)
}

// everybodys are what every box shows of the host.
var everybodys = append(slices.Clip(reach.SystemDirs), "/etc")

// shownPaths are what a box shows of it.
func shownPaths(p *reach.Plan) []string {
	return slices.Concat(everybodys, p.Read, p.Write, p.Hide, p.Programs)
}
