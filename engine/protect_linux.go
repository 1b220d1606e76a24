package engine

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/writ-run/writ/sandbox/protect"
)

// linger is how long placeholders stay after a call: the next one comes soon, or not.
const linger = 2 * time.Second

// protect has boxes keep the protected names of workspaces. What a daemon that was killed
// left for that is taken away first.
func (e *Engine) protect(state string) error {
	at := filepath.Join(state, "protect")
	if err := os.MkdirAll(at, 0o700); err != nil {
		return fmt.Errorf("make the directory of protected names: %w", err)
	}
	f, err := protect.New(protect.Options{State: at, Quarantine: filepath.Join(state, "quarantine"), Linger: linger})
	if err != nil {
		return err
	}
	e.native.Protect(f)
	e.docker.Protect(f)
	e.closers = append(e.closers, f) // after the drivers: nothing runs any more
	return nil
}
