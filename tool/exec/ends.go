package exec

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/writ-run/writ"
)

// EndTask kills the live jobs of a task and returns when they are gone.
//
// It and its siblings also end what is being started. A call that has not come as
// far starts its job afterwards, so whoever ends a task, a session or an agent
// first refuses its new calls and ends the contexts of those under way.
func (js *Jobs) EndTask(task string) { js.end(func(e Ended) bool { return e.Task == task }) }

// EndSession kills the live jobs of a session and returns when they are gone.
func (js *Jobs) EndSession(session string) {
	js.end(func(e Ended) bool { return e.Session == session })
}

// EndAgent kills the live jobs of an agent, of every agent for "*", and returns
// when they are gone.
func (js *Jobs) EndAgent(agent string) {
	js.end(func(e Ended) bool { return agent == "*" || e.Agent == agent })
}

// Close kills every job and returns when they are gone. Nothing starts afterwards.
func (js *Jobs) Close() {
	js.mu.Lock()
	js.closed = true
	js.mu.Unlock()
	js.EndAgent("*")
}

// end kills first and waits then, so that it takes as long as the slowest.
func (js *Jobs) end(match func(Ended) bool) {
	js.mu.Lock()
	var dying []*job
	for _, j := range js.byID {
		if j.end.live() && match(j.end) {
			j.cancel()
			dying = append(dying, j)
		}
	}
	js.mu.Unlock()
	for _, j := range dying {
		<-j.gone
	}
}

// find is the job of that id if it is the caller's. A job of somebody else is
// indistinguishable from none.
func (js *Jobs) find(c writ.Call, id string) (*job, error) {
	js.mu.Lock()
	defer js.mu.Unlock()
	j, ok := js.byID[id]
	if !ok || !owns(c, j) {
		return nil, writ.Fail(writ.NotFound, fmt.Sprintf("there is no job %q; shell_job with do: list shows those of this session", id), nil)
	}
	return j, nil
}

// owns reports whether the caller may see a job: one of the same agent and session
// that has been started.
func owns(c writ.Call, j *job) bool {
	return j.end.Agent == c.Agent && j.end.Session == c.Session && j.end.State != ""
}

// mine lists the caller's jobs, the newest first.
func (js *Jobs) mine(c writ.Call) []*job {
	js.mu.Lock()
	defer js.mu.Unlock()
	var out []*job
	for _, j := range js.byID {
		if owns(c, j) {
			out = append(out, j)
		}
	}
	slices.SortFunc(out, func(a, b *job) int { return cmp.Compare(b.number, a.number) })
	return out
}

// kill ends a job and waits until its processes are gone. One that had ended
// stays as it was.
func (js *Jobs) kill(ctx context.Context, j *job) error {
	j.cancel()
	select {
	case <-j.gone:
		return nil
	case <-ctx.Done():
		return writ.Fail(writ.Stopped, "the job is being ended; shell_job with do: check tells when it is gone", ctx.Err())
	}
}
