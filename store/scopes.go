package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/writ-run/writ"
)

// Session is a stretch of an agent's work, bound to the token it was opened with.
type Session struct {
	ID     string `json:"id"`
	Token  string `json:"token"`
	Agent  string `json:"agent"`
	Name   string `json:"name,omitempty"`
	Opened string `json:"opened_at"`
	Ended  string `json:"ended_at,omitempty"` // empty while it is open
	Why    string `json:"why,omitempty"`      // it ended: ended, idle, revoked
}

// Task is a piece of work inside a session.
type Task struct {
	ID      string `json:"id"`
	Session string `json:"session"`
	Agent   string `json:"agent"`
	Name    string `json:"name"`
	Opened  string `json:"opened_at"`
	Ended   string `json:"ended_at,omitempty"`
	Why     string `json:"why,omitempty"`
	Rating  *int   `json:"rating,omitempty"` // 0 to 10, by a person
	RatedBy string `json:"rated_by,omitempty"`
}

const sessionColumns = `SELECT id, token, agent, name, opened_at, ended_at, why FROM sessions`

func scanSession(rows *sql.Rows) (Session, error) {
	var s Session
	err := rows.Scan(&s.ID, &s.Token, &s.Agent, &s.Name, &s.Opened, &s.Ended, &s.Why)
	return s, err
}

// OpenSessions lists those that have not ended.
func (db *DB) OpenSessions(ctx context.Context) ([]Session, error) {
	return query(ctx, db, scanSession, sessionColumns+` WHERE ended_at = '' ORDER BY opened_at, id`)
}

// SessionsBefore lists at most n sessions, the newest first, that come after one
// (of that opening time and id) in this order; of one token, or of all when it is empty.
func (db *DB) SessionsBefore(ctx context.Context, token, opened, id string, n int) ([]Session, error) {
	return query(ctx, db, scanSession, sessionColumns+` WHERE ($1 = '' OR token = $2) AND ($3 = '' OR opened_at < $4 OR opened_at = $5 AND id < $6)
		ORDER BY opened_at DESC, id DESC LIMIT $7`, token, token, opened, opened, opened, id, n)
}

// Session finds one; ok is false when there is none.
func (db *DB) Session(ctx context.Context, id string) (Session, bool, error) {
	return first(query(ctx, db, scanSession, sessionColumns+` WHERE id = $1`, id))
}

// AddSession opens a session.
func (tx *Tx) AddSession(s Session) error {
	return tx.exec(`INSERT INTO sessions (id, token, agent, name, opened_at, ended_at, why) VALUES ($1, $2, $3, $4, $5, '', '')`,
		s.ID, s.Token, s.Agent, s.Name, s.Opened)
}

// EndSession ends an open session and its open tasks; it reports false when there is none.
func (tx *Tx) EndSession(id, why, now string) (bool, error) {
	ok, err := tx.changed(`UPDATE sessions SET ended_at = $1, why = $2 WHERE id = $3 AND ended_at = ''`, now, why, id)
	if err != nil || !ok {
		return ok, err
	}
	return true, tx.exec(`UPDATE tasks SET ended_at = $1, why = $2 WHERE session = $3 AND ended_at = ''`, now, why, id)
}

const taskColumns = `SELECT id, session, agent, name, opened_at, ended_at, why, rating, rated_by FROM tasks`

func scanTask(rows *sql.Rows) (Task, error) {
	var t Task
	err := rows.Scan(&t.ID, &t.Session, &t.Agent, &t.Name, &t.Opened, &t.Ended, &t.Why, &t.Rating, &t.RatedBy)
	return t, err
}

// OpenTasks lists those that have not ended.
func (db *DB) OpenTasks(ctx context.Context) ([]Task, error) {
	return query(ctx, db, scanTask, taskColumns+` WHERE ended_at = '' ORDER BY opened_at, id`)
}

// TasksBefore lists at most n tasks as SessionsBefore does sessions.
func (db *DB) TasksBefore(ctx context.Context, token, opened, id string, n int) ([]Task, error) {
	return query(ctx, db, scanTask, taskColumns+` WHERE ($1 = '' OR session IN (SELECT id FROM sessions WHERE token = $2))
		AND ($3 = '' OR opened_at < $4 OR opened_at = $5 AND id < $6) ORDER BY opened_at DESC, id DESC LIMIT $7`,
		token, token, opened, opened, opened, id, n)
}

// Task finds one; ok is false when there is none.
func (db *DB) Task(ctx context.Context, id string) (Task, bool, error) {
	return first(query(ctx, db, scanTask, taskColumns+` WHERE id = $1`, id))
}

// AddTask opens a task in an open session.
func (tx *Tx) AddTask(t Task) error {
	return tx.exec(`INSERT INTO tasks (id, session, agent, name, opened_at, ended_at, why, rated_by) VALUES ($1, $2, $3, $4, $5, '', '', '')`,
		t.ID, t.Session, t.Agent, t.Name, t.Opened)
}

// EndTask ends an open task; it reports false when there is none.
func (tx *Tx) EndTask(id, why, now string) (bool, error) {
	return tx.changed(`UPDATE tasks SET ended_at = $1, why = $2 WHERE id = $3 AND ended_at = ''`, now, why, id)
}

