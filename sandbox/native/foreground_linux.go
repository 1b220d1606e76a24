package native

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"golang.org/x/sys/unix"
)

// Foreground is what a command has that a person runs, and a tool's does not.
type Foreground struct {
	Terminal *os.File          // its own; nil: the streams of the spec
	Tmp      int64             // bytes that its temporary directory holds
	Home     map[string]string // files in its home, by name
	Own      []string          // of what it can write, what nobody else reads: nothing is protected in there
	Wall     time.Duration     // zero: as long as it takes
}

// A Process is a command that a person runs.
type Process struct{ *box }

// Signal passes a signal on to all that runs.
func (p Process) Signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.ended && s > 0 && s <= 31 {
		p.told = true
		p.runner.cell.conn.tell(byte(s))
	}
}

// EndedBy is the signal that ended the command, after Wait; 0: none.
func (p Process) EndedBy() syscall.Signal { return p.signal }

// Foreground starts a command for a person, in a box that is gone afterwards. It asks
// for no probe, which would take longer than the command: every step of making the box
// either succeeds or nothing starts, and Probe shows that the steps hold.
func (d *Driver) Foreground(ctx context.Context, w writ.Writ, spec sandbox.Spec, fg Foreground) (Process, error) {
	if !w.Valid() {
		return Process{}, writ.Fail(writ.Denied, "denied: there is no valid writ, so nothing runs", nil)
	}
	if err := d.possible(); err != nil {
		return Process{}, err
	}
	p, err := d.plan(w, spec, nil)
	if err != nil {
		return Process{}, err
	}
	p.Wall, p.Home, p.Own = fg.Wall, fg.Home, fg.Own
	if fg.Tmp > 0 {
		p.Tmp = fg.Tmp
	}
	for try := range mostMoves {
		pause(try)
		var b *box
		if b, err = p.inFront(ctx, fg); !errors.Is(err, errMoved) {
			return Process{b}, err
		}
		if err := p.look(); err != nil {
			return Process{}, err
		}
	}
	return Process{}, explain(err)
}

// inFront runs it in a box of its own.
func (p *plan) inFront(ctx context.Context, fg Foreground) (*box, error) {
	var kept covers
	var keepErr error
	var keeping sync.WaitGroup
	keeping.Go(func() { kept, keepErr = p.cover(ctx) }) // while the box is made
	r, err := p.driver.inFront(p, fg)
	keeping.Wait()
	if err != nil {
		_, undo := kept.done()
		return nil, errors.Join(explain(err), undo)
	}
	b, err := p.runKept(r, kept, keepErr)
	if err != nil {
		r.end()
		return nil, explain(err)
	}
	return b, nil
}

// inFront is a runner for a command that a person runs, in a box of its own.
func (d *Driver) inFront(p *plan, fg Foreground) (*runner, error) {
	c, err := d.cell(p, false, nil, nil)
	if err != nil {
		return nil, err
	}
	c.recipe.factory.makers.end() // there will be no other box
	r, err := c.readyAt(fg.Terminal)
	if err == nil {
		r.front = true
	}
	return r, err
}

// InFront reports whether a person at a terminal works with this program now: one in the
// background would be stopped for reading from it, or for changing how it works.
func InFront(terminal int) bool {
	group, err := unix.IoctlGetInt(terminal, unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// OpenTerminal makes a pseudo terminal: ours is what a person's terminal is joined to,
// theirs is for the command.
func OpenTerminal() (ours, theirs *os.File, err error) {
	ours, err = os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("open a pseudo terminal: %w", err)
	}
	fd := int(ours.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		theirs, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|syscall.O_NOCTTY|syscall.O_CLOEXEC, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("open a pseudo terminal: %w", err), ours.Close())
	}
	return ours, theirs, nil
}

// Resize gives a pseudo terminal the size that a person's terminal has.
func Resize(ours *os.File, columns, rows int) error {
	return unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)})
}
