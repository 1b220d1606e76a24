package prove

import (
	"fmt"
	"slices"

	"github.com/writ-run/writ/sandbox"
	"golang.org/x/sys/unix"
)

// The filter's answers. Where a driver's filter is not ours, a call that we answer with
// one may get the other; a call that the kernel no longer has is ENOSYS anyway.
const (
	denied = "EPERM"
	absent = "ENOSYS EPERM"
)

// kernelProbes make the system calls that a box must not have, by number (group H). The
// arguments are such that they change nothing, and that the kernel itself would answer
// something else where it can, so that the answer must be the filter's.
func kernelProbes() []Probe {
	var all []Probe
	no := func(name string, nr int, args, want string) {
		all = append(all, row(name, getpid, fmt.Sprintf(`py "refused('%s',%d,%s)"`, want, nr, args), "EPERM", "ENOSYS"))
	}
	otherProcesses(no)
	no("io_uring_setup", unix.SYS_IO_URING_SETUP, "1,0", absent)
	no("io_uring_enter", unix.SYS_IO_URING_ENTER, "-1,0,0,0,0,0", absent)
	no("io_uring_register", unix.SYS_IO_URING_REGISTER, "-1,0,0,0", absent)
	no("clone3", unix.SYS_CLONE3, "0,0", absent)
	no("openat2", unix.SYS_OPENAT2, "-100,b'file',0,0", absent)
	no("bpf", unix.SYS_BPF, "0,0,0", denied)
	no("perf_event_open", unix.SYS_PERF_EVENT_OPEN, "0,0,0,-1,-1", denied)
	no("userfaultfd", unix.SYS_USERFAULTFD, "0x10001", denied)
	no("memfd_secret", unix.SYS_MEMFD_SECRET, "0x1000", denied)
	no("keyctl", unix.SYS_KEYCTL, "0,-3,0", denied)
	no("add_key", unix.SYS_ADD_KEY, "b'user',b'a',b'b',1,-3", denied)
	no("request_key", unix.SYS_REQUEST_KEY, "b'user',b'a',0,0", denied)
	no("syslog", unix.SYS_SYSLOG, "10,0,0", denied)
	no("fanotify", unix.SYS_FANOTIFY_INIT, "0x200,0", denied)
	no("fanotify_mark", unix.SYS_FANOTIFY_MARK, "-1,0,0,-1,0", denied)
	no("an unknown call", 10000, "0", absent)
	mounts(no)
	machine(no)
	architecture(no)
	no("personality", unix.SYS_PERSONALITY, "0x0040000", denied)
	no("personality, 32 bits", unix.SYS_PERSONALITY, "8", denied)
	no("TIOCSTI", unix.SYS_IOCTL, "0,0x5412,b'x'", denied)
	no("TIOCSTI, upper half", unix.SYS_IOCTL, "0,ctypes.c_ulong(0x12e00005412),b'x'", denied)
	no("TIOCSTI, sign", unix.SYS_IOCTL, "0,ctypes.c_ulong(0xffffffff00005412),b'x'", denied)
	no("TIOCLINUX", unix.SYS_IOCTL, "0,0x541c,b'x'", denied)
	reservations(no)
	all = append(all, spaces()...)
	all = append(all, foreign()...)
	all = append(all, row("a filter on top", getpid, fmt.Sprintf(`py "
f=(ctypes.c_uint16*8)(6,0,0,0x7fff)  # BPF_RET, SECCOMP_RET_ALLOW
class prog(ctypes.Structure): _fields_=[('len',ctypes.c_uint16),('filter',ctypes.c_void_p)]
if raw(%d,1,0,ctypes.byref(prog(1,ctypes.addressof(f))))<0: end(2,'no filter:',ctypes.get_errno())
refused('EPERM',%d,0,0,0,0)"`, unix.SYS_SECCOMP, unix.SYS_PTRACE), "EPERM"))
	return append(group("kernel", sandbox.Unprivileged, all), queues()...)
}

