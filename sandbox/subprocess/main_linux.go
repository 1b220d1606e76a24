package subprocess

import (
	"fmt"
	"os"
	"runtime"
	"slices"

	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/supervise"
)

// The parts that this program plays, after those of the launcher.
const (
	partSupervise = "supervise"
	partConfine   = "confine"
)

// part is the command that plays one.
func part(launcher []string, name string) []string { return append(slices.Clip(launcher), name) }

// Main plays the part of a box that this program was started for and does not
// return, or returns at once when it was started for something else. A main
// function, and the TestMain of a test that starts boxes, calls it first.
func Main() {
	probe.Main()
	if len(os.Args) < 3 || os.Args[1] != verb {
		return
	}
	// Parent-death signals, Landlock, seccomp, capabilities and execve belong to
	// a thread; the goroutine stays on the one that it is on (group H: thread
	// migration between restrict_self and execve).
	runtime.LockOSThread()
	switch os.Args[2] {
	case partSupervise:
		hold()
	case partConfine:
		supervise.Become(confine)
	}
	fmt.Fprintf(os.Stderr, "%s %s is started by the daemon only\n", os.Args[0], verb)
	os.Exit(125)
}
