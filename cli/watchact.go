package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/writ-run/writ/client"
)

// press does what a key says, and reports whether that is to quit.
func (w *watch) press(ctx context.Context, k key) (quit bool) {
	cancels := w.cancels
	w.status, w.cancels = "", ""
	switch {
	case k == ctrlC, w.small && k == 'q':
		return true
	case w.small:
		w.status = "too small; nothing was done"
	case w.help:
		w.help = false
	case cancels != "":
		w.cancel(ctx, cancels, k)
	case k == '?':
		w.help = true
	case strings.ContainsRune("aregc", rune(k)):
		w.answer(ctx, k)
	case w.open != nil:
		w.turn(k)
	case k == 'q':
		return true
	case k == keyUp, k == 'k':
		w.move(-1)
	case k == keyDown, k == 'j':
		w.move(1)
	case k == enter, k == '\n', k == ' ':
		w.show(ctx)
	}
	return ctx.Err() != nil
}

func (w *watch) turn(k key) {
	switch k {
	case 'q', backspace, 8:
		w.open = nil
	case enter, '\n', ' ', 'j', keyDown, keyPageDown:
		w.open.turn(1)
	case 'k', 'b', keyUp, keyPageUp:
		w.open.turn(-1)
	}
}

func (w *watch) move(by int) {
	if len(w.waiting) > 0 {
		w.selected = w.waiting[min(max(0, w.index()+by), len(w.waiting)-1)].ID
	}
}

// target is the id of the request that a key is about.
func (w *watch) target() string {
	switch {
	case w.open != nil:
		return w.open.request.ID
	case w.index() >= 0:
		return w.selected
	}
	return ""
}

// within bounds what a key asks of the daemon while the screen stands still.
const within = 10 * time.Second

