package calls

import (
	"cmp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// refused are the calls that a box has no use for or could get out by. They fail
// with EPERM. Names that an architecture does not have are ignored.
var refused = []string{
	// Other processes.
	"ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease", "pidfd_getfd", "kcmp",
	"migrate_pages", "move_pages",
	// Kernel interfaces with a history.
	"bpf", "perf_event_open", "userfaultfd", "memfd_secret", "keyctl", "add_key", "request_key", "lookup_dcookie", "nfsservctl",
	"vm86", "vm86old", "modify_ldt", "uselib", "sysfs", "_sysctl", "syslog", "vhangup", "iopl", "ioperm",
	"fanotify_init", "fanotify_mark", "socketcall",
	// Namespaces, mounts and roots.
	"unshare", "setns", "mount", "umount", "umount2", "pivot_root", "chroot", "open_tree", "open_tree_attr", "move_mount",
	"fsopen", "fsmount", "fsconfig", "fspick", "mount_setattr", "name_to_handle_at", "open_by_handle_at",
	// The machine.
	"swapon", "swapoff", "reboot", "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module",
	"create_module", "get_kernel_syms", "query_module", "acct", "quotactl", "quotactl_fd", "settimeofday", "stime",
	"clock_settime", "clock_settime64", "clock_adjtime", "clock_adjtime64", "adjtimex", "sethostname", "setdomainname",
}

// refusedShared are refused where the box shares the host's namespaces.
var refusedShared = []string{
	// The network, whole: with no socket there is no address to check.
	"socket", "connect", "bind", "listen", "accept", "accept4",
	// Watching tells the names in directories that cannot be read; Landlock has
	// no say in it. Without it there is no use for what it is added to, of which a
	// user has few.
	"inotify_add_watch", "inotify_init", "inotify_init1",
}

// refusedQueues are refused where queues are shared with anybody: those of System V, with
// its shared memory, and of POSIX. Identifiers can be guessed.
var refusedQueues = []string{
	"ipc", "shmget", "shmat", "shmctl", "msgget", "msgsnd", "msgrcv", "msgctl", "semget", "semop", "semtimedop",
	"semtimedop_time64", "semctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify", "mq_getsetattr",
}

// unsupported fail, in a box that shows the host's files, as if a user's attributes
// could not be had: by path they can be read past Landlock, and programs take this
// answer well.
var unsupported = []string{"getxattr", "lgetxattr", "getxattrat", "listxattr", "llistxattr", "listxattrat"}

// unmeasured fails as it does on some filesystems: it fills a disk without writing
// anything, which is how bytes are counted. So do requests of ioctl ([reserving]).
const unmeasured = "fallocate"

// missing fail with ENOSYS, so that programs take the older way: io_uring does
// what seccomp cannot see, and clone3 and openat2 have their arguments in memory,
// where it cannot look.
var missing = []string{"io_uring_setup", "io_uring_enter", "io_uring_register", "clone3", "openat2"}

// refusedListed are ways past a list of programs: executing what has no path.
var refusedListed = []string{"memfd_create", "execveat"}

// launchers are what nobody but the launcher of a box does: it makes mounts and namespaces
// for one command after the other. None of them has a sixth argument.
var launchers = []string{"unshare", "setns", "clone", "mount", "open_tree", "move_mount", "mount_setattr", "openat2"}

// A numbered is a system call of this architecture.
type numbered struct {
	name string
	nr   uint16
}

//go:generate go run mktable.go

// number finds the number of a call, where this architecture has it.
func number(name string) (int, bool) {
	i, ok := slices.BinarySearchFunc(numbers[:], name, func(n numbered, name string) int { return strings.Compare(n.name, name) })
	if !ok {
		return 0, false
	}
	return int(numbers[i].nr), true
}

// verdicts says of every call by number, up to the last one, what becomes of it.
func verdicts(k Kind) []verdict {
	last := slices.MaxFunc(numbers[:], func(a, b numbered) int { return cmp.Compare(a.nr, b.nr) })
	out := make([]verdict, last.nr+1, last.nr+2)
	for nr := range out {
		out[nr].action = unknown // to us: nobody has looked at what it does
	}
	for _, n := range numbers {
		out[n.nr].action = allow
	}
	say := func(action uint32, names []string) {
		for _, name := range names {
			if nr, ok := number(name); ok {
				out[nr].action = action
			}
		}
	}
	say(unknown, missing)
	if !k.Alone {
		say(refuse|uint32(unix.EOPNOTSUPP), unsupported)
	}
	say(refuse|uint32(unix.EOPNOTSUPP), []string{unmeasured})
	if !k.Alone || k.GVisor {
		say(refuse|uint32(unix.EPERM), refusedQueues)
	}
	if !k.Alone {
		say(refuse|uint32(unix.EPERM), refusedShared)
	}
	if k.Listed {
		say(refuse|uint32(unix.EPERM), refusedListed)
	}
	say(refuse|uint32(unix.EPERM), refused)
	for _, g := range guards(k) {
		if nr, ok := number(g.name); ok && out[nr].action == allow {
			out[nr] = verdict{action: allow, unless: g.refuse, ask: g.ask}
		}
	}
	if !k.Keyed {
		return out
	}
	for _, name := range launchers {
		if nr, ok := number(name); ok {
			out[nr].keyed = true
		}
	}
	return out
}
