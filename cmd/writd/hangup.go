package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"

	"github.com/writ-run/writ/engine"
)

// hangups are the signals that tell the process to reload. They are listened for
// before anything else: one that comes while the daemon starts must not end it.
func hangups() <-chan os.Signal {
	told := make(chan os.Signal, 1)
	if hangup != nil {
		signal.Notify(told, hangup)
	}
	return told
}

// reloadOnSignal reloads whenever the process is told to, until ctx ends.
func reloadOnSignal(ctx context.Context, e *engine.Engine, log *slog.Logger, told <-chan os.Signal) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-told:
			if _, err := e.Reload(ctx); err != nil {
				log.Error("the configuration was not reloaded", "err", err)
			}
		}
	}
}
