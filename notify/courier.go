package notify

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/writ-run/writ/store"
)

// Outbox is where messages come from, and where it is kept how far an endpoint is.
type Outbox interface {
	After(ctx context.Context, seq int64, n int) ([]store.Entry, error)
	Grown() <-chan struct{} // closed once there is more
	// Keep writes down how far an endpoint is; what names the change that somebody has
	// to be able to find later, and is empty for progress.
	Keep(ctx context.Context, w store.Webhook, what string) error
	Now() time.Time
}

// What becomes of an endpoint.
const (
	Failing   = "webhook.failing"
	Recovered = "webhook.recovered"
	Stopped   = "webhook.stopped"
	Retried   = "webhook.retried"
)

// State is how an endpoint is doing.
type State struct {
	store.Webhook
	Attempts int       // that failed, of the message that is next
	Taken    int64     // messages, since it began
	Failed   int64     // attempts, since it began
	Next     time.Time // when that is tried again; zero: now, or never
}

// Courier brings one endpoint its messages, one after another.
type Courier struct {
	to   Endpoint
	out  Outbox
	log  *slog.Logger
	end  context.CancelFunc
	done chan struct{}
	asks chan ask

	at   store.Webhook // how far it is; this and the next two are the loop's alone
	kept int64         // the entry that the store has it at
	page []store.Entry

	mu    sync.Mutex
	state State // as others see it
}

// ask is to try again at once, leaving out what came up to an entry.
type ask struct {
	after int64
	done  chan error
}

// Options start a Courier. All are needed.
type Options struct {
	To   Endpoint
	From store.Webhook // how far it is
	Out  Outbox
	Log  *slog.Logger
}

// Start starts one. It ends with Close.
func Start(o Options) *Courier {
	ctx, cancel := context.WithCancel(context.Background())
	c := &Courier{to: o.To, out: o.Out, log: o.Log, at: o.From, kept: o.From.Seq, end: cancel, done: make(chan struct{}), asks: make(chan ask), state: State{Webhook: o.From}}
	go c.run(ctx)
	return c
}

// Close ends it. A message on its way is cut off, and sent again by whoever comes next.
func (c *Courier) Close() error {
	c.end()
	<-c.done
	return nil
}

// State is how it is doing.
func (c *Courier) State() State {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Test sends a message that says nothing, beside all others.
func (c *Courier) Test(ctx context.Context) error {
	now := c.out.Now().UTC().Format(time.RFC3339Nano)
	return c.to.send(ctx, Message{ID: "evt_test_" + rand.Text(), Event: test, At: now})
}

// Retry tries again at once what failed or was given up. What came up to the entry after
// is left out; 0 leaves out nothing.
func (c *Courier) Retry(ctx context.Context, after int64) error {
	a := ask{after, make(chan error, 1)}
	select {
	case c.asks <- a:
	case <-c.done:
		return errEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	return <-a.done
}

var errEnded = errors.New("the configuration of the webhook changed meanwhile; look again: writ webhook list")

// run delivers until it is ended.
func (c *Courier) run(ctx context.Context) {
	defer close(c.done)
	for ctx.Err() == nil {
		grown := c.out.Grown() // before reading, so that none is missed
		wait := c.step(ctx)
		var timer <-chan time.Time
		switch {
		case wait == idle:
		case c.at.Stopped != "":
			grown = nil
		default:
			grown, timer = nil, time.After(wait)
		}
		select {
		case <-ctx.Done():
		case a := <-c.asks:
			a.done <- c.again(ctx, a.after)
		case <-grown:
		case <-timer:
		}
	}
}

// count counts an attempt.
func (c *Courier) count(taken bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if taken {
		c.state.Taken++
	} else {
		c.state.Failed++
	}
}

// show lets others see how it is doing.
func (c *Courier) show(attempts int, next time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.state.Webhook, c.state.Attempts, c.state.Next = c.at, attempts, next
}
