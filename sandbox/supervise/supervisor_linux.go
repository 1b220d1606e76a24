package supervise

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// A Supervisor is this process where it was started for that: its talk with the daemon.
type Supervisor struct {
	control *bufio.Reader
	say     *json.Encoder
	stdio   [3]*os.File // of the command
	drained func()      // returns when all its output has been passed on
	job     []byte      // as it came
}

// Ends are a supervisor's own ends of the link to it.
type Ends struct {
	Control io.Reader   // the job, then messages; its end is the end of the box
	Status  io.Writer   // one line a message
	Stdio   [3]*os.File // those of the command
	Orphans bool        // those of the box become children of somebody else: this kernel knows it no other way
	Drained func()      // returns when what was written to the last two has been passed on; nil: at once
}

// Hands are how a supervisor gets hold of what is in its box.
type Hands struct {
	Ask  func() // asks every process to end
	Kill func() // ends the command, at the least
	// Begun, where there is one, is called when what becomes the command is there, before it
	// knows what to become.
	Begun func()
	// Asked are signals to the supervisor itself that end the box; nil: none do.
	Asked <-chan os.Signal
	// End waits for the command, by the number of its process, kills what is left, and
	// returns when nothing is: how the command ended, and the limit of the job that ended it.
	End func(command int) (how unix.WaitStatus, limit string)
	// Met, where there is one, is asked after that which limit the command came up against.
	Met func() string
}

// Unknown is how a command ended that could not be waited for: without an exit status.
const Unknown unix.WaitStatus = 0x7f

// Up makes this process a supervisor, to which orphans of its box become children, says
// so, and takes the job. Where the daemon has let go, this process ends.
func Up[J any]() (*Supervisor, J) {
	unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC)
	stdio := [3]*os.File{os.NewFile(fdStdin, ""), os.NewFile(fdStdin+1, ""), os.NewFile(fdStdin+2, "")}
	return UpWith[J](Ends{Control: os.NewFile(fdControl, "control"), Status: os.NewFile(fdStatus, "status"), Stdio: stdio})
}

// UpWith is the same with ends that are not the usual descriptors.
func UpWith[J any](e Ends) (*Supervisor, J) {
	s := &Supervisor{control: bufio.NewReader(e.Control), say: json.NewEncoder(e.Status), stdio: e.Stdio, drained: e.Drained}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil && !e.Orphans {
		s.fail(Failed(StepJob, err))
	}
	s.say.Encode(status{Up: true})
	text, j, err := take[J](s.control)
	if err != nil {
		unix.Exit(1)
	}
	s.job = text
	return s, j
}

// Run starts cmd, which calls [Become], with the streams of the command. It obeys the
// daemon until the box has ended, tells how, and does not return.
func (s *Supervisor) Run(cmd *exec.Cmd, h Hands) {
	job, report, why := s.start(cmd)
	if why != nil {
		s.fail(why)
	}
	if h.Begun != nil {
		h.Begun()
	}
	go s.obey(h)
	go func() {
		for range h.Asked {
			h.Kill()
		}
	}()
	if why := s.confined(job, report); why != nil {
		h.Kill()
		h.End(cmd.Process.Pid)
		s.fail(why)
	}
	if s.say.Encode(status{Started: true}) != nil {
		h.Kill() // the daemon is gone
	}
	end := ended(h.End(cmd.Process.Pid))
	if h.Met != nil {
		end.Met = h.Met()
	}
	if s.drained != nil {
		s.drained()
	}
	s.say.Encode(status{End: end})
	unix.Exit(0)
}

func (s *Supervisor) fail(why *Failure) {
	s.say.Encode(status{Failed: why})
	unix.Exit(1)
}

// start starts what becomes the command, and leaves the streams to it, so that their ends
// mean something.
func (s *Supervisor) start(cmd *exec.Cmd) (job, report *os.File, why *Failure) {
	in, job, err := os.Pipe()
	if err != nil {
		return nil, nil, Failed(StepJob, err)
	}
	report, out, err := os.Pipe()
	if err != nil {
		return nil, nil, Failed(StepJob, err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.stdio[0], s.stdio[1], s.stdio[2]
	cmd.ExtraFiles = []*os.File{in, out}
	if err := cmd.Start(); err != nil {
		step := StepExec
		if cmd.SysProcAttr.Cloneflags != 0 {
			step = StepSpace
		}
		return nil, nil, Failed(step, err)
	}
	for _, f := range append(s.stdio[:], in, out) {
		f.Close()
	}
	return job, report, nil
}

// confined hands the job over and waits until the command runs, confined: its end of the
// report is closed by executing the command, or when it ends.
func (s *Supervisor) confined(job, report *os.File) *Failure {
	defer report.Close()
	_, err := job.Write(s.job)
	job.Close()
	if err != nil {
		return Failed(StepJob, err)
	}
	said, err := io.ReadAll(io.LimitReader(report, 1<<16))
	if err != nil {
		return Failed(StepJob, err)
	}
	after, executed := bytes.CutPrefix(said, []byte(ready))
	if executed && len(after) == 0 {
		return nil
	}
	var why Failure
	if json.Unmarshal(after, &why) != nil || why.Step == "" {
		return Failed(StepJob, fmt.Errorf("no report: %q", said))
	}
	return &why
}

// obey does what the daemon says, until that is gone (kill -9 included).
func (s *Supervisor) obey(h Hands) {
	for {
		switch msg, err := s.control.ReadByte(); {
		case err != nil:
			h.Kill()
			return
		case msg == msgKill:
			h.Kill()
		case msg == msgTerm:
			h.Ask()
		}
	}
}

// ended is the end of a box in which nothing is left.
func ended(how unix.WaitStatus, limit string) *end {
	e := &end{Code: how.ExitStatus(), Limit: limit}
	if how.Signaled() {
		e.Signal = how.Signal().String()
	}
	var all unix.Rusage
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &all) == nil {
		e.CPU = time.Duration(all.Utime.Nano() + all.Stime.Nano())
	}
	return e
}
