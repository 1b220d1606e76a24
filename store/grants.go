package store

import (
	"context"
	"database/sql"
)

// Grant is a standing approval: calls of one tool by one agent that match a pattern,
// at most so often, until a time.
type Grant struct {
	ID         string
	Invocation string // the request it was made from
	Agent      string
	Tool       string
	Definition string
	Policy     string
	Reach      string // digest of what calls of the tool reach before their arguments ask for more
	Class      string
	Max        int
	Used       int
	Made       string
	By         string
	Expires    string
	Revoked    string
	RevokedBy  string
	Sealed     []byte // the pattern, encrypted: it holds arguments
}

const grantColumns = `SELECT id, invocation, agent, tool_key, definition, policy, confinement, egress_class, max_uses, used, made_at, made_by, expires_at, revoked_at, revoked_by, sealed FROM grants`

func scanGrant(rows *sql.Rows) (Grant, error) {
	var g Grant
	err := rows.Scan(&g.ID, &g.Invocation, &g.Agent, &g.Tool, &g.Definition, &g.Policy, &g.Reach, &g.Class, &g.Max, &g.Used, &g.Made, &g.By, &g.Expires, &g.Revoked, &g.RevokedBy, &g.Sealed)
	return g, err
}

// Grants lists all, the newest first.
func (db *DB) Grants(ctx context.Context) ([]Grant, error) {
	return query(ctx, db, scanGrant, grantColumns+` ORDER BY made_at DESC, id`)
}

// byApprover: a grant is good while whoever made it may approve.
const byApprover = ` AND EXISTS (SELECT 1 FROM people p WHERE p.name = grants.made_by AND p.role IN ('approver', 'admin'))`

// LiveGrants lists those of an agent and a tool that can still be used.
func (db *DB) LiveGrants(ctx context.Context, agent, tool, now string) ([]Grant, error) {
	return query(ctx, db, scanGrant, grantColumns+` WHERE agent = $1 AND tool_key = $2 AND revoked_at = '' AND used < max_uses AND expires_at > $3`+byApprover+` ORDER BY expires_at, id`, agent, tool, now)
}

// GrantLive reports whether a grant can be used now.
func (tx *Tx) GrantLive(id, now string) (bool, error) {
	n, err := tx.count(`SELECT count(*) FROM grants WHERE id = $1 AND revoked_at = '' AND used < max_uses AND expires_at > $2`+byApprover, id, now)
	return n == 1, err
}

// AddGrant adds one, from a request that its maker approved.
func (tx *Tx) AddGrant(g Grant) error {
	return tx.exec(`INSERT INTO grants (id, invocation, agent, tool_key, definition, policy, confinement, egress_class, max_uses, used, made_at, made_by, expires_at, revoked_at, revoked_by, sealed)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 0, $10, $11, $12, '', '', $13)`,
		g.ID, g.Invocation, g.Agent, g.Tool, g.Definition, g.Policy, g.Reach, g.Class, g.Max, g.Made, g.By, g.Expires, g.Sealed)
}

// RevokeGrant ends one; false: there is none that is not revoked.
func (tx *Tx) RevokeGrant(id, by, now string) (bool, error) {
	return tx.changed(`UPDATE grants SET revoked_at = $1, revoked_by = $2 WHERE id = $3 AND revoked_at = ''`, now, by, id)
}

// RevokeGrants ends all of an agent, or everybody's under "*".
func (tx *Tx) RevokeGrants(agent, by, now string) error {
	return tx.exec(`UPDATE grants SET revoked_at = $1, revoked_by = $2 WHERE revoked_at = '' AND ($3 = '*' OR agent = $4)`, now, by, agent, agent)
}

// RevokeOtherGrants ends all that were made under another policy than this.
func (tx *Tx) RevokeOtherGrants(policy, now string) error {
	return tx.exec(`UPDATE grants SET revoked_at = $1, revoked_by = '' WHERE revoked_at = '' AND policy <> $2`, now, policy)
}
