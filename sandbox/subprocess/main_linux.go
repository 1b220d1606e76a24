package subprocess

import (
	"fmt"
	"os"
	"runtime"

	"github.com/writ-run/writ/sandbox/probe"
)

// Descriptors that the parts of a box are started with besides 0, 1 and 2.
const (
	fdJob    = 3 // in: the job; for a supervisor also control messages after it
	fdStatus = 4 // out: status; for a confiner: why it failed
)

// Control messages to a supervisor. The end of the pipe is kill as well.
const (
	msgTerm = 't' // ask the processes to end, then kill them after the grace
	msgKill = 'k'
)

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
	case "supervise":
		supervise()
	case "confine":
		confine()
	}
	fmt.Fprintf(os.Stderr, "%s %s is started by the daemon only\n", os.Args[0], verb)
	os.Exit(125)
}
