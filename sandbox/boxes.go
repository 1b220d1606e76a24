package sandbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ"
)

// Strategy says whose calls share a box, one after the other.
type Strategy string

const (
	PerAgent Strategy = "per-agent"
	PerTask  Strategy = "per-task"
	PerCall  Strategy = "per-call"
)

// Strategies are all of them, the default first.
var Strategies = []Strategy{PerAgent, PerTask, PerCall}

// Lifecycle says how long boxes are kept. The zero value keeps none.
type Lifecycle struct {
	Strategy Strategy
	Grace    time.Duration // after the owner is done
	Idle     time.Duration // without a call; zero: none
}

// most is how many boxes are kept at once; calls beyond have one of their own.
const most = 64

// Boxes starts commands with a set of drivers, keeps boxes between the calls of their
// owners where a driver can, and knows what runs. It is safe for concurrent use.
type Boxes struct {
	drivers Set

	mu     sync.Mutex
	keep   Lifecycle
	live   map[*entry]struct{} // kept ones, and those in use
	turns  map[key]*turn
	closed bool
}

// turn counts, for one key, the boxes that are being readied and the callers who wait
// for one of them: that is sooner done than making another.
type turn struct {
	renewing, waiting int
	changed           chan struct{} // closed and replaced when one is ready, or will not be
}

// NewBoxes readies boxes of these drivers.
func NewBoxes(drivers Set, keep Lifecycle) *Boxes {
	return &Boxes{drivers: drivers, keep: keep, live: map[*entry]struct{}{}, turns: map[key]*turn{}}
}

// Use changes how long boxes are kept; those of another strategy end when they can.
func (b *Boxes) Use(keep Lifecycle) {
	b.mu.Lock()
	changed := b.keep != keep
	b.keep = keep
	b.mu.Unlock()
	if changed {
		b.end(func(*entry) bool { return true }, 0)
	}
}

// Drivers are those it starts boxes with.
func (b *Boxes) Drivers() Set { return b.drivers }

// key says which calls may have a box one after the other. The zero key is nobody's.
type key struct{ driver, agent, person, session, task, alike string }

// entry is one box.
type entry struct {
	Live
	key  key
	kept Kept // nil: it is gone after its call

	doomed bool               // it ends instead of being kept on
	kill   context.CancelFunc // of the call in it
	timer  *time.Timer        // while it is idle
}

// Live is a box as it is listed.
type Live struct {
	ID      string    `json:"id"`
	Driver  string    `json:"driver"`
	Agent   string    `json:"agent"`
	Session string    `json:"session"`
	Task    string    `json:"task"`
	Person  string    `json:"person,omitempty"`
	Call    string    `json:"call,omitempty" jsonschema:"what runs in it now; empty: it is idle"`
	Tool    string    `json:"tool,omitempty"`
	Kept    bool      `json:"kept" jsonschema:"it is used again for calls that reach the same"`
	Since   time.Time `json:"since"`
	Used    time.Time `json:"used" jsonschema:"when the last call began in it"`
	Calls   int       `json:"calls"`
}

// Start starts the command with the driver that Set.Start would choose: in a box kept
// from a call before, where there is one; and says which driver it is.
func (b *Boxes) Start(ctx context.Context, w writ.Writ, spec Spec) (Box, string, error) {
	return b.drivers.start(ctx, w, func(d Driver) (Box, error) { return b.startOn(ctx, d, w, spec) })
}

func (b *Boxes) startOn(ctx context.Context, d Driver, w writ.Writ, spec Spec) (Box, error) {
	keeper, ok := d.(Keeper)
	if !ok {
		box, err := d.Start(ctx, w, spec)
		return b.tracked(d, w, nil, box, err)
	}
	p, err := keeper.Plan(ctx, w, spec)
	if err != nil {
		return nil, err
	}
	k := b.keyOf(d, w, spec, p)
	for k != (key{}) {
		e := b.idle(ctx, k)
		fresh := e == nil
		if fresh {
			if !b.room() {
				break
			}
			kept, err := p.Keep(ctx)
			if err != nil {
				return nil, err
			}
			e = &entry{key: k, kept: kept}
		}
		box, err := p.StartIn(ctx, e.kept)
		if err == nil {
			return b.tracked(d, w, e, box, nil)
		}
		b.drop(e)
		if fresh || !errors.Is(err, ErrUnfit) {
			return nil, err
		}
	}
	box, err := p.Start(ctx)
	return b.tracked(d, w, nil, box, err)
}

