package native

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/usage"
	"golang.org/x/sys/unix"
)

// A box is one command in a cell.
type box struct {
	runner *runner
	script *script
	covers covers
	out    io.Closer // its way out; nil: none
	desk   *desk     // answers what its filter leaves to the daemon; nil: nothing
	grace  time.Duration
	copies sync.WaitGroup
	began  time.Time
	made   chan reply    // what its launcher says of what it was told to do meanwhile
	silent chan struct{} // closed when it says nothing any more
	over   chan struct{} // closed when those below are set

	exit    sandbox.Exit
	signal  syscall.Signal // that ended it
	endErr  error
	elapsed time.Duration
	traces  bool // something of it outlives its processes

	mu       sync.Mutex
	limit    string // why it is being ended
	told     bool   // its launcher was sent something that it may not have read
	ended    bool   // and is sent nothing any more
	writeErr error
}

// run has the runner execute the command, and uses it up by that. What is kept for the
// run is done with when it has ended, or by the caller on an error.
func (r *runner) run(p *reach.Plan, spec sandbox.Spec, kept covers, out io.Closer) (*box, error) {
	b := &box{runner: r, script: &script{}, grace: p.Grace, began: time.Now(), over: make(chan struct{}), covers: kept, out: out}
	b.made, b.silent = make(chan reply, 1), make(chan struct{})
	if err := r.keep(kept); err != nil {
		return nil, err
	}
	if agent, ok := out.(sandbox.Agent); ok && r.calls != nil {
		b.desk = attend(agent, r.calls, b.pair)
	}
	in, err := r.execute(b.script, p, spec.Stdin != nil)
	r.conn.close() // there is nothing more to tell it
	if err != nil {
		close(b.silent)
		b.desk.end()
		return nil, err
	}
	if in != nil {
		go sandbox.Feed(in, spec.Stdin)
	}
	if r.ours[0] != nil { // else it has a terminal
		b.copies.Go(func() { b.taken(sandbox.Drain(spec.Stdout, r.ours[0])) })
		b.copies.Go(func() { b.taken(sandbox.Drain(spec.Stderr, r.ours[1])) })
	}
	b.watch(p.Wall)
	p.Limits.Together().Watch(b.over, r.used, func(limit string) { b.stop(limit, 'k') })
	return b, nil
}

// execute tells the runner what to execute, with an input where there is one to give, and
// gives our end of that.
func (r *runner) execute(s *script, p *reach.Plan, input bool) (in *os.File, err error) {
	var fds []int
	if input && r.ours[0] != nil {
		var theirs *os.File
		if theirs, in, err = os.Pipe(); err != nil {
			return nil, err
		}
		defer theirs.Close()
		fds = []int{int(theirs.Fd())}
	}
	s.execute(p, len(fds) > 0)
	encoded, err := s.encode(inPlace, 0, "", "")
	if err == nil {
		err = r.conn.pass(encoded, fds)
	}
	if err != nil && in != nil {
		in.Close()
		in = nil
	}
	return in, err
}

// used is what the command and all that came of it have used.
func (r *runner) used() (usage.Use, error) {
	if r.cell.again { // the launcher has those before it on its account
		return usage.Below(r.cell.pid)
	}
	return usage.Of(r.cell.pid)
}

// watch ends the box at its time limit, and notes how it ended.
func (b *box) watch(wall time.Duration) {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	if wall > 0 {
		timer = time.AfterFunc(wall-time.Since(b.began), func() { b.stop("timeout", 't') })
	}
	go func() {
		defer close(b.over)
		defer timer.Stop()
		b.endErr = b.listen()
		close(b.silent)
		b.desk.end()
		if b.out != nil {
			b.out.Close() // nothing is left that it could serve
		}
		b.letGo()
		undone, err := b.covers.done()
		b.exit.Undone = undone
		if b.endErr == nil && err != nil {
			b.endErr = writ.Fail(writ.Internal, "what the command left among protected names could not all be undone; look at the workspace: "+err.Error(), err)
		}
		b.copies.Wait()
		b.elapsed = time.Since(b.began)
	}()
}

