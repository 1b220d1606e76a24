package engine

import (
	"context"
	"sync"
	"time"

	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/store"
)

// boxNotes keeps in the store which boxes there are, and were, beside the calls: none waits
// for it, and what could not be written is tried again.
type boxNotes struct {
	e    *Engine
	wake chan struct{}
	quit chan struct{}
	over sync.WaitGroup

	mu   sync.Mutex
	left []sandbox.Shown // in order; what is not written yet
}

// begin says that what a daemon before had is lost, and takes notes from then on.
func (n *boxNotes) begin(ctx context.Context, e *Engine) error {
	err := e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		return ledger.Entry{}, tx.LoseSandboxes(e.ledger.Now())
	})
	if err != nil {
		return err
	}
	n.e, n.wake, n.quit = e, make(chan struct{}, 1), make(chan struct{})
	e.boxes.Note(n.note)
	n.over.Go(n.run)
	return nil
}

func (n *boxNotes) note(s sandbox.Shown) {
	s.Runs = nil
	n.mu.Lock()
	n.left = append(n.left, s)
	n.mu.Unlock()
	n.poke()
}

func (n *boxNotes) poke() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *boxNotes) run() {
	for {
		select {
		case <-n.wake:
		case <-n.quit:
			n.write()
			return
		}
		if n.write() {
			continue
		}
		select {
		case <-time.After(time.Second):
			n.poke()
		case <-n.quit:
			n.write()
			return
		}
	}
}

// write writes down what is left.
func (n *boxNotes) write() bool {
	n.mu.Lock()
	some := n.left
	n.left = nil
	n.mu.Unlock()
	if len(some) == 0 {
		return true
	}
	err := n.e.ledger.Write(context.Background(), func(tx *store.Tx) (ledger.Entry, error) {
		for _, s := range some {
			if err := noted(tx, s); err != nil {
				return ledger.Entry{}, err
			}
		}
		return ledger.Entry{}, nil
	})
	if err == nil {
		return true
	}
	n.e.log.Warn("which sandboxes there are could not be written down; it is tried again", "err", err)
	n.mu.Lock()
	n.left = append(some, n.left...)
	n.mu.Unlock()
	return false
}

func noted(tx *store.Tx, s sandbox.Shown) error {
	if !s.Ended.IsZero() {
		return tx.EndSandbox(s.ID, s.Calls, moment(s.Used), moment(s.Ended))
	}
	return tx.AddSandbox(store.Sandbox{ID: s.ID, Driver: s.Driver, Agent: s.Agent, Person: s.Person, Session: s.Session, Task: s.Task, Kept: s.Kept,
		Container: s.Container, Sidecar: s.Sidecar, Image: s.Image, Since: moment(s.Since), Calls: s.Calls, Used: moment(s.Used)})
}

// Close writes down what is left, once. What is still there, being readied, ends with the
// daemon.
func (n *boxNotes) Close() error {
	if n.quit != nil {
		for _, b := range n.e.boxes.List() {
			if b.Kept || b.Container != "" {
				n.note(sandbox.Shown{Live: b, Ended: time.Now()})
			}
		}
		close(n.quit)
		n.over.Wait()
	}
	return nil
}
