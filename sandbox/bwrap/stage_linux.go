package bwrap

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// stage makes a mount namespace, for the thread that it is called on and for what that
// starts, in which the user of the box can get to what the box is to see: root may have
// resolved paths through directories that only root can enter, and bubblewrap, which is
// that user, goes by path.
func (v *view) stage(files []*os.File) error {
	if err := unix.Unshare(unix.CLONE_NEWNS | unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	trees := map[int]int{}
	for i, path := range v.opened {
		tree, err := cloneTree(path, v.files[i])
		if err != nil {
			return fmt.Errorf("show %s: %w", path, err)
		}
		defer unix.Close(tree)
		trees[i] = tree
	}
	// Where bubblewrap looks for nothing else.
	if err := unix.Mount("tmpfs", reach.PrivateTmp, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=1m"); err != nil {
		return err
	}
	for i, tree := range trees {
		f, err := attach(tree, filepath.Join(reach.PrivateTmp, fmt.Sprint(i)))
		if err != nil {
			return fmt.Errorf("show %s: %w", v.opened[i], err)
		}
		v.staged = append(v.staged, f)
		files[i] = f
	}
	return nil
}

// cloneTree copies the mounts at and below path, which is still what was opened there.
func cloneTree(path string, was *os.File) (int, error) {
	fd, err := restrict.OpenNoSymlinks(path)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fd)
	var a, b unix.Stat_t
	if err := unix.Fstat(fd, &a); err != nil {
		return -1, err
	}
	if err := unix.Fstat(int(was.Fd()), &b); err != nil {
		return -1, err
	}
	if a.Dev != b.Dev || a.Ino != b.Ino {
		return -1, fmt.Errorf("it was replaced")
	}
	return unix.OpenTree(fd, "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
}

// attach mounts a tree at a new path, and opens it there.
func attach(tree int, at string) (*os.File, error) {
	var st unix.Stat_t
	if err := unix.Fstat(tree, &st); err != nil {
		return nil, err
	}
	var err error
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = os.Mkdir(at, 0o755)
	} else {
		err = os.WriteFile(at, nil, 0o644)
	}
	if err != nil {
		return nil, err
	}
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return nil, err
	}
	fd, err := restrict.OpenNoSymlinks(at)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), at), nil
}
