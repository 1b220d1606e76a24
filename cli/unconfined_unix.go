//go:build unix

package cli

import (
	"os"
	"syscall"
)

// passedOn are the signals that are meant for the command that runs here.
var passedOn = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2}
