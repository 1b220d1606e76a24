package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/approval"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

var errEnded = writ.Fail(writ.Denied, "denied: the session or task of the call has ended", nil)

// open reports whether a call's session and task are still open.
func (s *scopes) open(c writ.Call) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, session := s.sessions[c.Session]
	_, task := s.tasks[c.Task]
	return session && (task || c.Task == c.Session)
}

// EndSession ends a session, its tasks, the agents delegated in it and all they
// own. token is whose it must be; empty: an operator ends it.
func (e *Engine) EndSession(ctx context.Context, token, id, why string) error {
	ctx = context.WithoutCancel(ctx)
	if ended, err := e.endSession(ctx, token, id, why); err != nil || !ended {
		return err
	}
	e.desk.Changed()
	e.stops.cancel(errEnded, func(r *run) bool { return r.session == id })()
	e.jobs.EndSession(id)
	e.boxes.EndSession(id)
	e.disclosed.forget(id)
	return e.endDelegations(ctx, "session ended", func(d store.Delegation) bool { return d.Session == id })
}

// LeaveSession ends a session that its front door is done with, unless something in it
// waits for a person: whoever asked may come back for it. Then it ends when idle.
func (e *Engine) LeaveSession(ctx context.Context, who Caller, id, why string) {
	waits, err := e.store.SessionWaits(ctx, id)
	if err == nil && !waits {
		err = e.EndSession(ctx, who.Token, id, why)
	}
	if err != nil && writ.KindOf(err) != writ.NotFound {
		e.log.Error("a session could not be ended", "session", id, "err", err)
	}
}

// endSession takes a session away. From here on nothing begins in it.
func (e *Engine) endSession(ctx context.Context, token, id, why string) (ended bool, err error) {
	e.scopes.opening.Lock()
	defer e.scopes.opening.Unlock()
	e.scopes.mu.Lock()
	s, ok := e.scopes.sessions[id]
	e.scopes.mu.Unlock()
	if !ok || token != "" && s.token != token {
		return false, writ.Fail(writ.NotFound, fmt.Sprintf("there is no open session %q; 'writ session list' shows them", clip(id)), nil)
	}
	if why == "idle" && !s.idle(e.now()) {
		return false, nil // somebody came back meanwhile
	}
	if s.daily && why == "ended" {
		return false, writ.Fail(writ.Conflict, "the session of the day is its token's and ends with the day; revoke the token to end it now", nil)
	}
	err = e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.EndSession(id, why, e.ledger.Now())
		if err == nil && !ok {
			err = writ.Fail(writ.NotFound, "the session has ended already", nil)
		}
		if err != nil {
			return ledger.Entry{}, err
		}
		also, err := approval.EndAsked(tx, "*", id, "", "session ended", e.ledger.Now())
		return ledger.Entry{Kind: "session.ended", Agent: s.agent, Data: []wire.Field{wire.Str("session", id), wire.Str("why", why)}, Also: also}, err
	})
	if err != nil {
		return false, err
	}
	e.scopes.mu.Lock()
	delete(e.scopes.sessions, id)
	for tid, t := range e.scopes.tasks {
		if t.session == id {
			delete(e.scopes.tasks, tid)
			delete(e.scopes.named, id+"\x00"+t.name)
		}
	}
	e.scopes.mu.Unlock()
	return true, nil
}

// EndTask ends a task and what it owns, as EndSession does.
func (e *Engine) EndTask(ctx context.Context, token, session, id, why string) error {
	ctx = context.WithoutCancel(ctx)
	if found := e.scopes.find(session, id); found != "" {
		id = found
	}
	if ended, err := e.endTask(ctx, token, id, why); err != nil || !ended {
		return err
	}
	e.desk.Changed()
	e.stops.cancel(errEnded, func(r *run) bool { return r.task == id })()
	e.jobs.EndTask(id)
	e.boxes.EndTask(id)
	return e.endDelegations(ctx, "task ended", func(d store.Delegation) bool { return d.Task == id })
}

