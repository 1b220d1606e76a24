package store

import (
	"context"
	"database/sql"
	"math"
)

// Sandbox is one that was kept between calls, or a container.
type Sandbox struct {
	N         int64 // its place among all
	ID        string
	Driver    string
	Agent     string
	Person    string // whom the agent acts for
	Session   string
	Task      string
	Kept      bool
	Container string
	Sidecar   string
	Image     string
	Since     string
	State     string // live, ended, or lost with its daemon
	Calls     int
	Used      string
	Ended     string // empty: it is live
}

const sandboxColumns = `SELECT n, id, driver, agent, acts_for, session, task, kept, container, sidecar, image, since, state, calls, used_at, ended_at FROM sandboxes`

func scanSandbox(rows *sql.Rows) (s Sandbox, err error) {
	err = rows.Scan(&s.N, &s.ID, &s.Driver, &s.Agent, &s.Person, &s.Session, &s.Task, &s.Kept, &s.Container, &s.Sidecar, &s.Image, &s.Since, &s.State, &s.Calls, &s.Used, &s.Ended)
	return s, err
}

// AddSandbox says that there is one.
func (tx *Tx) AddSandbox(s Sandbox) error {
	return tx.exec(`INSERT INTO sandboxes (id, driver, agent, acts_for, session, task, kept, container, sidecar, image, since, state, calls, used_at, ended_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 'live', $12, $13, '')`,
		s.ID, s.Driver, s.Agent, s.Person, s.Session, s.Task, s.Kept, s.Container, s.Sidecar, s.Image, s.Since, s.Calls, s.Used)
}

// EndSandbox says that one has ended, after how many calls and when the last one began.
func (tx *Tx) EndSandbox(id string, calls int, used, now string) error {
	return tx.exec(`UPDATE sandboxes SET state = 'ended', calls = $1, used_at = $2, ended_at = $3 WHERE id = $4 AND state = 'live'`, calls, used, now, id)
}

// LoseSandboxes says of all that are live that their daemon is gone.
func (tx *Tx) LoseSandboxes(now string) error {
	return tx.exec(`UPDATE sandboxes SET state = 'lost', ended_at = $1 WHERE state = 'live'`, now)
}

// Sandbox finds one by its id; ok is false when there is none.
func (db *DB) Sandbox(ctx context.Context, id string) (s Sandbox, ok bool, err error) {
	return first(query(ctx, db, scanSandbox, sandboxColumns+` WHERE id = $1`, id))
}

// EndedSandboxes lists at most limit that are over, the newest first, of those before one
// (its place; zero: from the end).
func (db *DB) EndedSandboxes(ctx context.Context, before int64, limit int) ([]Sandbox, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return query(ctx, db, scanSandbox, sandboxColumns+` WHERE n < $1 AND state <> 'live' ORDER BY n DESC LIMIT $2`, before, limit)
}
