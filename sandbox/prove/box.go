package prove

import (
	"context"
	"errors"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/unasked"
)

// Outcome is how one command in one box went.
type Outcome struct {
	Out, Err string
	Exit     sandbox.Exit
	Error    error
}

// kept bounds what is kept of each stream.
const kept = 1 << 20

// Command runs a command in a box and waits for it. Where the spec has no writer for its
// output, the last mebibyte is kept.
func Command(ctx context.Context, d sandbox.Driver, c writ.Confinement, spec sandbox.Spec) Outcome {
	var o Outcome
	out, errs := sandbox.NewTail(kept), sandbox.NewTail(kept)
	if spec.Stdout == nil {
		spec.Stdout = out
	}
	spec.Stderr = errs
	err := With(ctx, c, "", func(ctx context.Context, w writ.Writ) {
		b, err := d.Start(ctx, w, spec)
		if err != nil {
			o.Error = err
			return
		}
		o.Exit, o.Error = patiently(ctx, b, max(c.Limits.Wall, spec.Timeout, ordinary)+c.Limits.Grace)
	})
	o.Out, o.Err, o.Error = out.String(), errs.String(), errors.Join(o.Error, err)
	return o
}

// ordinary is how long a box may take whose confinement does not say, and slack how much
// longer than that before it counts as stuck.
const (
	ordinary = 30 * time.Second
	slack    = 20 * time.Second
)

// errStuck is for a box that neither its limit nor cancelling ended. What is left of it
// cannot be ended from here.
var errStuck = &finding{Broken, "the box does not end: neither at its limit nor when it was cancelled; something of it may still run"}

// patiently waits for a box, but not for ever.
func patiently(ctx context.Context, b sandbox.Box, limit time.Duration) (sandbox.Exit, error) {
	ctx, cancel := context.WithTimeout(ctx, limit+slack/2)
	defer cancel()
	type end struct {
		exit sandbox.Exit
		err  error
	}
	ended := make(chan end, 1)
	go func() {
		exit, err := b.Wait(ctx)
		ended <- end{exit, err}
	}()
	select {
	case e := <-ended:
		return e.exit, e.err
	case <-ctx.Done():
	}
	select {
	case e := <-ended:
		return e.exit, e.err
	case <-time.After(slack / 2):
		return sandbox.Exit{}, errStuck
	}
}

// With calls f with a writ for c. What runs is built in and touches nothing but what the
// suite made.
func With(ctx context.Context, c writ.Confinement, dir string, f func(context.Context, writ.Writ)) error {
	return unasked.Do(ctx, c, dir, func(ctx context.Context, w writ.Writ) error {
		f(ctx, w)
		return nil
	})
}
