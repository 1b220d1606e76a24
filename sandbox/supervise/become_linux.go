package supervise

import (
	"encoding/json"
	"os"
	"syscall"

	"github.com/writ-run/writ/sandbox/calls"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"golang.org/x/sys/unix"
)

// A Command is what a process of a box becomes. All paths are those of the box.
type Command struct {
	Path      string // the file to execute
	Argv, Env []string
	Dir       string
	Listed    bool // only listed programs run
	Alone     bool // what the box sees of files is its own, not the host's tree
	GVisor    bool // its kernel answers in the box
	Limits    reach.Limits
}

// Of is the command of a plan.
func Of(p *reach.Plan) Command {
	return Command{Path: p.Path, Argv: p.Argv, Env: p.Env, Dir: p.Dir, Listed: p.Listed, Limits: p.Limits}
}

// ready is all that is said on the way to a command that runs.
const ready = "ready"

// Become makes this process, which a supervisor started, the command of its job. confine
// gives up what is to be given up of files and privileges; what is the same in every box
// follows. Or it says which step failed, and ends: nothing of the command has run by then.
func Become[J any](confine func(J) (Command, *Failure)) {
	unix.CloseOnExec(fdControl)
	unix.CloseOnExec(fdStatus)
	unix.Umask(0o022)
	out := os.NewFile(fdStatus, "report")
	json.NewEncoder(out).Encode(become(out, confine))
	unix.Exit(1)
}

func become[J any](out *os.File, confine func(J) (Command, *Failure)) *Failure {
	_, j, err := take[J](os.NewFile(fdControl, "job"))
	if err != nil {
		return Failed(StepJob, err)
	}
	c, why := confine(j)
	if why != nil {
		return why
	}
	return c.execute(out)
}

// execute returns only with a failure. Limits come last because they count this process,
// too. That it is ready is said before it executes: afterwards nobody is there to say it.
// A failure that follows takes it back.
func (c Command) execute(out *os.File) *Failure {
	if err := unix.Chdir(c.Dir); err != nil {
		return Failed(StepDir, err)
	}
	if err := restrict.Calls(calls.Kind{Listed: c.Listed, Alone: c.Alone, Watched: true, GVisor: c.GVisor}); err != nil {
		return Failed(StepSeccomp, err)
	}
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return Failed(StepExec, err)
	}
	if err := restrict.Limits(c.Limits, c.Argv, c.Env); err != nil {
		return Failed(StepLimits, err)
	}
	if _, err := out.WriteString(ready); err != nil {
		return Failed(StepExec, err)
	}
	return Failed(StepExec, syscall.Exec(c.Path, c.Argv, c.Env))
}
