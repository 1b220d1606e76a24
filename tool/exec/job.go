package exec

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// State is how far a job is. The zero State is one that is being started, which
// nobody sees.
type State string

const (
	Running   State = "running"
	Completed State = "completed" // exit status 0
	Failed    State = "failed"    // another exit status, or a signal
	Cancelled State = "cancelled" // by its owner, or with its task, session, agent or daemon
	TimedOut  State = "timed_out"
	Lost      State = "lost" // the box ended without a report; its processes may be left
)

// Ended is what there is to say of a job: all of it once it is over, and until then
// whose it is and how far.
type Ended struct {
	Job      string
	Agent    string
	Session  string
	Task     string
	Call     string // the id of the call that started it
	State    State
	ExitCode int    // -1 when a signal ended it or nobody knows
	Signal   string // the signal that ended it, such as "killed"
	Limit    string // the limit that ended it: timeout, cancelled; empty: it ended by itself
	Bytes    int64  // of output, kept or not
	Elapsed  time.Duration

	Container string // that it ran in, once it is over; empty: in none
}

// job is one command in the background. What is not said to be guarded never changes.
type job struct {
	number  int64  // in the order of their starts
	root    string // the agent at the top of its chain, whose jobs are counted together
	command string
	outside bool // it has hosts to reach
	listed  bool // some programs are left out
	began   time.Time
	output  *capture
	cancel  context.CancelFunc // kills it; gone says when that is done
	gone    chan struct{}      // closed when its processes are gone and its end is told

	end Ended // guarded by Jobs.mu; only its own goroutine changes the state
}

func newJob(c writ.Call, command string, began time.Time, cancel context.CancelFunc) *job {
	id := "job_" + strings.ToLower(rand.Text()[:16])
	return &job{
		root: c.Root(), command: shortened(command), began: began, output: newCapture(), cancel: cancel, gone: make(chan struct{}),
		end: Ended{Job: id, Agent: c.Agent, Session: c.Session, Task: c.Task, Call: c.ID},
	}
}

// live reports whether its processes may still be there.
func (e Ended) live() bool { return e.State == "" || e.State == Running }

// conclude says how a job ended. Its own end, the time limit and any number of
// cancels may come together; the box tells the one that was first.
func (e Ended) conclude(exit sandbox.Exit, err error) Ended {
	e.ExitCode, e.Signal, e.Limit = exit.Code, exit.Signal, exit.Limit
	if exit.Container != nil {
		e.Container = exit.Container.ID
	}
	switch {
	case err != nil:
		e.State = Lost
	case exit.Limit == "timeout":
		e.State = TimedOut
	case exit.Limit != "":
		e.State = Cancelled
	case exit.Code != 0:
		e.State = Failed
	default:
		e.State = Completed
	}
	return e
}

// String says it in one line, for models and people.
func (e Ended) String() string {
	after := e.Elapsed.Round(100 * time.Millisecond)
	switch e.State {
	case Running:
		return fmt.Sprintf("running for %s, %d bytes of output so far", after, e.Bytes)
	case Failed:
		how := fmt.Sprintf("exit status %d", e.ExitCode)
		if e.Signal != "" {
			how = "signal: " + e.Signal
		}
		return fmt.Sprintf("failed after %s, %s, %d bytes of output", after, how, e.Bytes)
	case Completed:
		return fmt.Sprintf("completed after %s, exit status 0, %d bytes of output", after, e.Bytes)
	case Lost:
		return fmt.Sprintf("lost after %s, %d bytes of output; its processes may be left, so tell the operator", after, e.Bytes)
	}
	return fmt.Sprintf("%s after %s, %d bytes of output", e.State, after, e.Bytes)
}

// metadata is the same for programs.
func (e Ended) metadata() map[string]any {
	m := map[string]any{"job": e.Job, "state": string(e.State), "elapsed_ms": e.Elapsed.Milliseconds(), "bytes": e.Bytes}
	if !e.live() {
		m["exit_code"], m["signal"], m["limit"] = e.ExitCode, e.Signal, e.Limit
		if e.Container != "" {
			m["container_id"] = e.Container
		}
	}
	return m
}

// shortened is enough of a command to know it by in a list.
func shortened(command string) string {
	const most = 80
	if r := []rune(command); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return command
}
