package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/client"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/store"
)

// UnconfinedRecord is where such commands are written down: the daemon that runs, or
// the ledger itself.
type UnconfinedRecord interface {
	StartUnconfined(context.Context, client.UnconfinedRequest) (id string, err error)
	EndUnconfined(ctx context.Context, id string, end client.UnconfinedEnd) error
}

// byDaemon is one that runs.
type byDaemon struct{ *client.Client }

func (d byDaemon) StartUnconfined(ctx context.Context, run client.UnconfinedRequest) (string, error) {
	made, err := d.Client.StartUnconfined(ctx, run)
	return made.ID, err
}

// recordUnconfined has something written down, by the daemon where one runs. A store
// that somebody has open without answering is a daemon that starts or ends, or another
// command at the same: that is waited for. named: the configuration was, so no other
// daemon is meant.
func (a *App) recordUnconfined(ctx context.Context, path string, named bool, record func(context.Context, UnconfinedRecord) error) error {
	if _, err := os.Stat(path); err != nil && named {
		_, err := catalog.Config(path) // says what to do
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, recordWithin)
	defer cancel()
	for {
		err := record(ctx, byDaemon{client.Dial(config.StateOf(path))})
		if !client.IsDown(err) {
			return err
		}
		err = a.store.Unconfined(ctx, path, func(u UnconfinedRecord) error { return record(ctx, u) })
		if !errors.Is(err, store.ErrLocked) {
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
