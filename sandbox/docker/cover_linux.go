package docker

import (
	"strconv"

	"github.com/writ-run/writ/sandbox/protect"
	"golang.org/x/sys/unix"
)

// cover mounts one protected name, in a namespace of this process alone: the container goes
// on without it.
func cover(m protect.Mount) error {
	flags := uint64(unix.O_PATH | unix.O_CLOEXEC)
	if m.Link {
		flags |= unix.O_NOFOLLOW
	}
	at, err := unix.Openat2(unix.AT_FDCWD, m.Path, &unix.OpenHow{Flags: flags, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return err
	}
	defer unix.Close(at)
	switch {
	case m.How == protect.Masked && m.Dir:
		return unix.Mount("tmpfs", "/proc/self/fd/"+strconv.Itoa(at), "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0,size=4k")
	case m.How == protect.Masked:
		null, err := unix.Open("/dev/null", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		defer unix.Close(null)
		return onto(null, at, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC|unix.MOUNT_ATTR_NODEV) // without devices it cannot be opened
	case m.How == protect.ReadOnly:
		return onto(at, at, unix.MOUNT_ATTR_RDONLY)
	}
	return onto(at, at, 0)
}

// onto binds one open file onto another, with what is mounted below it.
func onto(from, at int, attrs uint64) error {
	tree, err := unix.OpenTree(from, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return err
	}
	defer unix.Close(tree)
	set := unix.MountAttr{Attr_set: attrs | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &set); err != nil {
		return err
	}
	return unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
