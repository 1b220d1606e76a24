//go:build !unix

package main

import (
	"os"
	"os/exec"
)

func detach(*exec.Cmd) {}

// hangup does not exist here; 'writ config reload' does the same.
var hangup os.Signal

// lockFile holds nobody up here: of two daemons started at once, the store takes one.
func lockFile(*os.File) bool { return true }
