//go:build !linux

package wrapped

import (
	"context"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// A Wrapper is a program that there is none of on this system.
type Wrapper struct{ Name string }

// Driver refuses everything on this system.
type Driver struct{ wrapper Wrapper }

// New makes a driver.
func New(w Wrapper, _ Options) *Driver { return &Driver{w} }

// Probe says what is missing.
func (d *Driver) Probe(context.Context) (sandbox.Features, error) { return nil, d.unavailable() }

// Start starts nothing.
func (d *Driver) Start(context.Context, writ.Writ, sandbox.Spec) (sandbox.Box, error) {
	return nil, d.unavailable()
}

func (d *Driver) unavailable() error {
	return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver "+d.wrapper.Name+" needs Linux; choose another driver", nil)
}

// Main returns: there are no boxes of this kind on this system.
func Main() {}
