package engine

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// idleAfter is how long a session or a task may lie unused before it ends.
const idleAfter = time.Hour

// How many a token may have open at once.
const (
	maxSessions = 1024
	maxTasks    = 100
)

// scopes are the open sessions and tasks, kept in step with the store.
type scopes struct {
	opening  sync.Mutex // one opens or ends at a time; never taken with mu held
	mu       sync.Mutex
	sessions map[string]*scope // by id
	tasks    map[string]*scope // by id
	named    map[string]string // task id by session and name
}

// scope is one of them.
type scope struct {
	id, session, token, agent, name string
	daily                           bool // the session of a token and day: not ended before the day is over
	busy                            int  // calls under way
	used                            time.Time
	released                        bool // idle, and nothing of it is left
}

func (e *Engine) loadScopes(ctx context.Context) error {
	s := &e.scopes
	s.sessions, s.tasks, s.named = map[string]*scope{}, map[string]*scope{}, map[string]string{}
	sessions, err := e.store.OpenSessions(ctx)
	if err != nil {
		return err
	}
	for _, v := range sessions {
		s.sessions[v.ID] = &scope{id: v.ID, token: v.Token, agent: v.Agent, name: v.Name, used: e.now(), daily: strings.Contains(v.ID, "/")}
	}
	tasks, err := e.store.OpenTasks(ctx)
	for _, v := range tasks {
		s.tasks[v.ID] = &scope{id: v.ID, session: v.Session, agent: v.Agent, name: v.Name, used: e.now()}
		s.named[v.Session+"\x00"+v.Name] = v.ID
	}
	return err
}

// enter finds, or opens, the session and the task of a call, and keeps both from
// being idle until leave is called.
func (e *Engine) enter(ctx context.Context, c Call) (session, task string, leave func(), err error) {
	session, err = e.session(ctx, c)
	if err != nil {
		return "", "", nil, err
	}
	task = session
	if d, delegated := e.at().delegations[c.Agent]; delegated && c.Task == "" && d.Task != d.Session {
		c.Task = d.Task // a child works in the task it was made in
	}
	if c.Task != "" {
		if task, err = e.task(ctx, c, session); err != nil {
			return session, "", nil, err
		}
	}
	return session, task, e.scopes.use(e.now, session, task), nil
}

func (s *scopes) use(now func() time.Time, ids ...string) func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	var held []*scope
	for _, id := range ids {
		for _, m := range []map[string]*scope{s.sessions, s.tasks} {
			if v, ok := m[id]; ok {
				v.busy++
				v.released = false
				held = append(held, v)
			}
		}
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, v := range held {
			v.busy--
			v.used = now()
		}
	}
}

// session is the one the caller names, which must be its own and open; else the one
// of its token and day.
func (e *Engine) session(ctx context.Context, c Call) (string, error) {
	if d, delegated := e.at().delegations[c.Agent]; delegated && c.Session == "" {
		c.Session = d.Session
	}
	if c.Session != "" {
		e.scopes.mu.Lock()
		s, ok := e.scopes.sessions[c.Session]
		e.scopes.mu.Unlock()
		// A child works in the session it was made in, which is its parent's.
		if ok && (s.agent == c.Agent && s.token == c.Token || e.at().delegations[c.Agent].Session == s.id) {
			return s.id, nil
		}
		return "", writ.Fail(writ.NotFound, "there is no such open session of this token; open one with: writ session start", nil)
	}
	id := e.daily(c.Token, c.Agent)
	e.scopes.mu.Lock()
	_, open := e.scopes.sessions[id]
	e.scopes.mu.Unlock()
	if open {
		return id, nil
	}
	return id, e.open1(ctx, &scope{id: id, token: c.Token, agent: c.Agent, daily: true})
}

// OpenSession opens a session of a caller's own.
func (e *Engine) OpenSession(ctx context.Context, c Call, name string) (store.Session, error) {
	if err := checkName("name", name); err != nil {
		return store.Session{}, err
	}
	if _, delegated := e.at().delegations[c.Agent]; delegated {
		return store.Session{}, writ.Fail(writ.Denied, "a delegated agent works in its parent's session and cannot open another", nil)
	}
	s := &scope{id: newID("ses_"), token: c.Token, agent: c.Agent, name: name}
	if err := e.open1(ctx, s); err != nil {
		return store.Session{}, err
	}
	v, _, err := e.store.Session(ctx, s.id)
	return v, err
}

// NewSession opens a session for a front door, and returns its id.
func (e *Engine) NewSession(ctx context.Context, who Caller, name string) (string, error) {
	s, err := e.OpenSession(ctx, Call{Agent: who.Agent, Token: who.Token}, name)
	return s.ID, err
}

// SessionNamed finds the open session of that name of a caller, or opens it.
func (e *Engine) SessionNamed(ctx context.Context, who Caller, name string) (string, error) {
	e.scopes.mu.Lock()
	for _, s := range e.scopes.sessions {
		if s.agent == who.Agent && s.token == who.Token && s.name == name && !s.daily {
			e.scopes.mu.Unlock()
			return s.id, nil
		}
	}
	e.scopes.mu.Unlock()
	return e.NewSession(ctx, who, name)
}