var getpid = fmt.Sprintf(`py "call(%d)"`, unix.SYS_GETPID)

type refuser func(name string, nr int, args, want string)

// otherProcesses are the ways into a process.
func otherProcesses(no refuser) {
	no("ptrace traceme", unix.SYS_PTRACE, "0,0,0,0", denied)
	no("ptrace seize", unix.SYS_PTRACE, "0x4206,-5,0,0", denied)
	no("process_vm_readv", unix.SYS_PROCESS_VM_READV, "os.getpid(),0,0,0,0,0", denied)
	no("process_vm_writev", unix.SYS_PROCESS_VM_WRITEV, "os.getpid(),0,0,0,0,0", denied)
	no("process_madvise", unix.SYS_PROCESS_MADVISE, "-1,0,0,0,0", denied)
	no("process_mrelease", unix.SYS_PROCESS_MRELEASE, "-1,0", denied)
	no("pidfd_getfd", unix.SYS_PIDFD_GETFD, "-1,0,0", denied)
	no("prlimit by number", unix.SYS_PRLIMIT64, "os.getpid(),7,0,0", denied)
	no("kcmp", unix.SYS_KCMP, "os.getpid(),os.getpid(),0,0,0", denied)
	no("migrate_pages", unix.SYS_MIGRATE_PAGES, "0,0,0,0", denied)
	no("move_pages", unix.SYS_MOVE_PAGES, "0,0,0,0,0,0", denied)
}

// reservations take space of a disk that nobody wrote to, which is how bytes are counted.
// Of no file, so that the kernel itself would answer something else.
func reservations(no refuser) {
	for _, r := range []struct {
		name   string
		number uint32
	}{
		{"FS_IOC_RESVSP", 0x40305828}, {"FS_IOC_UNRESVSP", 0x40305829}, {"FS_IOC_RESVSP64", 0x4030582a}, {"FS_IOC_UNRESVSP64", 0x4030582b},
		{"FS_IOC_ZERO_RANGE", 0x40305839}, {"FS_IOC_RESVSP64, of 32 bits", 0x402c582a},
	} {
		no(r.name, unix.SYS_IOCTL, fmt.Sprintf("-1,ctypes.c_ulong(%#x),bytes(48)", r.number), denied)
	}
	no("FS_IOC_RESVSP64, upper half", unix.SYS_IOCTL, "-1,ctypes.c_ulong(0x12e4030582a),bytes(48)", denied)
}

// mounts are ways to another view of the files.
func mounts(no refuser) {
	const nowhere = "b'/nowhere-at-all'"
	no("mount", unix.SYS_MOUNT, "0,"+nowhere+",0,0x1000,0", denied)
	no("remount", unix.SYS_MOUNT, "0,"+nowhere+",0,0x1020,0", denied)
	no("umount", unix.SYS_UMOUNT2, nowhere+",0x1000", denied)
	no("umount, lazily", unix.SYS_UMOUNT2, nowhere+",2", denied)
	no("open_tree", unix.SYS_OPEN_TREE, "-100,"+nowhere+",0", denied)
	no("open_tree, a copy", unix.SYS_OPEN_TREE, "-100,"+nowhere+",1", denied)
	no("move_mount", unix.SYS_MOVE_MOUNT, "-1,"+nowhere+",-1,"+nowhere+",0", denied)
	no("fsopen", unix.SYS_FSOPEN, "b'no-such-fs',0", denied)
	no("fsmount", unix.SYS_FSMOUNT, "-1,0,0", denied)
	no("fsconfig", unix.SYS_FSCONFIG, "-1,0,0,0,0", denied)
	no("fspick", unix.SYS_FSPICK, "-100,"+nowhere+",0", denied)
	no("mount_setattr", unix.SYS_MOUNT_SETATTR, "-100,"+nowhere+",0,0,0", denied)
	no("chroot", unix.SYS_CHROOT, nowhere, denied)
	no("chroot, here", unix.SYS_CHROOT, "b'.'", denied)
	no("pivot_root", unix.SYS_PIVOT_ROOT, nowhere+","+nowhere, denied)
	no("name_to_handle_at", unix.SYS_NAME_TO_HANDLE_AT, "-100,b'/etc',0,0,0", denied)
	no("open_by_handle_at", unix.SYS_OPEN_BY_HANDLE_AT, "-1,0,0", denied)
}

