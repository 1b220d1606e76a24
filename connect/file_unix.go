//go:build unix

package connect

import (
	"fmt"
	"os"
	"syscall"
)

// sameOwner gives a new file the owner and group of another. Where that is not
// permitted nothing is written: its owner could not change it any more.
func sameOwner(file *os.File, of os.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	want, ok1 := of.Sys().(*syscall.Stat_t)
	have, ok2 := info.Sys().(*syscall.Stat_t)
	if !ok1 || !ok2 || want.Uid == have.Uid && want.Gid == have.Gid {
		return nil
	}
	if err := file.Chown(int(want.Uid), int(want.Gid)); err != nil {
		return fmt.Errorf("%w; it belongs to user %d and group %d: run this as that user", err, want.Uid, want.Gid)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
