package firejail

import "github.com/writ-run/writ/sandbox/wrapped"

// Name is what the configuration calls this driver.
const Name = "firejail"

// Options configure a Driver. The zero value is the strictest.
type Options = wrapped.Options

// Driver starts boxes with firejail.
type Driver = wrapped.Driver

// New makes a driver. It does nothing yet.
func New(o Options) *Driver { return wrapped.New(wrapper, o) }
