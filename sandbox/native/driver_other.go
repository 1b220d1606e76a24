//go:build !linux

package native

import (
	"context"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/protect"
)

// Driver refuses everything on this system.
type Driver struct {
	opts   Options
	finder *protect.Finder
}

// Ahead is nothing on this system.
type Ahead struct{}

// Drop and End do nothing.
func (*Ahead) Drop() {}
func (*Ahead) End()  {}

// Probe says what is missing.
func (d *Driver) Probe(context.Context) (sandbox.Features, error) { return nil, unavailable() }

// Start starts nothing.
func (d *Driver) Start(context.Context, writ.Writ, sandbox.Spec) (sandbox.Box, error) {
	return nil, unavailable()
}

// Close does nothing.
func (d *Driver) Close() error { return nil }

func unavailable() error {
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver native needs Linux; choose another driver", nil)
}
