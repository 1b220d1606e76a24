package bwrap

import (
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
)

// Name is what the configuration calls this driver.
const Name = "bwrap"

// Options configure a Driver. The zero value is the strictest.
type Options struct {
	reach.Options
	// Program is this program's own file, whose main function calls wrapped.Main and
	// probe.Main. Empty: found.
	Program string
}

// New makes a driver. It does nothing yet.
func New(o Options) *Driver { return &Driver{opts: o} }

// Name implements sandbox.Driver.
func (d *Driver) Name() string { return Name }

var _ sandbox.Driver = (*Driver)(nil)
