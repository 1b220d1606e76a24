package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/usage"
)

// A Link is the way to a supervisor, wherever it runs.
type Link struct {
	Control              io.WriteCloser // its end is the end of the box
	Status               io.ReadCloser
	Stdin                io.WriteCloser
	Stdout, Stderr, Said io.ReadCloser   // the last one is what is said besides
	Kill                 func()          // ends everything in the box from outside; nil: only the supervisor can
	Gone                 <-chan struct{} // closed when what was started has ended
	// Measure, where there is one, is called before the command begins, and gives what counts
	// from outside what it uses.
	Measure func() (func() (usage.Use, error), error)
}

// Terms are how long a command may take, and who has a say in it.
type Terms struct {
	// Check, where there is one, is called once the supervisor is up and before anything
	// of the command has begun; its error ends the box.
	Check func() error
	// Explain makes an error of what was said by what ended without a supervisor.
	Explain func(said string) error
	// Holds says that killing what is started ends everything in the box. Where it does
	// not, only the supervisor can, and is let go of instead.
	Holds bool

	Wall  time.Duration // from when the command runs; none: as long as it takes
	Grace time.Duration // between asking and killing
	Use   usage.Limits  // of all that is started, where it is measured
}

// startWithin bounds how long a box may take to be ready.
const startWithin = 20 * time.Second

func stopped(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return writ.Fail(writ.Stopped, "stopped before the command started", err)
	}
	return nil
}

// Over starts a box for a job by a supervisor that is being started, and has the link from
// then on.
func Over(ctx context.Context, link *Link, terms Terms, job any, spec sandbox.Spec) (sandbox.Box, error) {
	b := &box{link: link, terms: terms, said: sandbox.NewTail(4 << 10), over: make(chan struct{}), decode: json.NewDecoder(io.LimitReader(link.Status, 1<<20))}
	go sandbox.Feed(link.Stdin, spec.Stdin)
	b.copies.Go(func() { b.taken(sandbox.Drain(spec.Stdout, link.Stdout)) })
	b.copies.Go(func() { b.taken(sandbox.Drain(spec.Stderr, link.Stderr)) })
	b.copies.Go(func() { sandbox.Drain(b.said, link.Said) })
	text, err := encode(job)
	if err != nil {
		err = writ.Fail(writ.Internal, "the box could not be described", err)
	}
	ready := make(chan error, 1)
	go func() {
		if err == nil {
			err = b.handshake(ctx, text)
		}
		ready <- err
	}()
	tooLong := time.NewTimer(startWithin)
	defer tooLong.Stop()
	// A command that may have begun is not given up when the context ends: Wait ends it
	// then, and tells how it ended.
	select {
	case err = <-ready:
	case <-tooLong.C:
		b.kill()
		<-ready
		err = errors.New("no answer from inside the box: does the program call the Main of its driver first?")
	}
	if err != nil {
		b.kill()
		b.collect()
		return nil, b.why(err)
	}
	b.watch()
	return b, nil
}

// why turns a failed start into an error with something to do.
func (b *box) why(err error) error {
	var known *writ.Error
	var f *Failure
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return writ.Fail(writ.Stopped, "stopped before the command started", err)
	case errors.As(err, &f):
		return f.explain()
	case errors.Is(err, errGone):
		return b.terms.Explain(b.said.String())
	}
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: the box could not be set up", err)
}