// SessionOf is the id of the session that a caller's calls are in, where they name this
// one, or none.
func (e *Engine) SessionOf(who Caller, named string) string {
	if d, delegated := e.at().delegations[who.Agent]; delegated && named == "" {
		return d.Session
	}
	if named != "" {
		return named
	}
	return e.daily(who.Token, who.Agent)
}

// daily is the id of the session of a token and day.
func (e *Engine) daily(token, agent string) string {
	if token == "" {
		token = "library"
	}
	return token + "/" + agent + "/" + e.now().UTC().Format(time.DateOnly)
}

// SessionOpen reports whether a session is open.
func (e *Engine) SessionOpen(id string) bool {
	e.scopes.mu.Lock()
	defer e.scopes.mu.Unlock()
	return e.scopes.sessions[id] != nil
}

// open1 opens one session, unless it is open already.
func (e *Engine) open1(ctx context.Context, s *scope) error {
	e.scopes.opening.Lock()
	defer e.scopes.opening.Unlock()
	e.scopes.mu.Lock()
	_, open := e.scopes.sessions[s.id]
	mine := 0
	for _, v := range e.scopes.sessions {
		if v.token == s.token && v.agent == s.agent {
			mine++
		}
	}
	e.scopes.mu.Unlock()
	if open {
		return nil
	}
	if mine >= maxSessions {
		return writ.Fail(writ.Conflict, fmt.Sprintf("this token has %d sessions open; end some with: writ session end", mine), nil)
	}
	err := e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := good(tx, s.token); err != nil {
			return ledger.Entry{}, err
		}
		err := tx.AddSession(store.Session{ID: s.id, Token: s.token, Agent: s.agent, Name: s.name, Opened: e.ledger.Now()})
		return ledger.Entry{Kind: "session.opened", Agent: s.agent, Data: []wire.Field{wire.Str("session", s.id), wire.Str("name", s.name)}}, err
	})
	if err != nil {
		return err
	}
	e.scopes.mu.Lock()
	s.used = e.now()
	e.scopes.sessions[s.id] = s
	e.scopes.mu.Unlock()
	return nil
}

// task is the open one of that id or name in the session; a name that is not open
// opens a new one.
func (e *Engine) task(ctx context.Context, c Call, session string) (string, error) {
	if err := checkName("task", c.Task); err != nil {
		return "", err
	}
	if id := e.scopes.find(session, c.Task); id != "" {
		return id, nil
	}
	if strings.HasPrefix(c.Task, "task_") {
		return "", writ.Fail(writ.NotFound, "there is no such open task in this session; open one with: writ task start NAME", nil)
	}
	e.scopes.opening.Lock()
	defer e.scopes.opening.Unlock()
	if id := e.scopes.find(session, c.Task); id != "" {
		return id, nil
	}
	if n := e.scopes.tasksOf(session); n >= maxTasks {
		return "", writ.Fail(writ.Conflict, fmt.Sprintf("this session has %d tasks open; end some with: writ task end", n), nil)
	}
	v := &scope{id: newID("task_"), session: session, agent: e.scopes.owner(session), name: c.Task, used: e.now()}
	err := e.ledger.Write(ctx, func(tx *store.Tx) (ledger.Entry, error) {
		if err := good(tx, c.Token); err != nil {
			return ledger.Entry{}, err
		}
		err := tx.AddTask(store.Task{ID: v.id, Session: session, Agent: v.agent, Name: v.name, Opened: e.ledger.Now()})
		return ledger.Entry{Kind: "task.opened", Agent: c.Agent, Data: []wire.Field{wire.Str("session", session), wire.Str("task", v.id), wire.Str("name", v.name)}}, err
	})
	if err != nil {
		return "", err
	}
	e.scopes.mu.Lock()
	e.scopes.tasks[v.id], e.scopes.named[session+"\x00"+v.name] = v, v.id
	e.scopes.mu.Unlock()
	return v.id, nil
}

func (s *scopes) find(session, task string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.tasks[task]; ok && v.session == session {
		return v.id
	}
	return s.named[session+"\x00"+task]
}

func (s *scopes) tasksOf(session string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, v := range s.tasks {
		if v.session == session {
			n++
		}
	}
	return n
}

func (s *scopes) owner(session string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v, ok := s.sessions[session]; ok {
		return v.agent
	}
	return ""
}

// StartTask opens a task by name, or finds the open one of that name.
func (e *Engine) StartTask(ctx context.Context, c Call) (store.Task, error) {
	if c.Task == "" || strings.HasPrefix(c.Task, "task_") {
		return store.Task{}, writ.Fail(writ.Invalid, "a task has a name that does not begin with task_; give one", nil)
	}
	_, id, leave, err := e.enter(ctx, c)
	if err != nil {
		return store.Task{}, err
	}
	leave()
	t, _, err := e.store.Task(ctx, id)
	return t, err
}

func newID(prefix string) string { return prefix + strings.ToLower(rand.Text()[:16]) }

// checkName keeps what a caller names to a line: it goes into the record for ever.
func checkName(what, name string) error {
	if len(name) > 128 || strings.ContainsFunc(name, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsPrint(r) }) {
		return writ.Fail(writ.Invalid, what+": use at most 128 printable ASCII characters", nil)
	}
	return nil
}
