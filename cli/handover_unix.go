//go:build unix

package cli

import (
	"os"
	"syscall"
)

// replaceBy goes on as another program.
func replaceBy(program string) error { return syscall.Exec(program, os.Args, os.Environ()) }
