package exec

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// Bounds of one agent's jobs, over all of its sessions.
const (
	maxLive     = 5
	maxFinished = 64 // remembered; the one that ended first is forgotten first
)

// Jobs are the commands that run on after the call that started them. A box is
// started while its call's writ is valid and under that writ's confinement; from
// then on its own time limit, a cancel and the ends below end it, and the caller's
// going away does not. Jobs are kept in memory only: boxes die with the daemon.
//
// It is safe for concurrent use. The zero Jobs, and a nil one, start nothing.
type Jobs struct {
	// OnEnd is told of each job that ran, exactly once: after its processes are
	// gone, and before anybody else can see that it ended. Set it before the
	// first start. It may be called from several goroutines at a time, and must
	// not wait for a job to end.
	OnEnd func(Ended)

	boxes Starter
	now   func() time.Time
	log   *slog.Logger

	mu       sync.Mutex
	closed   bool
	started  int64
	byID     map[string]*job
	finished map[string][]*job // by agent, in the order of their ends
}

// NewJobs makes a registry without jobs. None of the arguments may be nil.
func NewJobs(boxes Starter, now func() time.Time, log *slog.Logger) *Jobs {
	return &Jobs{boxes: boxes, now: now, log: log, byID: map[string]*job{}, finished: map[string][]*job{}}
}

// start starts a command under the writ and returns its job's id and the driver
// of its box. Until it returns, the end of ctx ends the job: a caller who has left
// by then never learns the id, and a stop must find nothing half started.
func (js *Jobs) start(ctx context.Context, w writ.Writ, spec sandbox.Spec, command string) (id, driver string, err error) {
	if js == nil || js.boxes == nil {
		return "", "", writ.Fail(writ.Internal, "background jobs are not set up here; run the command without background", nil)
	}
	own, cancel := context.WithCancel(context.Background())
	j := newJob(w.Call(), command, js.now(), cancel)
	j.outside, j.listed = w.Confinement().Network.Mode != writ.NetworkNone, w.Confinement().Exec.Mode == writ.ExecListed
	id = j.end.Job
	if err := js.admit(ctx, j); err != nil {
		cancel()
		return "", "", err
	}
	detach := context.AfterFunc(ctx, cancel)
	box, driver, err := js.startBox(own, j, w, spec)
	if err != nil {
		detach()
		return "", "", err
	}
	go js.wait(own, j, box)
	if !detach() {
		<-j.gone
		return "", "", writ.Fail(writ.Stopped, "the call was stopped while its job started, so the job was ended; what it had done by then stays", ctx.Err())
	}
	return id, driver, nil
}

// startBox starts the box of an admitted job, or forgets the job, also when the
// driver panics: an end must not wait for a job that will never be.
func (js *Jobs) startBox(ctx context.Context, j *job, w writ.Writ, spec sandbox.Spec) (box sandbox.Box, driver string, err error) {
	defer func() {
		js.mu.Lock()
		defer js.mu.Unlock()
		if box != nil {
			j.end.State = Running
			return
		}
		j.cancel()
		delete(js.byID, j.end.Job)
		close(j.gone)
	}()
	spec.Stdout, spec.Stderr, spec.Alone = j.output, j.output, true
	box, driver, err = js.boxes.Start(ctx, w, spec)
	if err != nil && ctx.Err() != nil {
		err = stoppedEarly(err)
	}
	return box, driver, err
}

func stoppedEarly(cause error) error {
	return writ.Fail(writ.Stopped, "stopped before the job had started; start it again if it is still wanted", cause)
}

// admit takes a place for a job. From here on the ends find it. A call that was
// stopped before is refused here, so that a stop which looked for jobs a moment
// ago has not missed this one.
func (js *Jobs) admit(ctx context.Context, j *job) error {
	js.mu.Lock()
	defer js.mu.Unlock()
	live := 0
	for _, other := range js.byID {
		if other.root == j.root && other.end.live() {
			live++
		}
	}
	switch {
	case js.closed:
		return writ.Fail(writ.Stopped, "the daemon is ending, so no job starts; try again once it runs", nil)
	case ctx.Err() != nil:
		return stoppedEarly(ctx.Err())
	case j.end.Session == "":
		return writ.Fail(writ.Invalid, "a background job belongs to a session and this call has none; open one, or run the command without background", nil)
	case live >= maxLive:
		return writ.Fail(writ.Conflict, fmt.Sprintf("%d jobs of agent %s and those below it are running, the most there may be; wait for one to end, or cancel one with shell_job", live, j.root), nil)
	}
	js.started++
	j.number = js.started
	js.byID[j.end.Job] = j
	return nil
}

// wait sees a job to its end. It is the only one to say how it ended.
func (js *Jobs) wait(ctx context.Context, j *job, box sandbox.Box) {
	defer close(j.gone)
	defer j.cancel()
	exit, err := box.Wait(ctx)
	end := js.view(j).conclude(exit, err)
	if err != nil {
		js.log.Error("a background job was lost; look for processes that are left", "job", end.Job, "agent", end.Agent, "call", end.Call, "err", err)
	}
	if js.OnEnd != nil {
		js.OnEnd(end)
	}
	js.mu.Lock()
	defer js.mu.Unlock()
	j.end = end
	done := append(js.finished[end.Agent], j)
	if len(done) > maxFinished {
		delete(js.byID, done[0].end.Job)
		done = append([]*job(nil), done[1:]...)
	}
	js.finished[end.Agent] = done
}

// view is a job as it stands now.
func (js *Jobs) view(j *job) Ended {
	js.mu.Lock()
	defer js.mu.Unlock()
	e := j.end
	if e.live() {
		e.Bytes, e.Elapsed = j.output.total(), js.now().Sub(j.began)
	}
	return e
}
