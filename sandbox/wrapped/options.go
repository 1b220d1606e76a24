package wrapped

import (
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
)

// Options configure a Driver. The zero value is the strictest.
type Options struct {
	reach.Options
	// Program is this program's own file, whose main function calls Main and
	// probe.Main. Empty: found.
	Program string
}

// Name implements sandbox.Driver.
func (d *Driver) Name() string { return d.wrapper.Name }

var _ sandbox.Driver = (*Driver)(nil)
