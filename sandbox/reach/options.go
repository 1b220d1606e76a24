package reach

import "time"

// Options are the operator's choices about every box. The zero value is the strictest.
type Options struct {
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
	defaultDisk   = 16 << 30
	defaultTmp    = 64 << 20
	defaultMemory = 4 << 30 // of data, since WebAssembly and Java reserve far more than they use
	ReserveMemory = 64 << 30
)
