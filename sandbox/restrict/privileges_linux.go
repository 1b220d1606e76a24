package restrict

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/writ-run/writ/sandbox/calls"
	"golang.org/x/sys/unix"
)

// Privileges leaves none, and no way to one, as another user where one is named; the user
// is never root. Capabilities are those of this thread, which executes the command; the
// others end then.
func Privileges(as *syscall.Credential) error {
	for c := uintptr(0); ; c++ {
		have, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, c, 0, 0, 0)
		if err == unix.EINVAL && c > unix.CAP_AUDIT_READ {
			break // past the last one
		}
		if err == nil && have != 0 {
			err = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		}
		if err != nil {
			return fmt.Errorf("capability bounding set: %w", err)
		}
	}
	if as != nil {
		if err := become(int(as.Uid), int(as.Gid)); err != nil {
			return err
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil && err != unix.EINVAL { // else this kernel has none
		return fmt.Errorf("ambient capabilities: %w", err)
	}
	var none [2]unix.CapUserData
	if err := unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &none[0]); err != nil {
		return fmt.Errorf("capset: %w", err)
	}
	if unix.Getuid() == 0 || unix.Geteuid() == 0 || unix.Getgid() == 0 || unix.Getegid() == 0 {
		return errors.New("this is root")
	}
	return nil
}

func become(uid, gid int) error {
	if err := unix.Setgroups(nil); err != nil {
		return fmt.Errorf("setgroups: %w", err)
	}
	if err := unix.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("setresgid: %w", err)
	}
	if err := unix.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("setresuid: %w", err)
	}
	return nil
}

// Calls installs the filter on all threads.
func Calls(k calls.Kind) error {
	filter, err := calls.Filter(k)
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
