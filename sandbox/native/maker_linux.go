package native

import (
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sys/unix"
)

// A maker is a process of the factory that makes one box after the other. There are several,
// begun as they are needed, since the kernel takes its time for namespaces.
type makers struct {
	idle  chan *conn    // that wait for something to do
	spare chan struct{} // for each one that may be begun
}

// mostMakers is how many boxes are made at the same time.
const mostMakers = 4

func newMakers() makers {
	m := makers{make(chan *conn, mostMakers), make(chan struct{}, mostMakers)}
	for range mostMakers {
		m.spare <- struct{}{}
	}
	return m
}

// end lets those go that wait, as long as nobody needs one. The others end with the factory.
func (m *makers) end() {
	for {
		select {
		case c := <-m.idle:
			c.close()
			m.spare <- struct{}{}
		default:
			return
		}
	}
}

// aMaker is the request for one. It serves where its answer goes.
var aMaker = sync.OnceValues(func() (message, error) {
	s := &script{}
	s.doing(stepSpace)
	s.serve(passed(0))
	return s.message(aside, 0)
})

// maker is one that has nothing to do; fresh: it was begun for that.
func (f *factory) maker() (c *conn, fresh bool, err error) {
	select {
	case c := <-f.makers.idle:
		return c, false, nil
	default:
	}
	select {
	case c := <-f.makers.idle:
		return c, false, nil
	case <-f.makers.spare:
	}
	m, err := aMaker()
	if err == nil {
		c, err = f.aside(m, nil)
	}
	if err != nil {
		f.makers.spare <- struct{}{}
		return nil, false, err
	}
	c.later(saysReady, m.script)
	return c, true, nil
}

// make makes a box in a view, or where it sees the host still (nil), and tells its process.
// How it went, the box says by itself: others can be made meanwhile.
func (f *factory) make(m message, in *template) (*conn, int, error) {
	for {
		ours, theirs, err := newPair()
		if err != nil {
			return nil, 0, err
		}
		maker, fresh, err := f.maker()
		if err != nil {
			unix.Close(theirs)
			ours.close()
			return nil, 0, fmt.Errorf("make a box: %w", err)
		}
		var box reply
		if err = maker.ask(m, theirs, in); err == nil {
			box, err = ours.expect(saysBox, m.script)
		}
		var failed *failure
		if err == nil || errors.As(err, &failed) {
			f.makers.idle <- maker
		} else {
			err = errors.Join(err, maker.lost(), f.answers())
			maker.close()
			f.makers.spare <- struct{}{}
		}
		if err == nil {
			ours.later(saysReady, m.script)
			return ours, int(box.A), nil
		}
		ours.close()
		if fresh || errors.As(err, &failed) || errors.Is(err, errFactory) {
			return nil, 0, fmt.Errorf("make a box: %w", err)
		}
		// That one was gone, with nothing asked of it.
	}
}

// lost is what a maker that is of no use any more has said of why; io.EOF: nothing.
func (c *conn) lost() error {
	if err := c.hangUp(); err != nil {
		return err
	}
	for {
		if _, err := c.next(); err != nil {
			return err
		}
	}
}
