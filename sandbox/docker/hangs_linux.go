package docker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/moby/moby/client"
)

// An engine can be there and not answer: stopped, or waiting for a disk. It takes
// connections all the same, so that each wait for it has an end of its own.

// answers bounds how long an engine is waited for that was asked something. Starting a
// container on a busy machine takes seconds.
const answers = 30 * time.Second

var errHangs = errors.New("the engine does not answer")

// hangs reports whether an engine was waited for in vain.
func hangs(err error) bool {
	return errors.Is(err, errHangs) || strings.Contains(err.Error(), "timeout awaiting response headers")
}

// answered asks an engine, and waits for so long. A stream that comes of it lives on.
func answered[T any](ctx context.Context, within time.Duration, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, within, errHangs)
	defer cancel()
	out, err := ask(ctx)
	if err != nil && context.Cause(ctx) == errHangs {
		err = errHangs
	}
	return out, err
}

// attend looks whether the engine still answers while a command runs, and lets go of it
// when it does not: its streams stay open, and what comes out of them is nothing.
func (c *running) attend(gone <-chan struct{}, letGo func()) {
	every := time.NewTicker(c.driver.beatEvery)
	defer every.Stop()
	for {
		select {
		case <-gone:
			return
		case <-every.C:
		}
		_, err := answered(context.Background(), c.driver.silence, func(ctx context.Context) (client.PingResult, error) {
			return c.engine.Ping(ctx, client.PingOptions{})
		})
		if errors.Is(err, errHangs) {
			c.hangs.Store(true)
			letGo()
			return
		}
	}
}
