//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// lock holds the lock file until release. The kernel gives it up when the process
// dies, so a crash leaves nothing to clear away.
func lock(path string) (release func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, lockedBy(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, lockedBy(err)
	}
	return f.Close, nil
}
