package cli

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// WithholdMemory keeps what this process and those it starts have in memory, which is where
// secrets are while they are used, out of core dumps.
//
// The limit holds for dumps to files. A dump that core_pattern pipes to a program asks no
// limit; the filter leaves every mapping out of that one. Both are handed on to whatever
// this process executes, launchers and boxes included. Being not dumpable is not, and
// refuses debuggers too, but it is for root alone: the /proc files of such a process are
// root's, those of its children before they execute as well, so that anybody else could not
// write the uid_map of a sandbox.
func WithholdMemory() error {
	if err := syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core dumps: %w", err)
	}
	err := os.WriteFile("/proc/self/coredump_filter", []byte("0"), 0)
	if err != nil && !errors.Is(err, os.ErrNotExist) { // a kernel that makes no dumps has none
		return fmt.Errorf("leave memory out of core dumps: %w", err)
	}
	if os.Geteuid() != 0 {
		return nil
	}
	if _, _, failed := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); failed != 0 {
		return fmt.Errorf("forbid core dumps: %w", failed)
	}
	return nil
}
