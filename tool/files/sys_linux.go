package files

import (
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// direct looks at a directory by an absolute path, following no symlink on it.
func direct(path string) (fs.FileInfo, error) {
	const flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
	fd, err := unix.Open("/", flags, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: "/", Err: err}
	}
	for part := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if part == "" {
			continue
		}
		next, err := unix.Openat(fd, part, flags, 0)
		unix.Close(fd)
		if err == unix.ENOTDIR {
			return nil, errMoved
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		fd = next
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	return f.Stat()
}

// kernelFilesystems are those whose files are made up by the kernel as they are read.
var kernelFilesystems = []int64{
	unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC, unix.DEBUGFS_MAGIC, unix.TRACEFS_MAGIC, unix.CGROUP_SUPER_MAGIC, unix.CGROUP2_SUPER_MAGIC,
	unix.SECURITYFS_MAGIC, unix.BPF_FS_MAGIC, unix.PSTOREFS_MAGIC, unix.EFIVARFS_MAGIC, unix.SELINUX_MAGIC, unix.BINFMTFS_MAGIC,
}

func kernelOwned(f *os.File) bool {
	var st unix.Statfs_t
	err := unix.Fstatfs(int(f.Fd()), &st)
	return err != nil || slices.Contains(kernelFilesystems, int64(st.Type))
}

func renameNew(from int, name string, to int, as string) error {
	return unix.Renameat2(from, name, to, as, unix.RENAME_NOREPLACE)
}