// fetch is the request that a key is about, as it stands now.
func (w *watch) fetch(ctx context.Context) (client.Approval, bool) {
	id := w.target()
	if id == "" {
		w.status = "nothing is selected"
		return client.Approval{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := w.daemon.Approval(ctx, id)
	if err != nil {
		w.fail(err)
	}
	return r, err == nil
}

func (w *watch) fail(err error) { w.status = OneLine(message(err)) }

func (w *watch) show(ctx context.Context) {
	if r, ok := w.fetch(ctx); ok {
		w.present(r)
	}
}

func (w *watch) present(r client.Approval) {
	opened, err := newReading(r)
	if err != nil {
		w.fail(err)
		return
	}
	w.open = opened
}

// answer takes up a decision about a request that was read whole as it stands; one
// that was not is shown instead.
func (w *watch) answer(ctx context.Context, k key) {
	r, ok := w.fetch(ctx)
	if !ok {
		return
	}
	seen := w.read[r.ID]
	switch {
	case r.State != "pending":
		w.status = fmt.Sprintf("%s is already %s", r.ID, r.State)
	case k == 'c':
		w.cancels, w.status = r.ID, "cancel "+r.ID+"? y cancels it, any other key does not"
	case seen != r.Digest:
		if w.open == nil || w.open.request.Digest != r.Digest {
			w.present(r)
		}
		if w.status == "" && seen != "" {
			w.status = "it is not what you read; read it again to its last page, then answer"
		} else if w.status == "" {
			w.status = "read it to its last page first, then answer"
		}
	default:
		w.aside(ctx, func() error { return w.decide(ctx, r, k) })
		w.after(ctx, r)
	}
}

// after says what became of a request that was answered.
func (w *watch) after(ctx context.Context, before client.Approval) {
	if w.status != "" {
		return
	}
	w.open = nil
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, err := w.daemon.Approval(ctx, before.ID)
	if err == nil && r.ReplacedBy != "" {
		r, err = w.daemon.Approval(ctx, r.ReplacedBy)
	}
	switch {
	case err != nil:
		w.fail(err)
	case r.State == "pending":
		w.status = fmt.Sprintf("%s has %d of %d answers it takes", r.ID, len(r.Votes), r.Quorum)
	case r.State == "rejected":
		w.status = fmt.Sprintf("%s rejected by %s", r.ID, OneLine(r.By))
	default:
		w.status = fmt.Sprintf("%s approved by %s", r.ID, OneLine(r.By))
	}
	if waiting, err := listWaiting(ctx, w.daemon); err == nil {
		w.list1(waiting)
	}
}

func (w *watch) cancel(ctx context.Context, id string, k key) {
	if k != 'y' {
		w.status = "not cancelled"
		return
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	i, err := w.daemon.CancelInvocation(ctx, id)
	if err != nil {
		w.fail(err)
		return
	}
	w.open, w.status = nil, fmt.Sprintf("%s %s", i.ID, i.Status)
}

// aside leaves the screen for something that talks on the terminal as any command
// does, and comes back. What cannot be called off, such as reading a terminal, is left
// behind a second after ctx ends.
func (w *watch) aside(ctx context.Context, do func() error) {
	w.screen.leave()
	cooked, err := term.GetState(int(w.screen.in.Fd()))
	if err != nil {
		w.fail(err)
		return
	}
	done := make(chan struct{})
	go func() {
		select {
		case <-done:
			return
		case <-ctx.Done():
		}
		select {
		case <-done:
		case <-time.After(time.Second):
			_ = term.Restore(int(w.screen.in.Fd()), cooked)
			os.Exit(ExitError)
		}
	}()
	err = do()
	close(done)
	if err != nil {
		w.fail(err)
	}
	if ctx.Err() != nil {
		return // it stays as it is: the program ends
	}
	if err := w.screen.enter(); err != nil {
		panic(err) // there is nothing left to draw on
	}
}

// decide asks for what a decision takes, the passphrase last, and sends it with the
// digest that was read.
func (w *watch) decide(ctx context.Context, r client.Approval, k key) error {
	if err := w.src.who(ctx, w.daemon); err != nil {
		return err // somebody was added since it began
	}
	req := client.DecisionRequest{Digest: r.Digest, Approve: k != 'r'}
	what := map[key]string{'a': "approve", 'r': "reject", 'e': "edit", 'g': "grant"}[k]
	fmt.Fprintf(w.screen.out, "%s %s: %s of %s\n", what, r.ID, OneLine(r.Tool), OneLine(r.Agent))
	var err error
	switch k {
	case 'e':
		return w.app.edit(ctx, w.daemon, r.ID, "", w.src)
	case 'r':
		req.Reason, err = w.ask(ctx, "Reason, which the agent is told (empty: none): ")
		err = errors.Join(err, bounded("reason", req.Reason, MaxWords))
	case 'g':
		req.Grant, err = w.terms(ctx)
	}
	if err != nil {
		return err
	}
	return w.app.answer(ctx, w.daemon, r.ID, req, w.src)
}

// terms asks for the bounds of a grant, with the defaults of 'approval grant'.
func (w *watch) terms(ctx context.Context) (*client.GrantTerms, error) {
	uses, lasts := grantBounds()
	for _, q := range []struct {
		prompt string
		value  interface {
			Set(string) error
			String() string
		}
	}{{"How many later calls", &uses}, {"For how long", &lasts}} {
		said, err := w.ask(ctx, fmt.Sprintf("%s [%s]: ", q.prompt, q.value))
		if err != nil {
			return nil, err
		}
		if said == "" {
			continue
		}
		if err := q.value.Set(said); err != nil {
			return nil, fmt.Errorf("%q: %w; nothing was decided", said, err)
		}
	}
	return &client.GrantTerms{Uses: uses.n, Seconds: int64(lasts.Duration / time.Second)}, nil
}

// ask reads a line from the terminal, as it is outside of the screen.
func (w *watch) ask(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(w.screen.out, prompt)
	type said struct {
		line string
		err  error
	}
	read := make(chan said, 1)
	go func() {
		b := make([]byte, 4096) // a terminal gives out one line at most
		n, err := w.screen.in.Read(b)
		read <- said{string(b[:n]), err}
	}()
	select {
	case <-ctx.Done():
		return "", ctx.Err()
	case s := <-read:
		if s.err == io.EOF || s.line == "" {
			return "", errors.New("nothing was typed; nothing was decided")
		}
		return strings.TrimSpace(s.line), s.err
	}
}
