package sandbox

import (
	"io"
	"maps"
	"sync/atomic"
	"time"

	"github.com/writ-run/writ"
)

// Report says what is told of commands in boxes: to themselves, and to others. The zero
// Report tells nobody anything.
type Report struct {
	// IDs are what the names of the variables begin with that tell a command whose it is:
	// WRIT for WRIT_AGENT_ID, WRIT_SESSION_ID, WRIT_TASK_ID and WRIT_REQUEST_ID.
	IDs    []string
	Within time.Duration // how long a sidecar is listened to after its command; zero: what it had said by then is all
	Bytes  int64         // how much is kept of what it said, and of what the command wrote
	Raw    bool          // what the command wrote is kept
	Ran    func(Run)     // is told of each command that ran in a container, and does not wait; nil: nobody is
}

// Run is a command that has run in a box.
type Run struct {
	Box            string
	Driver         string
	Call           string // the id
	Tool           string
	Agent          string
	Session        string
	Task           string
	Began          time.Time
	Exit           Exit
	Err            error // what kept the driver from saying how it ended
	Stdout, Stderr int64 // bytes that it wrote
	Output         *Tail // the end of both streams, as they came; nil: it is not kept
	Unheard        error // what kept the sidecar from being listened to
}

// Tell changes what is told, of commands that start from now on.
func (b *Boxes) Tell(r Report) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.report = r
}

// telling is what is to be told of one command.
type telling struct {
	report         Report
	run            Run
	stdout, stderr counted
}

// telling has a command told whose it is, and what it writes counted. None of it is a part
// of what a box is made of, so that a kept one has the ids of each call.
func (b *Boxes) telling(c writ.Call, spec *Spec) *telling {
	b.mu.Lock()
	t := &telling{report: b.report}
	b.mu.Unlock()
	t.run = Run{Call: c.ID, Tool: c.Tool, Agent: c.Agent, Session: c.Session, Task: c.Task, Began: time.Now()}
	if t.report.Raw && t.report.Ran != nil {
		t.run.Output = NewTail(t.report.Bytes)
	}
	t.stdout.to, t.stdout.also = spec.Stdout, t.run.Output
	t.stderr.to, t.stderr.also = spec.Stderr, t.run.Output
	spec.Stdout, spec.Stderr = &t.stdout, &t.stderr
	if c.Session == "" { // it is no agent's
		return t
	}
	env := map[string]string{}
	maps.Copy(env, spec.Env)
	for _, begin := range t.report.IDs {
		for name, id := range map[string]string{"AGENT": c.Agent, "SESSION": c.Session, "TASK": c.Task, "REQUEST": c.ID} {
			env[begin+"_"+name+"_ID"] = id
		}
	}
	spec.Env = env
	return t
}

// over listens to the sidecar of a command that has ended, and is what is known then.
func (t *telling) over(exit Exit, err error) Run {
	r := t.run
	if c := exit.Container; c != nil && c.Said != nil {
		if t.report.Within > 0 {
			r.Unheard = c.listen(t.report.Within, t.report.Bytes)
		} else {
			c.Said.Close()
			c.Said = nil
		}
	}
	r.Exit, r.Err, r.Stdout, r.Stderr = exit, err, t.stdout.n.Load(), t.stderr.n.Load()
	return r
}

func (t *telling) tell(r Run) {
	if t.report.Ran != nil && r.Exit.Container != nil {
		t.report.Ran(r)
	}
}

// counted is a stream of a command's.
type counted struct {
	to   io.Writer // nil: nobody wants it
	also *Tail     // nil: the same
	n    atomic.Int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.n.Add(int64(len(b)))
	if c.also != nil {
		c.also.Write(b)
	}
	if c.to == nil {
		return len(b), nil
	}
	return c.to.Write(b)
}
