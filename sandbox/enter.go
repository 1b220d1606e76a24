package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/writ-run/writ"
)

// Enter starts a command in a box that is kept and that nobody uses, under a writ for
// exactly what the box reaches: it has a turn of its own, as a call has, and afterwards the
// box is readied for the next. What runs in a box is never joined: both would see each
// other's processes and files.
func (b *Boxes) Enter(ctx context.Context, id string, w writ.Writ, spec Spec) (Box, error) {
	e, err := b.idleBox(ctx, id)
	if err != nil {
		return nil, err
	}
	var keeper Keeper
	for _, d := range b.drivers {
		if k, ok := d.(Keeper); ok && d.Name() == e.key.driver {
			keeper = k
		}
	}
	told := b.telling(w.Call(), &spec)
	p, err := keeper.Plan(ctx, w, spec)
	if err != nil {
		return nil, err
	}
	if p.Alike() != e.key.alike {
		return nil, writ.Fail(writ.Changed, fmt.Sprintf("the command would reach something else than sandbox %s was made for, so it does not run: where programs are listed, start the one that calls in it start (bash -c …); where paths have changed since, make a call, which gets another sandbox", id), nil)
	}
	if !b.take(e) {
		return nil, busy(id, "")
	}
	box, err := p.StartIn(ctx, e.kept)
	if err != nil {
		b.drop(e)
		if errors.Is(err, ErrUnfit) {
			err = writ.Fail(writ.NotFound, fmt.Sprintf("sandbox %s had ended; 'writ sandbox list' shows those there are", id), err)
		}
		return nil, err
	}
	return b.tracked(keeper, w, e, box, told, nil)
}

// idleBox finds a kept box that nobody uses, and waits for one that is being readied.
func (b *Boxes) idleBox(ctx context.Context, id string) (*entry, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		e := b.find(id)
		switch {
		case e == nil:
			return nil, writ.Fail(writ.NotFound, fmt.Sprintf("there is no sandbox %q any more; 'writ sandbox list' shows those there are", id), nil)
		case e.kept == nil:
			return nil, writ.Fail(writ.Conflict, fmt.Sprintf("sandbox %s is of one call alone and takes no other command; with sandboxing.lifecycle, drivers native and docker keep boxes of calls that reach no network", id), nil)
		case e.timer != nil:
			return e, nil
		}
		t := b.turns[e.key]
		if e.Call != "" || t == nil || t.renewing == 0 || ctx.Err() != nil {
			return nil, busy(id, e.Call)
		}
		if t.changed == nil {
			t.changed = make(chan struct{})
		}
		changed := t.changed
		b.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		b.mu.Lock()
	}
}

// find is the box of that id that there is. The caller holds the lock.
func (b *Boxes) find(id string) *entry {
	for e := range b.live {
		if e.ID == id {
			return e
		}
	}
	return nil
}

func busy(id, call string) error {
	if call == "" {
		call = "something"
	}
	return writ.Fail(writ.Conflict, fmt.Sprintf("%s is running in sandbox %s, and one command at a time does; try again when it is over, or end it: writ sandbox kill %s", call, id, id), nil)
}

// take takes a box that is idle, unless somebody else has.
func (b *Boxes) take(e *entry) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, there := b.live[e]; !there || e.timer == nil || e.doomed {
		return false
	}
	e.timer.Stop()
	e.timer = nil
	return true
}
