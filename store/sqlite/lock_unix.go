//go:build unix

package sqlite

import (
	"os"
	"syscall"
	"time"
)

// lock holds the lock file until release. The kernel gives it up when the process
// dies, so a crash leaves nothing to clear away; a child that was about to become
// another program may hold it a moment longer, so it is tried for a tenth of a second.
// Not longer: whoever waits here would take over from a daemon that is told to end.
func lock(path string) (release func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, lockedBy(err)
	}
	for tries := 5; ; tries-- {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f.Close, nil
		}
		if tries == 0 || err != syscall.EWOULDBLOCK {
			f.Close()
			return nil, lockedBy(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