// keyOf is whose box a call may have; none where it has to have one of its own: what a
// person approved, what goes on after its call, and calls of nobody.
func (b *Boxes) keyOf(d Driver, w writ.Writ, spec Spec, p Plan) key {
	b.mu.Lock()
	s := b.keep.Strategy
	b.mu.Unlock()
	c := w.Call()
	k := key{d.Name(), c.Agent, c.Person, c.Session, "", p.Alike()}
	switch {
	case spec.Alone, w.Approval().ID != "", w.Decision().Class == writ.ClassWrite, c.Agent == "", c.Session == "":
		return key{}
	case s == PerAgent:
		return k
	case s == PerTask && c.Task != "":
		k.task = c.Task
		return k
	}
	return key{}
}

// idle takes a box that nobody uses, and waits for one that is being readied where
// nobody else does; nil: another one has to be made.
func (b *Boxes) idle(ctx context.Context, k key) *entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		for e := range b.live {
			if e.key == k && e.timer != nil && !e.doomed {
				e.timer.Stop()
				e.timer = nil
				return e
			}
		}
		t := b.turns[k]
		if t == nil || t.renewing <= t.waiting || ctx.Err() != nil {
			return nil
		}
		t.waiting++
		changed := t.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		b.mu.Lock()
		t.waiting--
	}
}

// renewing notes that a box of a key is being readied (1), or not any more (-1).
func (b *Boxes) renewing(k key, by int) {
	t := b.turns[k]
	if t == nil {
		t = &turn{changed: make(chan struct{})}
		b.turns[k] = t
	}
	t.renewing += by
	if by < 0 {
		close(t.changed)
		t.changed = make(chan struct{})
	}
	if t.renewing == 0 && t.waiting == 0 {
		delete(b.turns, k)
	}
}

// room reports whether another box may be kept; the one idle the longest makes way.
func (b *Boxes) room() bool {
	b.mu.Lock()
	n, oldest := 0, (*entry)(nil)
	for e := range b.live {
		if e.kept == nil {
			continue
		}
		n++
		if e.timer != nil && (oldest == nil || e.Used.Before(oldest.Used)) {
			oldest = e
		}
	}
	if n >= most && oldest != nil {
		oldest.timer.Stop()
		oldest.timer = nil
		delete(b.live, oldest)
	}
	b.mu.Unlock()
	if n >= most && oldest != nil {
		oldest.kept.Close()
		return true
	}
	return n < most
}

// tracked notes what runs, until it has ended.
func (b *Boxes) tracked(d Driver, w writ.Writ, e *entry, box Box, err error) (Box, error) {
	if err != nil {
		return nil, err
	}
	if e == nil {
		e = &entry{}
	}
	now, c := time.Now(), w.Call()
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.ID == "" {
		e.Live = Live{ID: "box_" + strings.ToLower(rand.Text()[:12]), Since: now, Kept: e.kept != nil}
	}
	e.Driver, e.Agent, e.Session, e.Task, e.Person = d.Name(), c.Agent, c.Session, c.Task, c.Person
	e.Call, e.Tool, e.Used = c.ID, c.Tool, now
	e.Calls++
	e.doomed = e.doomed || b.closed
	b.live[e] = struct{}{}
	stop, kill := context.WithCancel(context.Background())
	e.kill = kill
	return &tracked{Box: box, boxes: b, entry: e, killed: stop}, nil
}

// tracked is a box whose end is noted.
type tracked struct {
	Box
	boxes  *Boxes
	entry  *entry
	killed context.Context
}

