package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/writ-run/writ/client"
)

// waiter is a call that waits: what it says meanwhile, and how it comes back to a
// daemon that went away.
type waiter struct {
	app   *App
	token string
	began time.Time
	id    string // the request that waits, once there is one
	end   func() // takes the live line away; nil: there is none

	lost   int // how often in a row the daemon went away
	lostAt time.Time
}

// waits says what is waited for: once, and on a terminal with a line that is
// rewritten each second.
func (w *waiter) waits(ctx context.Context, daemon *client.Client, id string) {
	if id != w.id {
		w.quiet()
		fmt.Fprintf(os.Stderr, "waiting for a person: writ approval show %s\n", id)
		w.id = id
	}
	if w.end == nil && IsTerminal(os.Stderr) {
		w.end = liveLine(ctx, daemon, id, w.began)
	}
}

// quiet takes the live line away.
func (w *waiter) quiet() {
	if w.end != nil {
		w.end()
		w.end = nil
	}
}

// comeBacks is how often a daemon that goes away is come back to. One that stays for
// a minute has come back.
const comeBacks = 5

// comeBack connects anew after a pause, which grows. The daemon is started when it is
// down. why is how the connection was lost.
func (w *waiter) comeBack(ctx context.Context, why error, key string) (*client.Client, error) {
	w.quiet()
	if time.Since(w.lostAt) > time.Minute {
		w.lost = 0
	}
	if w.lost == 0 {
		fmt.Fprintln(os.Stderr, "the daemon went away; coming back to it")
	}
	for w.lost < comeBacks {
		select {
		case <-time.After(100 * time.Millisecond << w.lost):
		case <-ctx.Done():
			return nil, w.gone(ctx, why, key)
		}
		w.lost++
		w.lostAt = time.Now()
		daemon, err := w.app.Connect(ctx)
		if err == nil {
			daemon.Token = w.token
			return daemon, nil
		}
		why = err
	}
	return nil, w.gone(ctx, why, key)
}

// gone says what is left of a call whose daemon does not come back.
func (w *waiter) gone(ctx context.Context, why error, key string) error {
	switch {
	case w.id != "" && ctx.Err() != nil:
		return w.app.leftPending(w.id)
	case w.id != "":
		return fmt.Errorf("the daemon went away while request %s waited, and does not come back (%w); the request stays: make the same call again", w.id, why)
	case ctx.Err() != nil:
		return errors.New("interrupted while the daemon was away; make the call again with --key " + key + ", and it runs at most once")
	}
	return fmt.Errorf("the daemon went away during the call, and does not come back (%w); make the call again with --key %s, and it runs at most once", why, key)
}

// liveLine keeps a line on standard error that says what a call waits for and since
// when, until end takes it away. It looks every second and holds no stream: an agent
// has few of those.
func liveLine(ctx context.Context, daemon *client.Client, id string, since time.Time) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		line := waitingLine{since: since}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for ctx.Err() == nil {
			if r, err := daemon.Approval(ctx, id); err == nil { // otherwise it stays as it is: the call itself has the answer
				line.look(r, time.Now())
				id = cmp.Or(r.ReplacedBy, id)
			}
			width, _, err := term.GetSize(int(os.Stderr.Fd()))
			if err != nil || width < leastWidth {
				width = leastWidth
			}
			fmt.Fprintf(os.Stderr, "\r%s\x1b[K", clip(line.text(time.Now()), width-1))
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	})
	return func() {
		cancel()
		wg.Wait()
	}
}

// waitingLine is what a live line says.
type waitingLine struct {
	since  time.Time
	until  string
	quorum int
	by     string // who approved it; empty: nobody has
}

func (l *waitingLine) look(r client.Approval, now time.Time) {
	l.until, l.quorum = r.Expires, r.Quorum
	if l.by == "" && (r.State == "approved" || r.State == "used") {
		l.by, l.since = cmp.Or(r.By, "a person"), now
	}
}

func (l *waitingLine) text(now time.Time) string {
	long := now.Sub(l.since).Round(time.Second)
	if l.by != "" {
		return fmt.Sprintf("approved by %s; running for %s; Ctrl-C ends it", OneLine(l.by), long)
	}
	who := "a person"
	if l.quorum > 1 {
		who = fmt.Sprintf("%d people", l.quorum)
	}
	return fmt.Sprintf("waiting for %s %s%s; Ctrl-C leaves it pending", who, long, untilWhen(l.until, now))
}

// untilWhen is when something is over, as short as it can be said; nothing where it
// waits for ever.
func untilWhen(at string, now time.Time) string {
	t, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || t.Year() == 9999 {
		return ""
	}
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return ", until " + t.Format("15:04")
	}
	return ", until " + t.Format("2 Jan 15:04")
}