// RateTask sets what a person thinks of a task, open or ended.
func (tx *Tx) RateTask(id string, rating int, by string) (bool, error) {
	return tx.changed(`UPDATE tasks SET rating = $1, rated_by = $2 WHERE id = $3`, rating, by, id)
}

// What runs for every counted call, in the transaction that records its start.
const (
	insertUse = `INSERT INTO uses (call, agent, tool, session, task, at, of_session, of_task, of_agent, done)
		SELECT $1, $2, $3, $4, $5, CASE WHEN last > $6 THEN last ELSE $7 END,
			(SELECT coalesce(max(of_session), 0) + 1 FROM uses WHERE session = $8 AND tool = $9),
			(SELECT coalesce(max(of_task), 0) + 1 FROM uses WHERE task = $10 AND tool = $11),
			(SELECT coalesce(max(of_agent), 0) + 1 FROM uses WHERE agent = $12 AND tool = $13), 0
		FROM (SELECT coalesce((SELECT at FROM uses WHERE agent = $14 AND tool = $15 ORDER BY of_agent DESC LIMIT 1), '') AS last) t`
	succeedUse  = `UPDATE uses SET done = 1 WHERE call = $1 AND done = 0`
	fullSession = `SELECT at FROM uses WHERE session = $1 AND tool = $2 AND of_session = $3`
	fullTask    = `SELECT at FROM uses WHERE task = $1 AND tool = $2 AND of_task = $3`
	fullAgent   = `SELECT at FROM uses WHERE agent = $1 AND tool = $2 AND at > $3
		AND of_agent = (SELECT max(of_agent) FROM uses WHERE agent = $4 AND tool = $5) - $6 + 1`
	succeededIn = `SELECT EXISTS (SELECT 1 FROM uses WHERE task = $1 AND tool = $2 AND done = 1)`
)

// Use is one started call of a tool that some constraint counts.
type Use struct {
	Call, Agent, Tool, Session, Task, At string
}

// AddUse counts a call that starts. Times of one agent and tool never go back, also
// when the clock does: a window would lose count of what lies behind.
func (tx *Tx) AddUse(u Use) error {
	return tx.exec(insertUse,
		u.Call, u.Agent, u.Tool, u.Session, u.Task, u.At, u.At, u.Session, u.Tool, u.Task, u.Tool, u.Agent, u.Tool, u.Agent, u.Tool)
}

// SucceedUse notes that a counted call succeeded; a call that is not counted is left alone.
func (tx *Tx) SucceedUse(call string) error {
	return tx.exec(succeedUse, call)
}

// Full reports whether as many calls as a quota allows have started in its scope, and
// when the oldest of those did, so that a caller can be told when to come again.
func (tx *Tx) Full(u Use, q writ.Quota, since string) (bool, string, error) {
	return full(tx.ctx, tx.db, tx.row, u, q, since)
}

// Counts counts outside a transaction: what it says may be over at once.
func (db *DB) Counts(ctx context.Context) Counts { return Counts{db, ctx} }

// Counts is one look at the counters.
type Counts struct {
	db  *DB
	ctx context.Context
}

// Full is Tx.Full.
func (c Counts) Full(u Use, q writ.Quota, since string) (bool, string, error) {
	return full(c.ctx, c.db, c.db.row, u, q, since)
}

// Succeeded is Tx.Succeeded.
func (c Counts) Succeeded(task, tool string) (bool, error) {
	return succeeded(c.ctx, c.db, c.db.row, task, tool)
}

// asker asks for one row: a transaction, or the store as it is.
type asker func(ctx context.Context, query string, args ...any) scanner

// full looks for the call that is as many back as the quota allows. If it is there,
// and inside the window, there is no place left.
func full(ctx context.Context, db *DB, ask asker, u Use, q writ.Quota, since string) (bool, string, error) {
	var row scanner
	switch q.Per {
	case writ.PerSession:
		row = ask(ctx, fullSession, u.Session, u.Tool, q.Max)
	case writ.PerTask:
		row = ask(ctx, fullTask, u.Task, u.Tool, q.Max)
	default:
		row = ask(ctx, fullAgent, u.Agent, u.Tool, since, u.Agent, u.Tool, q.Max)
	}
	var at string
	switch err := row.Scan(&at); {
	case err == sql.ErrNoRows:
		return false, "", nil
	case err != nil:
		return false, "", db.unavailable(err)
	}
	return true, at, nil
}

// Succeeded reports whether a tool has succeeded in a task.
func (tx *Tx) Succeeded(task, tool string) (bool, error) {
	return succeeded(tx.ctx, tx.db, tx.row, task, tool)
}

func succeeded(ctx context.Context, db *DB, ask asker, task, tool string) (bool, error) {
	var ok bool
	err := ask(ctx, succeededIn, task, tool).Scan(&ok)
	if err != nil {
		return false, db.unavailable(err)
	}
	return ok, nil
}

// Since is the time a sliding window that ends now begins at, as times are written.
func Since(now time.Time, window time.Duration, format string) string {
	return now.Add(-window).UTC().Format(format)
}

// first is the one row of a query by key.
func first[T any](rows []T, err error) (T, bool, error) {
	if err != nil || len(rows) == 0 {
		var none T
		return none, false, err
	}
	return rows[0], true, nil
}
