//go:build unix

package main

import (
	"os"
	"syscall"
)

// hangup tells the daemon to read its configuration again.
var hangup os.Signal = syscall.SIGHUP
