//go:build unix

package cli

import (
	"os"
	"os/exec"
	"syscall"
)

// detach gives the daemon a session of its own: Ctrl-C in the caller's terminal
// is not meant for it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// lockFile reports whether the file is this process's alone, until it is closed.
func lockFile(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) != syscall.EWOULDBLOCK
}
