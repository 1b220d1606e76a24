//go:build !linux

package docker

import (
	"context"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// Driver starts boxes as containers.
type Driver struct{}

// New makes a driver.
func New(Options) *Driver { return &Driver{} }

var errPlatform = writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver docker shows directories of this machine to boxes, which takes Linux", nil)

// Probe implements sandbox.Driver.
func (*Driver) Probe(context.Context) (sandbox.Features, error) { return nil, errPlatform }

// Start implements sandbox.Driver.
func (*Driver) Start(context.Context, writ.Writ, sandbox.Spec) (sandbox.Box, error) {
	return nil, errPlatform
}

// Own does nothing.
func (*Driver) Own([]byte) {}

// Reconcile does nothing.
func (*Driver) Reconcile(context.Context) (int, error) { return 0, nil }

// Close does nothing.
func (*Driver) Close() error { return nil }

// Main does nothing.
func Main() {}
