package engine

import (
	"errors"
	"log/slog"
	"os"
	"time"

	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/sandbox"
)

// Sandboxes is the drivers of a configuration, made as Open makes them but without a
// store, so that they can be examined where no daemon runs. The caller calls end when no
// box runs any more.
func Sandboxes(path string) (drivers sandbox.Set, end func() error, err error) {
	cfg, err := catalog.Config(path)
	if _, missing := os.Stat(path); errors.Is(missing, os.ErrNotExist) { // before anything is set up
		cfg, err = config.Defaults(path)
	}
	if err != nil {
		return nil, nil, err
	}
	e := &Engine{log: slog.Default(), now: time.Now}
	end = func() error {
		var failed error
		for _, c := range e.closers {
			failed = errors.Join(failed, c.Close())
		}
		return failed
	}
	if err := e.build(cfg, nil, nil); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return e.drivers, end, nil
}
