package subprocess

import (
	"time"

	"github.com/writ-run/writ/sandbox"
)

// Name is what the configuration calls this driver.
const Name = "subprocess"

// verb is the first argument of this program when it is a part of a box.
const verb = "__box"

// Options configure a Driver. The zero value is the strictest.
type Options struct {
	// Launcher is the command that runs this program's Main, without the verb
	// of the part to play. Nil: this program itself.
	Launcher []string
	// PathPrefixes are directories whose programs, at any depth, may be in PATH
	// besides those of the system (extra_safe_path_prefixes).
	PathPrefixes []string
	// EnvAllow replaces the names, or patterns with *, that are taken from the
	// daemon's environment. The denylist still beats it.
	EnvAllow []string
	// UnsafeAnyPath takes PATH from the daemon as it is (restricted_path: false).
	UnsafeAnyPath bool
	// UnsafeAnyDir lets a command start outside what it may write
	// (workspace_only: false).
	UnsafeAnyDir bool
}

// Bounds of one run where the confinement names none.
const (
	defaultWall   = 30 * time.Second
	defaultGrace  = 5 * time.Second
	defaultPids   = 256
	defaultFiles  = 1024
	defaultSize   = 1 << 30
	defaultMemory = 4 << 30 // of data, since WebAssembly and Java reserve far more than they use
	reserveMemory = 64 << 30
)

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
