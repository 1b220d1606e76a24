package native

import (
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/protect"
	"github.com/writ-run/writ/sandbox/reach"
)

// Name is what the configuration calls this driver.
const Name = "native"

// Options configure a Driver. The zero value is the strictest.
type Options struct {
	reach.Options
	// Deployment names the control groups that bound a whole box; of lower-case
	// letters, digits and dashes. Empty: there are none, and the limits of single
	// processes are all there is.
	Deployment string
	// Program is this program's own file, which a probe shows inside. Empty: found.
	Program string
	// Outlet is the way out of boxes that reach hosts. Nil: none does.
	Outlet sandbox.Outlet
	// Ahead is what was begun already. Nil: nothing.
	Ahead *Ahead
}

// New makes a driver. It does nothing yet.
func New(o Options) *Driver { return &Driver{opts: o} }

// Protect has the driver keep the protected names of what a box may write. It is said
// before the first box; without it, what may be written can be written whole.
func (d *Driver) Protect(f *protect.Finder) { d.finder = f }

// Name implements sandbox.Driver.
func (d *Driver) Name() string { return Name }

var _ sandbox.Driver = (*Driver)(nil)
