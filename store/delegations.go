package store

import (
	"context"
	"database/sql"
	"strings"
)

// Delegation is an agent that another agent made: what it asked for, never what it
// may reach, which is worked out from its ancestors as they are now.
type Delegation struct {
	Name        string `json:"name"`
	Parent      string `json:"parent"`
	ParentToken string `json:"parent_token"` // the token it was made with: revoking that ends it
	Session     string `json:"session"`      // it works in, with its parent
	Task        string `json:"task"`
	Token       string `json:"token"`   // its own
	Request     string `json:"request"` // canonical JSON
	Made        string `json:"made_at"`
	Expires     string `json:"expires_at"`
	Ended       string `json:"ended_at,omitempty"`
	Why         string `json:"why,omitempty"`
}

const delegationColumns = `SELECT name, parent, parent_token, session, task, token, request, made_at, expires_at, ended_at, why FROM delegations`

func scanDelegation(rows *sql.Rows) (Delegation, error) {
	var d Delegation
	err := rows.Scan(&d.Name, &d.Parent, &d.ParentToken, &d.Session, &d.Task, &d.Token, &d.Request, &d.Made, &d.Expires, &d.Ended, &d.Why)
	return d, err
}

// Delegations lists those that have not ended, parents before their children.
func (db *DB) Delegations(ctx context.Context) ([]Delegation, error) {
	return query(ctx, db, scanDelegation, delegationColumns+` WHERE ended_at = '' ORDER BY made_at, name`)
}

// AddDelegation adds one; it reports false when the name was ever used, the parent
// has children live ones, or all below the agent at the top are descendants already.
func (tx *Tx) AddDelegation(d Delegation, children, descendants int) (bool, error) {
	base, _, _ := strings.Cut(d.Parent, "/") // a child's name begins with its parent's
	return tx.changed(`INSERT INTO delegations (name, parent, parent_token, session, task, token, request, made_at, expires_at, ended_at, why)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, '', '' WHERE NOT EXISTS (SELECT 1 FROM delegations WHERE name = $10)
		AND (SELECT count(*) FROM delegations WHERE parent = $11 AND ended_at = '') < $12
		AND (SELECT count(*) FROM delegations WHERE substr(name, 1, $13) = $14 AND ended_at = '') < $15`,
		d.Name, d.Parent, d.ParentToken, d.Session, d.Task, d.Token, d.Request, d.Made, d.Expires, d.Name, d.Parent, children, len(base)+1, base+"/", descendants)
}

// EndDelegation ends one that is live, and its token.
func (tx *Tx) EndDelegation(name, why, now string) (bool, error) {
	ok, err := tx.changed(`UPDATE delegations SET ended_at = $1, why = $2 WHERE name = $3 AND ended_at = ''`, now, why, name)
	if err != nil || !ok {
		return ok, err
	}
	return true, tx.exec(`UPDATE tokens SET revoked_at = $1 WHERE revoked_at = '' AND agent = $2`, now, name)
}