// letGo is for when nothing of the command is left: the box ends, unless it is used again.
func (b *box) letGo() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	b.exit.Met = b.met()
	if b.runner.cell.again {
		return
	}
	b.runner.cell.end()
	if b.runner.front {
		b.runner.cell.gone()
	}
}

// met is a limit that the command came up against, whatever ended it.
func (b *box) met() string {
	if b.signal == syscall.SIGXFSZ {
		return "file size"
	}
	if g := b.runner.cell.group; g != nil {
		if limit, err := g.Hit(); err == nil {
			return limit
		}
	}
	return ""
}

// listen hears how the command ended, or that it was not executed, and then that nothing
// of it is left.
func (b *box) listen() (failed error) {
	said := false
	for {
		r, err := b.runner.cell.conn.next()
		if err != nil {
			return cmp.Or(failed, err)
		}
		switch r.What {
		case saysNot:
			failed = b.script.failure(r)
		case saysDone, saysFailed:
			select {
			case b.made <- r:
			default: // nobody asked
			}
		case saysEnded:
			b.exited(syscall.WaitStatus(r.A))
			said = true
		case saysCleared:
			if !said { // its first process was killed, and all with it
				b.exited(syscall.WaitStatus(r.A))
			}
			b.traces = r.B != 0
			b.exit.CPU = time.Duration(r.User+r.System) * time.Microsecond
			return failed
		}
	}
}

func (b *box) exited(status syscall.WaitStatus) {
	b.exit.Code = status.ExitStatus()
	if status.Signaled() {
		b.exit.Code, b.exit.Signal, b.signal = -1, status.Signal().String(), status.Signal()
	}
}

// stop tells the box to end, 't' with time to clean up or 'k' at once; the first reason
// is the one told.
func (b *box) stop(limit string, how byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ended {
		return
	}
	if b.limit == "" {
		b.limit = limit
	}
	b.told = true
	b.runner.cell.conn.tell(how)
	if how == 't' {
		time.AfterFunc(b.grace, func() { b.stop(limit, 'k') })
	} else {
		time.AfterFunc(deaf, b.force)
	}
}

// deaf is how long a launcher may take to do what it must at once.
const deaf = 3 * time.Second

// force ends a cell whose launcher does not, and with it everything in there.
func (b *box) force() {
	select {
	case <-b.silent: // it has ended
	default:
		unix.Kill(b.runner.cell.pid, unix.SIGKILL)
	}
}

// Wait implements sandbox.Box.
func (b *box) Wait(ctx context.Context) (sandbox.Exit, error) {
	select {
	case <-b.over:
	case <-ctx.Done():
		b.stop("cancelled", 'k')
		<-b.over
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	exit := b.exit
	exit.Limit, exit.Elapsed = b.limit, b.elapsed
	if exit.Limit == "" && (exit.Code != 0 || b.endErr != nil) {
		exit.Limit = exit.Met
	}
	var f *failure
	var known *writ.Error
	switch {
	case errors.As(b.endErr, &known):
		return exit, b.endErr
	case errors.As(b.endErr, &f):
		exit.Code = -1
		return exit, explain(b.endErr)
	case b.endErr != nil && exit.Limit != "": // it was ended with the command, or for it
		exit.Code, exit.Signal = -1, syscall.SIGKILL.String()
	case b.endErr != nil:
		exit.Code = -1
		return exit, writ.Fail(writ.Internal, "the launcher of the box ended without a report", b.endErr)
	case b.writeErr != nil:
		return exit, writ.Fail(writ.Internal, "the output of the command could not be delivered", b.writeErr)
	}
	return exit, nil
}

// taken notes that output could not be delivered.
func (b *box) taken(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.writeErr = errors.Join(b.writeErr, err)
}
