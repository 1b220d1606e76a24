//go:build unix && !linux

package cli

import (
	"fmt"
	"syscall"
)

// WithholdMemory keeps what this process and those it starts have in memory, which is where
// secrets are while they are used, out of core dumps.
func WithholdMemory() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	return nil
}
