package seatbelt

import "github.com/writ-run/writ/sandbox"

// Name is what the configuration calls this driver.
const Name = "seatbelt"

// Options configure a Driver. The zero value is the strictest.
type Options struct {
	// PathPrefixes are directories whose programs may be in PATH besides those of the
	// system (extra_safe_path_prefixes).
	PathPrefixes []string
	// Config and Git are names that stay read-only below what can be written: anywhere,
	// and directly in a .git.
	Config, Git []string
}

// New makes a driver. It does nothing yet.
func New(o Options) *Driver { return &Driver{opts: o} }

// Name implements sandbox.Driver.
func (d *Driver) Name() string { return Name }

var _ sandbox.Driver = (*Driver)(nil)
