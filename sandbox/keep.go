package sandbox

import (
	"context"
	"errors"

	"github.com/writ-run/writ"
)

// Keeper is a driver whose boxes can be kept between calls. What one call leaves is not
// there for the next: a kept box saves the time of making one, and nothing else.
type Keeper interface {
	Driver
	// Plan works out a run. It refuses what Start would.
	Plan(context.Context, writ.Writ, Spec) (Plan, error)
}

// Plan is a run that has not begun.
type Plan interface {
	// Alike is the same for plans whose boxes reach the same.
	Alike() string
	// Start starts it in a box of its own, which is gone afterwards.
	Start(context.Context) (Box, error)
	// Keep makes a box for this run and others like it. ErrUnfit says that another try may
	// succeed.
	Keep(context.Context) (Kept, error)
	// StartIn starts it in a box that was made for one like it. ErrUnfit says that the
	// box will not do, and nothing was started.
	StartIn(context.Context, Kept) (Box, error)
}

// Kept is a box that runs one command at a time.
type Kept interface {
	// Renew readies the box for the next command, after Wait of the one before. An
	// error means that it will not do any more.
	Renew(context.Context) error
	// Close ends the box and all that runs in it.
	Close() error
}

// ErrUnfit is of a kept box that ended, or whose names lead elsewhere by now.
var ErrUnfit = errors.New("the kept box will not do")
