package prove

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// settings that keep a box from being made, and what to do.
var settings = []struct{ path, bad, remedy string }{
	{"/proc/sys/user/max_user_namespaces", "0", "no user namespaces may be made: sysctl -w user.max_user_namespaces=15000"},
	{"/proc/sys/kernel/unprivileged_userns_clone", "0", "ordinary users may make no user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"},
	{"/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1", "AppArmor restricts user namespaces: load a profile with 'userns,' for this program, or sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
}

// newest is the Landlock ABI that every driver can work with.
const newest = 6

// ofMachine is what this machine's settings and kernel lack.
func ofMachine() []string {
	var out []string
	for _, s := range settings {
		if b, err := os.ReadFile(s.path); err == nil && strings.TrimSpace(string(b)) == s.bad {
			out = append(out, s.remedy)
		}
	}
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	switch {
	case errno != 0:
		out = append(out, "the kernel has no Landlock, or it is off: use Linux 5.13 or later (6.12 for driver subprocess) with landlock in the lsm= list of its command line")
	case abi < newest:
		out = append(out, fmt.Sprintf("the kernel has version %d of Landlock; driver subprocess needs %d: use Linux 6.12 or later, or driver native", abi, newest))
	}
	if _, err := os.Stat("/proc/sys/kernel/seccomp"); err != nil {
		out = append(out, "the kernel has no seccomp filters: use one with CONFIG_SECCOMP_FILTER")
	}
	return out
}
