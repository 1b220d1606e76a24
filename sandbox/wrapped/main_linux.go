package wrapped

import (
	"os"
	"runtime"

	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/supervise"
)

// Main plays the part of a box that this program was started for and does not return, or
// returns at once when it was started for something else. A main function, and the
// TestMain of a test that starts boxes, calls it first.
func Main() {
	if len(os.Args) != 3 || os.Args[1] != probe.Verb {
		return
	}
	// Landlock, seccomp, capabilities and execve belong to a thread; the goroutine stays
	// on the one that it is on (group H: thread migration).
	switch os.Args[2] {
	case partSupervise:
		runtime.LockOSThread()
		hold()
	case partBecome:
		runtime.LockOSThread()
		supervise.Become(confine)
	}
}