func (e *Engine) endTask(ctx context.Context, token, id, why string) (ended bool, err error) {
	e.scopes.opening.Lock()
	defer e.scopes.opening.Unlock()
	e.scopes.mu.Lock()
	t, ok := e.scopes.tasks[id]
	if ok && token != "" {
		s := e.scopes.sessions[t.session]
		ok = s != nil && s.token == token
	}
	e.scopes.mu.Unlock()
	if !ok {
		return false, writ.Fail(writ.NotFound, fmt.Sprintf("there is no open task %q; 'writ task list' shows them", clip(id)), nil)
	}
	if why == "idle" && !t.idle(e.now()) {
		return false, nil
	}
	err = e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		ok, err := tx.EndTask(id, why, e.ledger.Now())
		if err == nil && !ok {
			err = writ.Fail(writ.NotFound, "the task has ended already", nil)
		}
		if err != nil {
			return ledger.Entry{}, err
		}
		also, err := approval.EndAsked(tx, "*", "", id, "task ended", e.ledger.Now())
		return ledger.Entry{Kind: "task.ended", Agent: t.agent, Data: []wire.Field{wire.Str("session", t.session), wire.Str("task", id), wire.Str("why", why)}, Also: also}, err
	})
	if err != nil {
		return false, err
	}
	e.scopes.mu.Lock()
	delete(e.scopes.tasks, id)
	delete(e.scopes.named, t.session+"\x00"+t.name)
	e.scopes.mu.Unlock()
	return true, nil
}

// RateTask writes down what a person thinks of a task, from 0 to 10.
func (e *Engine) RateTask(ctx context.Context, id string, rating int, cred Credentials) error {
	if rating < 0 || rating > 10 {
		return writ.Fail(writ.Invalid, "a rating is a whole number from 0 to 10", nil)
	}
	by, err := e.person(ctx, cred, "rate")
	if err != nil {
		return err
	}
	t, ok, err := e.store.Task(ctx, id)
	if err != nil {
		return err
	}
	if !ok {
		return writ.Fail(writ.NotFound, fmt.Sprintf("there is no task %q; 'writ task list' shows them", clip(id)), nil)
	}
	return e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		_, err := tx.RateTask(id, rating, by)
		return ledger.Entry{Kind: "task.rated", Agent: t.Agent, Person: by, Data: []wire.Field{wire.Str("task", id), wire.Int("rating", int64(rating))}}, err
	})
}

// endIdle ends sessions and tasks that nobody used for an hour. The session of a
// day stays until the day is over, so that its counts do; what it owns goes.
func (e *Engine) endIdle(ctx context.Context) error {
	now := e.now()
	var tasks, sessions, releases []*scope
	e.scopes.mu.Lock()
	for _, t := range e.scopes.tasks {
		if t.idle(now) {
			tasks = append(tasks, t)
		}
	}
	for _, s := range e.scopes.sessions {
		switch {
		case !s.idle(now):
		case !s.daily || !strings.HasSuffix(s.id, now.UTC().Format(time.DateOnly)):
			sessions = append(sessions, s)
		case !s.released:
			s.released = true
			releases = append(releases, s)
		}
	}
	e.scopes.mu.Unlock()
	for _, t := range tasks {
		if err := e.EndTask(ctx, "", t.session, t.id, "idle"); err != nil && writ.KindOf(err) != writ.NotFound {
			return err
		}
	}
	for _, s := range sessions {
		if waits, err := e.store.SessionWaits(ctx, s.id); err != nil || waits { // a person may still answer
			if err != nil {
				return err
			}
			continue
		}
		if err := e.EndSession(ctx, "", s.id, "idle"); err != nil && writ.KindOf(err) != writ.NotFound {
			return err
		}
	}
	for _, s := range releases {
		e.jobs.EndSession(s.id)
		e.boxes.EndSession(s.id)
	}
	return nil
}

func (s *scope) idle(now time.Time) bool { return s.busy == 0 && now.Sub(s.used) >= idleAfter }

// clip keeps what a caller wrote to a line's length.
func clip(s string) string {
	if len(s) > 100 {
		return strings.ToValidUTF8(s[:100], "") + "…"
	}
	return s
}
