//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// detach gives the daemon a session of its own: Ctrl-C in the caller's terminal
// is not meant for it.
func detach(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// hangup tells the daemon to read its configuration again.
var hangup os.Signal = syscall.SIGHUP
