package native

import "sync"

// Ahead is a factory that is begun before it is known what for: of all that a first box
// waits for, it takes longest.
type Ahead struct {
	begun   chan struct{} // closed when the next two are set
	factory *factory
	err     error
}

// Begin begins one, for boxes with all programs of the system or with a list of them.
func Begin(listed bool) *Ahead {
	a := &Ahead{begun: make(chan struct{})}
	k, s := skeletonFor(listed), &script{}
	var building sync.WaitGroup
	building.Go(func() { k.build(s) }) // while the launcher finds its place
	l, err := startLauncher()          // here and now: another thread would first have to begin
	if err != nil {
		a.err = err
		close(a.begun)
		return a
	}
	go func() {
		if a.factory, a.err = newFactory(l); a.err == nil {
			a.factory.mu.Lock() // whoever has it waits for its root
		}
		close(a.begun)
		if a.err != nil {
			return
		}
		defer a.factory.mu.Unlock()
		building.Wait()
		kind := a.factory.kind(listed)
		*kind = k
		a.factory.add(kind, s) // what fails is tried again for the first box, which tells
	}()
	return a
}

// take is the factory.
func (a *Ahead) take() (*factory, error) {
	<-a.begun
	return a.factory, a.err
}

// Drop lets a factory go that is not needed, soon: it would hold the host's mounts for as
// long as this program runs. Of nothing begun, it does nothing.
func (a *Ahead) Drop() {
	if a != nil {
		go a.End()
	}
}

// End is Drop, and waits until it is gone.
func (a *Ahead) End() {
	if a == nil {
		return
	}
	f, err := a.take()
	if err == nil {
		f.mu.Lock() // it is not told anything any more
		defer f.mu.Unlock()
		f.end(nil)
	}
}