// Wait implements Box.
func (t *tracked) Wait(ctx context.Context) (Exit, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(t.killed, cancel)()
	exit, err := t.Box.Wait(ctx)
	if exit.Limit == "cancelled" && t.killed.Err() != nil {
		exit.Limit = "killed by an operator"
	}
	t.boxes.release(t.entry)
	return exit, err
}

// release keeps a box for the next call, or lets it go. Readying it takes a moment, for
// which nobody waits.
func (b *Boxes) release(e *entry) {
	b.mu.Lock()
	e.kill()
	e.Call, e.Tool = "", ""
	over := e.kept == nil || e.doomed || b.closed
	if e.kept == nil {
		delete(b.live, e)
	}
	if !over {
		b.renewing(e.key, 1)
	}
	b.mu.Unlock()
	if e.kept == nil {
		return
	}
	if over {
		b.drop(e)
		return
	}
	go func() {
		err := e.kept.Renew(context.Background())
		b.mu.Lock()
		over := err != nil || e.doomed || b.closed
		if !over {
			idle := b.keep.Idle
			if idle == 0 {
				idle = 1 << 62
			}
			e.timer = time.AfterFunc(idle, func() { b.end(func(x *entry) bool { return x == e }, 0) })
		}
		b.renewing(e.key, -1)
		b.mu.Unlock()
		if over {
			b.drop(e)
		}
	}()
}

func (b *Boxes) drop(e *entry) {
	b.mu.Lock()
	delete(b.live, e)
	b.mu.Unlock()
	e.kept.Close()
}

// end ends the kept boxes that are meant: those that are idle after a while, if nobody
// has taken them by then; and those in use when their call is over.
func (b *Boxes) end(meant func(*entry) bool, after time.Duration) {
	b.mu.Lock()
	var now []*entry
	for e := range b.live {
		if e.kept == nil || !meant(e) {
			continue
		}
		switch {
		case e.timer == nil:
			e.doomed = true
		case after > 0:
			e.timer.Reset(after)
		default:
			e.timer.Stop()
			delete(b.live, e)
			now = append(now, e)
		}
	}
	b.mu.Unlock()
	var wg sync.WaitGroup
	for _, e := range now {
		wg.Go(func() { e.kept.Close() })
	}
	wg.Wait()
}

// EndTask lets go of what a task had; what an agent has goes on.
func (b *Boxes) EndTask(task string) {
	b.end(func(e *entry) bool { return e.key.task != "" && e.key.task == task }, 0)
}

// EndSession lets go of what a session had, after the grace.
func (b *Boxes) EndSession(session string) {
	b.mu.Lock()
	grace := b.keep.Grace
	b.mu.Unlock()
	b.end(func(e *entry) bool { return e.key.session == session }, grace)
}

// EndAgent lets go of what an agent had, at once; "*": of everything.
func (b *Boxes) EndAgent(agent string) {
	b.end(func(e *entry) bool { return agent == "*" || e.key.agent == agent }, 0)
}

// List is what there is now, the oldest first.
func (b *Boxes) List() []Live {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := []Live{}
	for e := range b.live {
		out = append(out, e.Live)
	}
	slices.SortFunc(out, func(x, y Live) int { return cmp.Or(x.Since.Compare(y.Since), strings.Compare(x.ID, y.ID)) })
	return out
}

// Kill ends a box and what runs in it. It reports false when there is no such box.
func (b *Boxes) Kill(id string) bool {
	b.mu.Lock()
	var found *entry
	for e := range b.live {
		if e.ID == id {
			found = e
		}
	}
	if found != nil && found.Call != "" {
		found.doomed = true
		found.kill()
	}
	b.mu.Unlock()
	if found != nil {
		b.end(func(e *entry) bool { return e == found }, 0)
	}
	return found != nil
}

// Close ends every box that is kept, all at once. Those in use end with their calls.
func (b *Boxes) Close() error {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.EndAgent("*")
	return nil
}
