//go:build !linux

package firejail

import (
	"context"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// Driver refuses everything on this system.
type Driver struct{ opts Options }

// Probe says what is missing.
func (d *Driver) Probe(context.Context) (sandbox.Features, error) { return nil, unavailable() }

// Start starts nothing.
func (d *Driver) Start(context.Context, writ.Writ, sandbox.Spec) (sandbox.Box, error) {
	return nil, unavailable()
}

func unavailable() error {
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver firejail needs Linux; choose another driver", nil)
}
