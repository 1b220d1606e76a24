package subprocess

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"golang.org/x/sys/unix"
)

const tmpfsBounds = "size=64m,nr_inodes=65536"

// arrangeMounts turns this mount namespace into the box's: all read-only but
// what may be written, and temporary directories of its own. It returns a
// descriptor for each mount shown, by path.
func arrangeMounts(j job) (map[string]int, error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, fmt.Errorf("make mounts private: %w", err)
	}
	trees := map[string]int{}
	for _, m := range j.Mounts {
		fd, err := cloneTree(m)
		if err != nil {
			return nil, fmt.Errorf("show %s: %w", m.From, err)
		}
		trees[m.At] = fd
	}
	all := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &all); err != nil {
		return nil, fmt.Errorf("make mounts read-only: %w", err)
	}
	// Parents before children, and what lies in a private directory after it.
	slices.SortStableFunc(j.Mounts, func(a, b mount) int { return len(a.At) - len(b.At) })
	attach := func(private bool) error {
		for _, m := range j.Mounts {
			if (reach.PrivateParent(m.At) != "") != private {
				continue
			}
			if err := attachTree(trees[m.At], m.At, private); err != nil {
				return fmt.Errorf("show %s: %w", m.At, err)
			}
		}
		return nil
	}
	err := attach(false)
	if err == nil {
		err = mountPrivate(j)
	}
	if err == nil {
		err = attach(true)
	}
	if err != nil {
		return nil, err
	}
	return trees, nil
}

// cloneTree copies the mounts at and below m.From, detached, with m's flags.
func cloneTree(m mount) (int, error) {
	at, err := restrict.OpenNoSymlinks(m.From)
	if err != nil {
		return -1, err
	}
	defer unix.Close(at)
	fd, err := unix.OpenTree(at, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return -1, fmt.Errorf("open_tree: %w", err)
	}
	set := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if m.ReadOnly {
		set.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if m.NoExec {
		set.Attr_set |= unix.MOUNT_ATTR_NOEXEC
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &set); err != nil {
		return -1, fmt.Errorf("mount_setattr: %w", err)
	}
	return fd, nil
}

// attachTree mounts a detached tree; makeTarget when its path is in a private
// directory, where nothing is yet.
func attachTree(tree int, at string, makeTarget bool) error {
	if makeTarget {
		if err := mountpoint(tree, at); err != nil {
			return err
		}
	}
	target, err := restrict.OpenNoSymlinks(at)
	if err != nil {
		return err
	}
	defer unix.Close(target)
	if err := unix.MoveMount(tree, "", target, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("move_mount: %w", err)
	}
	return nil
}

// mountpoint makes a directory or file for tree to be mounted on, if there is none.
func mountpoint(tree int, at string) error {
	if _, err := os.Lstat(at); err == nil {
		return nil
	}
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return os.MkdirAll(at, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// mountPrivate mounts the private directories and makes the home in them.
func mountPrivate(j job) error {
	flags := uintptr(unix.MS_NOSUID | unix.MS_NODEV)
	if j.Listed {
		flags |= unix.MS_NOEXEC
	}
	for _, dir := range reach.PrivateDirs {
		info, err := os.Lstat(dir)
		if dir != reach.PrivateTmp && (err != nil || !info.IsDir()) {
			continue // not there, or a symlink to one of the others
		}
		data := fmt.Sprintf("mode=1777,uid=%d,gid=%d,%s", j.UID, j.GID, tmpfsBounds)
		if err := unix.Mount("tmpfs", dir, "tmpfs", flags, data); err != nil {
			return fmt.Errorf("private %s: %w", dir, err)
		}
	}
	if err := os.Mkdir(reach.PrivateHome, 0o700); err != nil {
		return err
	}
	return os.Chown(reach.PrivateHome, j.UID, j.GID)
}

// cover puts something empty over a hidden path: a read-only directory, or the
// null device where devices cannot be opened. A path that is not there needs no
// cover where the box cannot make it, and cannot be hidden where it can.
func cover(path string, j job) error {
	if slices.Contains(reach.PrivateDirs, path) {
		return nil
	}
	at, err := restrict.OpenNoSymlinks(path)
	switch {
	case err == unix.ENOENT || err == unix.ENOTDIR:
		if slices.ContainsFunc(j.Writable, func(w string) bool { return reach.Within(path, w) }) {
			return errors.New("it does not exist and the box could create it; create it, or hide its directory")
		}
		return nil
	case err == unix.EACCES:
		return nil // this user cannot get there, so neither can the box
	case err != nil:
		return err
	}
	defer unix.Close(at)
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	target := "/proc/self/fd/" + strconv.Itoa(at)
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return unix.Mount("tmpfs", target, "tmpfs", unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755,size=4k")
	}
	null, err := cloneTree(mount{From: "/dev/null", ReadOnly: true, NoExec: true})
	if err != nil {
		return err
	}
	defer unix.Close(null)
	return unix.MoveMount(null, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}
