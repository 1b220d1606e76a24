package subprocess

import (
	"fmt"
	"unsafe"

	"github.com/writ-run/writ/sandbox/calls"
	"golang.org/x/sys/unix"
)

// restrictCalls installs the filter on all threads.
func restrictCalls(listed bool) error {
	filter, err := calls.Filter(calls.Kind{Listed: listed})
	if err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	thread, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	switch {
	case errno != 0:
		return errno
	case thread != 0:
		return fmt.Errorf("thread %d does not take the filter", thread)
	}
	return nil
}