// machine are calls that change the machine as a whole. None of these could.
func machine(no refuser) {
	no("swapon", unix.SYS_SWAPON, "b'/nowhere-at-all',0", denied)
	no("swapoff", unix.SYS_SWAPOFF, "b'/nowhere-at-all'", denied)
	no("reboot", unix.SYS_REBOOT, "0,0,0,0", denied)
	no("kexec_load", unix.SYS_KEXEC_LOAD, "0,0,0,-1", denied)
	no("kexec_file_load", unix.SYS_KEXEC_FILE_LOAD, "-1,-1,0,0,0", denied)
	no("init_module", unix.SYS_INIT_MODULE, "0,0,b''", denied)
	no("finit_module", unix.SYS_FINIT_MODULE, "-1,b'',0", denied)
	no("delete_module", unix.SYS_DELETE_MODULE, "b'no-such-module',0x800", denied)
	no("acct", unix.SYS_ACCT, "b'/nowhere-at-all'", denied)
	no("quotactl", unix.SYS_QUOTACTL, "0xff,0,0,0", denied)
	no("quotactl_fd", unix.SYS_QUOTACTL_FD, "-1,0xff,0,0", denied)
	no("settimeofday", unix.SYS_SETTIMEOFDAY, "1,0", denied)
	no("clock_settime", unix.SYS_CLOCK_SETTIME, "0,1", denied)
	no("clock_adjtime", unix.SYS_CLOCK_ADJTIME, "0,1", denied)
	no("adjtimex", unix.SYS_ADJTIMEX, "1", denied)
	no("sethostname", unix.SYS_SETHOSTNAME, "b'x',-1", denied)
	no("setdomainname", unix.SYS_SETDOMAINNAME, "b'x',-1", denied)
}

// queues are those of the host, which any program may guess; and where the box shares
// the host's, all of them, with the limits and the scheduling of others.
func queues() []Probe {
	no := func(name string, nr int, args string) Probe {
		return row(name, getpid, fmt.Sprintf(`py "refused('EPERM',%d,%s)"`, nr, args), "EPERM")
	}
	host := []Probe{
		// EPERM of a filter; else the box has queues of its own and this one is not there.
		row("shared memory of the host", getpid, fmt.Sprintf(`py "call(%d,$SHM,2,bytes(256))"`, unix.SYS_SHMCTL), eperm, einval, "Identifier removed"),
		row("a message queue of the host", getpid, fmt.Sprintf(`py "call(%d,b'$QUEUE',0,0,0)"`, unix.SYS_MQ_OPEN), eperm, enoent, eacces, enosys),
	}
	shared := group("", "", []Probe{
		no("shmget", unix.SYS_SHMGET, "0,4096,0o1600"), no("shmat", unix.SYS_SHMAT, "0,0,0"), no("msgget", unix.SYS_MSGGET, "0,0o1600"),
		no("semget", unix.SYS_SEMGET, "0,1,0o1600"), no("mq_open", unix.SYS_MQ_OPEN, "b'x',0o102,0o600,0"), no("inotify_add_watch", unix.SYS_INOTIFY_ADD_WATCH, "0,0,0"),
		no("inotify_init", unix.SYS_INOTIFY_INIT1, "0"),
		no("limits of the supervisor", unix.SYS_PRLIMIT64, "os.getppid(),7,0,0"),
		no("nice of a user", unix.SYS_SETPRIORITY, "2,0,0"),
		no("affinity of the supervisor", unix.SYS_SCHED_SETAFFINITY, "os.getppid(),8,bytes([1]*8)"),
	}, func(p *Probe) { p.shared = true })
	return group("kernel", sandbox.OwnProcesses, slices.Concat(host, shared))
}
