package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/store/sqlite"
)

// unconfinedRecord is where such commands are written down: the daemon that runs, or
// the ledger itself.
type unconfinedRecord interface {
	StartUnconfined(context.Context, engine.UnconfinedRun) (id string, err error)
	EndUnconfined(ctx context.Context, id string, end engine.UnconfinedEnd) error
}

func (r running) StartUnconfined(ctx context.Context, run engine.UnconfinedRun) (string, error) {
	made, err := r.Client.StartUnconfined(ctx, client.UnconfinedRequest(run))
	return made.ID, err
}

func (r running) EndUnconfined(ctx context.Context, id string, end engine.UnconfinedEnd) error {
	return r.Client.EndUnconfined(ctx, id, client.UnconfinedEnd(end))
}

// recordUnconfined has something written down, by the daemon where one runs. A store
// that somebody has open without answering is a daemon that starts or ends, or another
// command at the same: that is waited for. named: the configuration was, so no other
// daemon is meant.
func recordUnconfined(ctx context.Context, path string, named bool, record func(context.Context, unconfinedRecord) error) error {
	if _, err := os.Stat(path); err != nil && named {
		_, err := engine.LoadConfig(path) // says what to do
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	for {
		err := record(ctx, running{client.Dial(config.StateOf(path))})
		if !client.IsDown(err) {
			return err
		}
		err = engine.WithoutDaemon(ctx, path, func(u engine.Unconfined) error { return record(ctx, u) })
		if !errors.Is(err, sqlite.ErrLocked) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w and does not answer; end it, or start again once it has ended", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

const recordWithin = 15 * time.Second
