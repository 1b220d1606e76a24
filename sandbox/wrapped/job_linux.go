package wrapped

import (
	"os"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox/probe"
	"github.com/writ-run/writ/sandbox/reach"
)

// A Job is what becomes of the process inside. All paths are those of the box.
type Job struct {
	Path      string
	Argv, Env []string
	Dir       string
	Listed    bool // only listed programs run
	Alone     bool // what the box sees of files is its own, not the host's tree
	Limits    reach.Limits
	Grants    []Grant  // what Landlock allows
	Make      []string // directories of the box's own, made before all else
	Bound     []string // temporary file systems whose number of files is to be bounded
	Watch     []string // those that grow without bound: the box ends when they are full
	NoExec    []string // mounts to be without programs, with what is below them
	Exec      []string // mounts below those that have one
	Hidden    []File   // not to be found at their paths
	Sealed    []uint64 // file systems that are read-only wherever they are mounted,
	Writable  []string // but here
}

// A Grant is something that Landlock allows to be done to a path and what is below it.
// One that is not there allows nothing.
type Grant struct {
	Path                      string
	Read, Write, Exec, Device bool
	List                      bool // names alone
	Strict                    bool // the path has no symlinks: one was put there since, to lead elsewhere
}

// Temporary file systems hold so much: bytes, and files.
const (
	TemporaryBytes = 64 << 20
	temporaryFiles = 1 << 16
)

// A File is one that was seen at a path.
type File struct {
	Path     string
	Dev, Ino uint64
}

// Seen is what is at a path now, without following symlinks at its end.
func Seen(path string) (File, os.FileInfo, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return File{}, nil, err
	}
	st := info.Sys().(*syscall.Stat_t)
	return File{path, uint64(st.Dev), st.Ino}, info, nil
}

// Unmoved reports whether each file is still where it was seen.
func Unmoved(files []File) error {
	for _, was := range files {
		if now, _, err := Seen(was.Path); err != nil || now != was {
			return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: hide "+was.Path+": something moved it while the box was made; try again", err)
		}
	}
	return nil
}

// A status is what a supervisor says, one a line.
type status struct {
	Up      bool          `json:",omitempty"` // the wrapper has done its work
	Started bool          `json:",omitempty"`
	Failed  *failure      `json:",omitempty"`
	Ended   bool          `json:",omitempty"` // and everything with it
	Code    int           `json:",omitempty"`
	Signal  string        `json:",omitempty"`
	Limit   string        `json:",omitempty"` // of the job, that ended it
	CPU     time.Duration `json:",omitempty"`
}

// A failure is the step on the way to the command that could not be done.
type failure struct{ Step, Cause string }

func (f *failure) Error() string { return f.Step + ": " + f.Cause }

func failed(step string, err error) *failure { return &failure{step, err.Error()} }

const (
	stepJob      = "take the job"
	stepMake     = "make directories"
	stepBound    = "bound temporary files"
	stepNoExec   = "mount without programs"
	stepHide     = "hide"
	stepSeal     = "keep mounts read-only"
	stepLandlock = "landlock"
	stepDrop     = "drop privileges"
	stepDir      = "change directory"
	stepLimits   = "limits"
	stepSeccomp  = "seccomp"
	stepExec     = "execute"
)

// The parts that this program plays, after the verb. The first is also what people see
// inside as the first process.
const (
	partSupervise = "writ-box"
	partBecome    = "become"
)

// Descriptors that a supervisor has besides 0, 1 and 2, which are the wrapper's.
const (
	fdControl = 3 // in: the job, then messages; its end is msgKill
	fdStatus  = 4
	fdStdin   = 5 // of the command, and two more
	fdProgram = 8 // this program
	// FirstFile is where the files of a Launch begin.
	FirstFile = 9
)

// Messages to a supervisor.
const (
	msgTerm = 't' // ask the processes to end
	msgKill = 'k'
)

// Self is this program for what is inside.
const Self = "/proc/self/exe"

// Command is what a wrapper is to run inside. The program is named by its descriptor: it
// need not be shown in the box, nor be reachable for the user of the box.
var Command = []string{"/proc/self/fd/8", probe.Verb, partSupervise}
