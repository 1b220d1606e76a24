package sandboxtest

import (
	"fmt"
	"syscall"
	"testing"
	"unsafe"

	"github.com/writ-run/writ/sandbox"
	"golang.org/x/sys/unix"
)

// testKernel makes the system calls that a box must not have (group H), by
// number. Each is one that would work, or fail differently, outside.
func testKernel(t *testing.T, d sandbox.Driver, have sandbox.Features) {
	nr := func(format string, n ...any) string { return `py "` + fmt.Sprintf(format, n...) + `"` }
	works := nr("call(%d)", syscall.SYS_GETPID)
	eperm := func(name string, n int, args string) row {
		return row{name, works, nr("call(%d,%s)", n, args)}
	}
	// These are refused whatever they are given; the answer must be the filter's.
	refused := func(name string, n int, args string, want string) row {
		return row{name, works, nr("r=libc.syscall(%d,%s); sys.exit(r<0 and ctypes.get_errno()==errno.%s)", n, args, want)}
	}
	rows := []row{
		refused("ptrace traceme", syscall.SYS_PTRACE, "0,0,0,0", "EPERM"),
		refused("process_vm_readv", vmReadv, "os.getpid(),0,0,0,0,0", "EPERM"),
		refused("pidfd_getfd", 438, "3,0,0", "EPERM"),
		refused("kcmp", kcmp, "os.getpid(),os.getpid(),0,0,0", "EPERM"),
		refused("io_uring_setup", 425, "1,0", "ENOSYS"),
		refused("clone3", 435, "0,0", "ENOSYS"),
		refused("openat2", 437, "-100,b'file',0,0", "ENOSYS"),
		refused("bpf", bpfCall, "0,0,0", "EPERM"),
		refused("perf_event_open", perfOpen, "0,0,0,0,0", "EPERM"),
		refused("userfaultfd", userfaultfd, "1", "EPERM"),
		refused("keyctl", syscall.SYS_KEYCTL, "0,-3,0", "EPERM"),
		refused("add_key", syscall.SYS_ADD_KEY, "b'user',b'a',b'b',1,-3", "EPERM"),
		eperm("unshare user", syscall.SYS_UNSHARE, "0x10000000"),
		eperm("unshare nothing", syscall.SYS_UNSHARE, "0"),
		eperm("clone a user namespace", syscall.SYS_CLONE, "0x10000011,0,0,0,0"),
		eperm("clone a network namespace", syscall.SYS_CLONE, "0x40000011,0,0,0,0"),
		refused("setns", setnsCall, "0,0", "EPERM"),
		refused("mount", syscall.SYS_MOUNT, "0,b'/tmp',0,0x1000,0", "EPERM"),
		refused("open_tree", 428, "-100,b'/',1", "EPERM"),
		refused("fsopen", 430, "b'tmpfs',0", "EPERM"),
		refused("mount_setattr", 442, "-100,b'/',0,0,0", "EPERM"),
		refused("chroot", syscall.SYS_CHROOT, "b'/tmp'", "EPERM"),
		refused("pivot_root", syscall.SYS_PIVOT_ROOT, "b'/',b'/'", "EPERM"),
		refused("name_to_handle_at", nameToHandle, "-100,b'/etc',0,0,0", "EPERM"),
		eperm("personality", syscall.SYS_PERSONALITY, "0x0040000"),
		refused("syslog", syscall.SYS_SYSLOG, "10,0,0", "EPERM"),
		refused("TIOCSTI", syscall.SYS_IOCTL, "0,0x5412,b'x'", "EPERM"),
		refused("TIOCSTI, upper half", syscall.SYS_IOCTL, "0,ctypes.c_ulong(0x12e00005412),b'x'", "EPERM"),
		refused("TIOCSTI, sign", syscall.SYS_IOCTL, "0,ctypes.c_ulong(0xffffffff00005412),b'x'", "EPERM"),
		refused("TIOCLINUX", syscall.SYS_IOCTL, "0,0x541c,b'x'", "EPERM"),
		eperm("fanotify", fanotifyInit, "0x200,0"),
		eperm("an unknown call", 10000, "0"),
	}
	shm, queue := hostQueues(t)
	rows = append(rows,
		eperm("shared memory of the host", syscall.SYS_SHMCTL, fmt.Sprintf("%d,2,bytes(256)", shm)), // IPC_STAT
		eperm("a message queue of the host", syscall.SYS_MQ_OPEN, fmt.Sprintf("b'%s',0,0,0", queue)))
	if !have.Has(sandbox.ProcessTable) { // what is nobody else's need not be refused
		rows = append(rows,
			refused("shmget", syscall.SYS_SHMGET, "0,4096,0o1600", "EPERM"),
			refused("shmat", syscall.SYS_SHMAT, "0,0,0", "EPERM"),
			refused("msgget", syscall.SYS_MSGGET, "0,0o1600", "EPERM"),
			refused("semget", syscall.SYS_SEMGET, "0,1,0o1600", "EPERM"),
			refused("mq_open", syscall.SYS_MQ_OPEN, "b'x',0o102,0o600,0", "EPERM"),
			eperm("limits of the supervisor", prlimitCall, "os.getppid(),7,0,0"),
			eperm("nice of a user", syscall.SYS_SETPRIORITY, "2,0,0"),
			eperm("affinity of the supervisor", syscall.SYS_SCHED_SETAFFINITY, "os.getppid(),8,bytes([1]*8)"))
	}
	runRows(t, d, rows, (*world).confinement, nil)
	t.Run("other architecture", func(t *testing.T) { testForeignCalls(t, d) })
}

// hostQueues makes shared memory and a message queue on the host that anybody may use.
func hostQueues(t *testing.T) (shm int, queue string) {
	t.Helper()
	shm, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666)
	must(t, err)
	t.Cleanup(func() { unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })
	queue = fmt.Sprintf("writ-test-%d", syscall.Getpid())
	name, err := syscall.BytePtrFromString(queue)
	must(t, err)
	fd, _, errno := syscall.Syscall6(syscall.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), syscall.O_CREAT|syscall.O_RDWR, 0o666, 0, 0, 0)
	if errno != 0 {
		t.Fatal(errno)
	}
	syscall.Close(int(fd))
	t.Cleanup(func() { syscall.Syscall(syscall.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0) })
	return shm, queue
}
