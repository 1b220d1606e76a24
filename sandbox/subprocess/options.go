package subprocess

import (
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/reach"
)

// Name is what the configuration calls this driver.
const Name = "subprocess"

// verb is the first argument of this program when it is a part of a box.
const verb = probe.Verb

// Options configure a Driver. The zero value is the strictest.
type Options struct {
	// Launcher is the command that runs this program's Main, without the verb
	// of the part to play. Nil: this program itself.
	Launcher []string
	reach.Options
}

// New makes a driver. It does nothing yet.
func New(o Options) *Driver {
	if o.Launcher == nil {
		o.Launcher = []string{"/proc/self/exe", verb}
	}
	return &Driver{opts: o}
}

// Name implements sandbox.Driver.
func (d *Driver) Name() string { return Name }

var _ sandbox.Driver = (*Driver)(nil)
