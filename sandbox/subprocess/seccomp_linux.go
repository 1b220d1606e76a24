package subprocess

import (
	"slices"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"golang.org/x/sys/unix"
)

// refused are the calls that a box has no use for or could get out by. They fail
// with EPERM. Names that an architecture does not have are ignored.
var refused = []string{
	// The network, whole: with no socket there is no address to check.
	"socket", "socketcall", "connect", "bind", "listen", "accept", "accept4",
	// Other processes.
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp",
	"migrate_pages", "move_pages",
	// Kernel interfaces with a history.
	"bpf", "perf_event_open", "userfaultfd", "memfd_secret", "keyctl", "add_key", "request_key", "lookup_dcookie", "nfsservctl",
	"vm86", "vm86old", "modify_ldt", "uselib", "sysfs", "_sysctl", "syslog", "vhangup", "iopl", "ioperm",
	"fanotify_init", "fanotify_mark",
	// Namespaces, mounts and roots.
	"unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount",
	"fsopen", "fsmount", "fsconfig", "fspick", "mount_setattr", "name_to_handle_at", "open_by_handle_at",
	// The machine.
	"swapon", "swapoff", "reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
	"create_module", "get_kernel_syms", "query_module", "acct", "quotactl", "quotactl_fd", "settimeofday", "stime",
	"clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64", "adjtimex", "sethostname", "setdomainname",
	// System V and POSIX message queues: the host's IPC namespace is shared, and
	// identifiers can be guessed.
	"ipc", "shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop",
	"semtimedop_time64", "semctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
	// Watching tells the names in directories that cannot be read; Landlock has
	// no say in it.
	"inotify_add_watch",
}

// unsupported fail as if a user's attributes could not be had: by path they can
// be read past Landlock, and programs take this answer well.
var unsupported = []string{"getxattr", "lgetxattr", "getxattrat", "listxattr", "llistxattr", "listxattrat"}

// missing fail with ENOSYS, so that programs take the older way: io_uring does
// what seccomp cannot see, and clone3 and openat2 have their arguments in memory,
// where it cannot look.
var missing = []string{"io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2"}

// refusedListed are ways past a list of programs: executing what has no path.
var refusedListed = []string{"memfd_create", "execveat"}

// restrictCalls installs the filters on all threads.
//
// The library sends a foreign architecture (int 0x80 on amd64) to the default
// action, so the default must refuse: the first filter allows by name all that
// is known and not refused. And within one of its filters a call whose
// conditions do not match is compared on with an argument in place of its
// number; so each call with conditions gets a filter of its own, of which the
// kernel takes the strictest answer.
func restrictCalls(listed bool) error {
	info, err := arch.GetInfo("")
	if err != nil {
		return err
	}
	policies := []seccomp.Policy{callsByName(info, listed)}
	for _, c := range callsByArgument() {
		if _, ok := info.SyscallNames[c.name]; !ok {
			continue
		}
		var named []seccomp.NameWithConditions
		for _, cond := range c.refuse {
			named = append(named, seccomp.NameWithConditions{Name: c.name, Conditions: cond})
		}
		policies = append(policies, seccomp.Policy{
			DefaultAction: seccomp.ActionAllow,
			Syscalls:      []seccomp.SyscallGroup{{NamesWithCondtions: named, Action: errno(unix.EPERM)}},
		})
	}
	// The last one loaded is asked first, and loading needs calls that the first
	// one allows; any order works.
	for _, p := range policies {
		if err := seccomp.LoadFilter(seccomp.Filter{NoNewPrivs: true, Flag: seccomp.FilterFlagTSync, Policy: p}); err != nil {
			return err
		}
	}
	return nil
}

func errno(e unix.Errno) seccomp.Action { return seccomp.ActionErrno | seccomp.Action(e) }

// callsByName refuses what is listed and what this program has never heard of.
func callsByName(info *arch.Info, listed bool) seccomp.Policy {
	no := refused
	if listed {
		no = append(slices.Clone(refused), refusedListed...)
	}
	var denied, quiet, absent, allowed []string
	for name := range info.SyscallNames {
		switch {
		case slices.Contains(no, name):
			denied = append(denied, name)
		case slices.Contains(unsupported, name):
			quiet = append(quiet, name)
		case slices.Contains(missing, name):
			absent = append(absent, name)
		default:
			allowed = append(allowed, name)
		}
	}
	return seccomp.Policy{
		DefaultAction: seccomp.ActionErrno, // with EPERM
		Syscalls: []seccomp.SyscallGroup{
			{Names: denied, Action: errno(unix.EPERM)},
			{Names: quiet, Action: errno(unix.EOPNOTSUPP)},
			{Names: absent, Action: errno(unix.ENOSYS)},
			{Names: allowed, Action: seccomp.ActionAllow},
		},
	}
}
