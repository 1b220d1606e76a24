package prove

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// kernel makes shared memory and a message queue that anybody may use, where the kernel
// has them, a descriptor that is not closed when a program is executed, and finds the
// namespaces of the host: $NS_net and so on.
func (h *host) kernel(dir string) error {
	if shm, err := unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o666); err == nil {
		h.last = append(h.last, func() { unix.SysvShmCtl(shm, unix.IPC_RMID, nil) })
		h.vars["SHM"] = fmt.Sprint(shm)
	}
	if name, err := syscall.BytePtrFromString(h.vars["ABSTRACT"]); err == nil {
		small := [8]int64{1: 1, 2: 1} // one message of a byte: a user has room for ten of the usual size
		fd, _, errno := syscall.Syscall6(syscall.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), syscall.O_CREAT|syscall.O_RDWR, 0o666, uintptr(unsafe.Pointer(&small)), 0, 0)
		if errno == 0 {
			syscall.Close(int(fd))
			h.last = append(h.last, func() { syscall.Syscall(syscall.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name)), 0, 0) })
			h.vars["QUEUE"] = h.vars["ABSTRACT"]
		}
	}
	for _, ns := range namespaces {
		h.vars["NS_"+ns], _ = os.Readlink("/proc/self/ns/" + ns)
	}
	for _, disk := range []string{"vda", "sda", "nvme0n1", "xvda", "loop0"} {
		if _, err := os.Lstat("/dev/" + disk); err == nil && h.vars["DISK"] == "" {
			h.vars["DISK"] = "/dev/" + disk
		}
	}
	h.terminal()
	leaked := filepath.Join(dir, "leaked")
	if err := os.WriteFile(leaked, []byte(canary), 0o644); err != nil {
		return err
	}
	low, err := syscall.Open(leaked, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(low)
	// High, where no program that starts another has one of its own.
	fd, err := unix.FcntlInt(uintptr(low), unix.F_DUPFD, 70)
	if err != nil {
		return err
	}
	h.last = append(h.last, func() { syscall.Close(fd) })
	h.vars["LEAK"] = fmt.Sprint(fd)
	return nil
}

// terminal opens a pseudo terminal that anybody may, where there are any: $PTY, and in
// $PTYDEVS the filesystems that terminals of the host are on.
func (h *host) terminal() {
	for _, path := range []string{"/dev/ptmx", "/dev/pts/ptmx"} {
		var st unix.Stat_t
		if unix.Stat(path, &st) == nil {
			h.vars["PTYDEVS"] += fmt.Sprint(st.Dev) + " "
		}
	}
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	h.last = append(h.last, func() { unix.Close(fd) })
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil && unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0) == nil {
		h.vars["PTY"] = fmt.Sprint("/dev/pts/", n)
		os.Chmod(h.vars["PTY"], 0o666)
	}
}

var namespaces = strings.Fields("user mnt pid net ipc uts cgroup")

// setAttribute sets an attribute where the file system has them.
func setAttribute(path, name string, value []byte) error {
	return syscall.Setxattr(path, name, value, 0)
}

// onDisk reports whether what is written to a directory goes to a disk.
func onDisk(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type != unix.TMPFS_MAGIC && fs.Type != unix.RAMFS_MAGIC
}

func changedAt(info fs.FileInfo) int64 {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return st.Ctim.Nano()
}
