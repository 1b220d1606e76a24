package sandbox

import (
	"context"
	"crypto/rand"
	"errors"
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
	report Report
	noted  func(Shown)
	live   map[*entry]struct{} // kept ones, and those in use
	turns  map[key]*turn
	gone   []Shown // the last that have ended
	closed bool
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

// Note has somebody told of each box that is kept, or is a container, when it begins and
// when it ends. It must not wait, and is set before the first box.
func (b *Boxes) Note(noted func(Shown)) { b.noted = noted }

// Drivers are those it starts boxes with.
func (b *Boxes) Drivers() Set { return b.drivers }

// key says which calls may have a box one after the other. The zero key is nobody's.
type key struct{ driver, agent, person, session, task, alike string }

// entry is one box.
type entry struct {
	Live
	key  key
	kept Kept // nil: it is gone after its call

	confine writ.Confinement // of the last call in it
	dir     string           // and where that began
	runs    []Run            // the last ones
	noted   bool             // somebody was told that it began

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

	Container string `json:"container,omitempty" jsonschema:"the engine's ID, where it is a container"`
	Sidecar   string `json:"sidecar,omitempty" jsonschema:"of the container that is its way out"`
	Image     string `json:"image,omitempty"`
}

// Start starts the command with the driver that Set.Start would choose: in a box kept
// from a call before, where there is one; and says which driver it is.
func (b *Boxes) Start(ctx context.Context, w writ.Writ, spec Spec) (Box, string, error) {
	told := b.telling(w.Call(), &spec)
	return b.drivers.start(ctx, w, func(d Driver) (Box, error) { return b.startOn(ctx, d, w, spec, told) })
}

// mostMade is how many boxes are made for one call, where names come to lead elsewhere
// meanwhile, after a moment that grows.
const mostMade = 8

var errUnsettled = Anywhere(writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: what the box shows keeps changing while it is made (mounts, protected names); try again", nil))

func (b *Boxes) startOn(ctx context.Context, d Driver, w writ.Writ, spec Spec, told *telling) (Box, error) {
	keeper, ok := d.(Keeper)
	if !ok {
		box, err := d.Start(ctx, w, spec)
		return b.tracked(d, w, nil, box, told, err)
	}
	p, err := keeper.Plan(ctx, w, spec)
	if err != nil {
		return nil, err
	}
	k := b.keyOf(d, w, spec, p)
	for made := 0; k != (key{}); {
		e := b.idle(ctx, k)
		if e == nil {
			if !b.room() {
				break
			}
			if made++; made > mostMade {
				return nil, errUnsettled
			}
			time.Sleep(time.Duration(made-1) * 5 * time.Millisecond)
			kept, err := p.Keep(ctx)
			if errors.Is(err, ErrUnfit) {
				continue
			}
			if err != nil {
				return nil, err
			}
			e = &entry{key: k, kept: kept}
		}
		box, err := p.StartIn(ctx, e.kept)
		if err == nil {
			return b.tracked(d, w, e, box, told, nil)
		}
		b.drop(e)
		if !errors.Is(err, ErrUnfit) {
			return nil, err
		}
	}
	box, err := p.Start(ctx)
	return b.tracked(d, w, nil, box, told, err)
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
	case spec.Alone, w.Confinement().Network.Mode != writ.NetworkNone, w.Approval().ID != "", w.Decision().Class == writ.ClassWrite, c.Agent == "", c.Session == "":
		return key{}
	case s == PerAgent:
		return k
	case s == PerTask && c.Task != "":
		k.task = c.Task
		return k
	}
	return key{}
}

// tracked notes what runs, until it has ended.
func (b *Boxes) tracked(d Driver, w writ.Writ, e *entry, box Box, told *telling, err error) (Box, error) {
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
	if c.Session != "" || e.Calls == 0 { // else an operator looks into a box of somebody's
		e.Driver, e.Agent, e.Session, e.Task, e.Person = d.Name(), c.Agent, c.Session, c.Task, c.Person
	}
	if in, ok := box.(Contained); ok {
		is := in.Container()
		e.Container, e.Sidecar, e.Image = is.ID, is.Sidecar, is.Image
	}
	e.Call, e.Tool, e.Used = c.ID, c.Tool, now
	e.confine, e.dir = w.Confinement(), c.Dir
	e.Calls++
	e.doomed = e.doomed || b.closed
	b.live[e] = struct{}{}
	if b.noted != nil && !e.noted && (e.Kept || e.Container != "") {
		e.noted = true
		b.noted(e.shown())
	}
	stop, kill := context.WithCancel(context.Background())
	e.kill = kill
	told.run.Box, told.run.Driver = e.ID, e.Driver
	return &tracked{Box: box, boxes: b, entry: e, killed: stop, told: told}, nil
}

// tracked is a box whose end is noted.
type tracked struct {
	Box
	boxes  *Boxes
	entry  *entry
	killed context.Context
	told   *telling
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
	run := t.told.over(exit, err)
	t.boxes.release(t.entry, run)
	t.told.tell(run)
	return exit, err
}
