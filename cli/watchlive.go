package cli

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/writ-run/writ/client"
)

// watch is the live screen of requests that wait. Everything in it belongs to the
// goroutine of run; others hand it functions.
type watch struct {
	app    *App
	daemon *client.Client
	src    *PassphraseSource
	screen *screen
	quiet  bool
	news   chan func(*watch)

	waiting  []client.Approval // the oldest first
	known    map[string]bool   // by id: listed before; nil: nothing was listed yet
	selected string            // the id of one that waits
	read     map[string]string // by id: the digest of what was shown here to its last page
	open     *reading          // the request that is shown whole; nil: the list is
	help     bool
	small    bool   // nothing can be read on the screen
	cancels  string // the id of a request that is cancelled when y is typed
	status   string // what came of the last key, made safe to print
	lost     string // why nothing new is known, made safe to print; empty: it is
}

func newWatch(a *App, daemon *client.Client, src *PassphraseSource, s *screen) *watch {
	return &watch{app: a, daemon: daemon, src: src, screen: s, news: make(chan func(*watch)), read: map[string]string{}, lost: "connecting"}
}

// run shows the screen until somebody quits or ctx ends. The terminal is then as it
// was, also after a panic.
func (w *watch) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	if err := w.screen.enter(); err != nil {
		return err
	}
	defer w.screen.leave()
	changed := make(chan struct{}, 1)
	w.begin(ctx, &wg, func() { w.follow(ctx, changed) })
	w.begin(ctx, &wg, func() { w.list(ctx, changed) })
	typed, more := w.keyboard(ctx)
	resized, stop := resizes()
	defer stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var k keys
	for {
		w.draw()
		select {
		case <-ctx.Done():
			return nil
		case do := <-w.news:
			do(w)
		case <-resized:
			w.screen.again()
		case <-tick.C:
		case b, ok := <-typed:
			if !ok {
				return nil // the terminal is gone
			}
			if pressed, whole := k.next(b); whole && w.press(ctx, pressed) {
				return nil
			}
			more <- struct{}{}
		}
	}
}

// begin starts a goroutine whose panic is one of run, which puts the terminal back.
func (w *watch) begin(ctx context.Context, wg *sync.WaitGroup, do func()) {
	wg.Go(func() {
		defer func() {
			if p := recover(); p != nil {
				stack := debug.Stack()
				w.tell(ctx, func(*watch) { panic(fmt.Sprintf("%v\n%s", p, stack)) })
			}
		}()
		do()
	})
}

// tell has run do something.
func (w *watch) tell(ctx context.Context, do func(*watch)) {
	select {
	case w.news <- do:
	case <-ctx.Done():
	}
}

// keyboard gives out one byte of the terminal at a time, and reads none before it is
// asked for more: what is typed while a passphrase or an editor is open is theirs. It
// cannot be called off while it reads, so nobody waits for it.
func (w *watch) keyboard(ctx context.Context) (typed <-chan byte, more chan<- struct{}) {
	bytes, next := make(chan byte), make(chan struct{}, 1)
	next <- struct{}{}
	go func() {
		defer close(bytes)
		var b [1]byte
		for range next {
			if n, err := w.screen.in.Read(b[:]); n == 0 || err != nil {
				return
			}
			select {
			case bytes <- b[0]:
			case <-ctx.Done():
				return
			}
		}
	}()
	return bytes, next
}

// follow pokes list whenever something happens to a request.
func (w *watch) follow(ctx context.Context, changed chan<- struct{}) {
	poke := func() error {
		select {
		case changed <- struct{}{}:
		default: // it is going to look anyway
		}
		return nil
	}
	f := follower{
		daemon: w.daemon,
		relist: true,
		listed: func(waiting []client.Approval) error {
			w.tell(ctx, func(w *watch) { w.list1(waiting) })
			return nil
		},
		happened: func(client.InvocationEvent) error { return poke() },
		lost: func(broken error) error {
			w.tell(ctx, func(w *watch) { w.lose(broken) })
			return nil
		},
	}
	_ = f.run(ctx) // its functions have no errors
}

// listEvery is how often the list is looked at without a sign: an answer of the first
// of two people, and a request that is put higher, are no events.
const listEvery = 5 * time.Second

// list looks at what waits after each sign, as many as came meanwhile at once.
func (w *watch) list(ctx context.Context, changed <-chan struct{}) {
	for {
		select {
		case <-changed:
		case <-time.After(listEvery):
		case <-ctx.Done():
			return
		}
		if waiting, err := listWaiting(ctx, w.daemon); err == nil { // otherwise follow says so
			w.tell(ctx, func(w *watch) { w.list1(waiting) })
		}
	}
}

// list1 takes a list over. A request that is new rings the bell, the first list does not.
func (w *watch) list1(waiting []client.Approval) {
	rings := false
	first := w.known == nil
	if first {
		w.known = map[string]bool{}
	}
	at := w.index()
	for _, r := range waiting {
		rings = rings || !first && !w.known[r.ID]
		w.known[r.ID] = true
	}
	w.waiting, w.lost = waiting, ""
	if w.index() < 0 && len(waiting) > 0 { // what was selected is gone: the one in its place
		w.selected = waiting[min(max(at, 0), len(waiting)-1)].ID
	}
	if rings && !w.quiet {
		_, _ = w.screen.out.WriteString(bell)
	}
}

func (w *watch) lose(broken error) {
	w.lost = OneLine(message(broken))
	if client.IsDown(broken) || strings.HasPrefix(w.lost, "the stream ended") {
		w.lost = "the daemon is down; waiting for it"
	}
}

// index is where the selected request is in the list, -1 where it is not.
func (w *watch) index() int {
	for n, r := range w.waiting {
		if r.ID == w.selected {
			return n
		}
	}
	return -1
}
