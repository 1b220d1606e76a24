package store

import (
	"context"
	"database/sql"
	"strings"
)

// Approval is one request for a person's agreement, and what came of it. State
// is pending, then approved, rejected, expired or void; approved, then used or
// void. The schema refuses any other step, and any change of what was asked.
type Approval struct {
	ID        string
	Digest    string // what the approver echoes: subject and expiry
	Subject   string
	Agent     string
	Tool      string
	State     string
	Requested string
	Expires   string
	Decided   string
	By        string
	Reason    string
	Sealed    []byte // the call as it is shown, encrypted; emptied when it ends
}

const approvalColumns = `SELECT id, digest, subject, agent, tool, state, requested_at, expires_at, decided_at, decided_by, reason, sealed FROM approvals`

func scanApproval(rows *sql.Rows) (Approval, error) {
	var a Approval
	err := rows.Scan(&a.ID, &a.Digest, &a.Subject, &a.Agent, &a.Tool, &a.State, &a.Requested, &a.Expires, &a.Decided, &a.By, &a.Reason, &a.Sealed)
	return a, err
}

// Approvals lists those in a state, or all when state is empty, newest last.
func (db *DB) Approvals(ctx context.Context, state string) ([]Approval, error) {
	return query(ctx, db, scanApproval, approvalColumns+` WHERE $1 = '' OR state = $2 ORDER BY requested_at, id`, state, state)
}

// Approval finds one by id; ok is false when there is none.
func (db *DB) Approval(ctx context.Context, id string) (a Approval, ok bool, err error) {
	as, err := query(ctx, db, scanApproval, approvalColumns+` WHERE id = $1`, id)
	if err != nil || len(as) == 0 {
		return Approval{}, false, err
	}
	return as[0], true, nil
}

// OpenApprovals lists those of a subject that are pending or approved and unused.
func (db *DB) OpenApprovals(ctx context.Context, subject string) ([]Approval, error) {
	return query(ctx, db, scanApproval, approvalColumns+` WHERE subject = $1 AND state IN ('pending', 'approved') ORDER BY requested_at, id`, subject)
}

// AddApproval adds a pending one; it reports false when the agent, with those it
// delegated to, already has limit pending that have not expired, or the subject has
// one that is open.
func (tx *Tx) AddApproval(a Approval, limit int) (bool, error) {
	base, _, _ := strings.Cut(a.Agent, "/") // a child's name begins with its parent's
	return tx.changed(`INSERT INTO approvals (id, digest, subject, agent, tool, state, requested_at, expires_at, decided_at, decided_by, reason, sealed)
		SELECT $1, $2, $3, $4, $5, 'pending', $6, $7, '', '', '', $8
		WHERE (SELECT count(*) FROM approvals WHERE (agent = $9 OR substr(agent, 1, $10) = $11) AND state = 'pending' AND expires_at > $12) < $13
		AND NOT EXISTS (SELECT 1 FROM approvals WHERE subject = $14 AND state IN ('pending', 'approved'))`,
		a.ID, a.Digest, a.Subject, a.Agent, a.Tool, a.Requested, a.Expires, a.Sealed, base, len(base)+1, base+"/", a.Requested, limit, a.Subject)
}

// DecideApproval moves a pending one that has not expired to approved or
// rejected, if digest is the one that was shown. It reports false otherwise.
func (tx *Tx) DecideApproval(id, digest, state, by, reason, now string) (bool, error) {
	return tx.changed(`UPDATE approvals SET state = $1, decided_by = $2, reason = $3, decided_at = $4,
		sealed = CASE WHEN $5 = 'approved' THEN sealed ELSE NULL END
		WHERE id = $6 AND digest = $7 AND state = 'pending' AND expires_at > $8`, state, by, reason, now, state, id, digest, now)
}

// UseApproval uses up an approved one that has not expired, for its own subject.
func (tx *Tx) UseApproval(id, subject, now string) (bool, error) {
	return tx.changed(`UPDATE approvals SET state = 'used', sealed = NULL WHERE id = $1 AND subject = $2 AND state = 'approved' AND expires_at > $3`,
		id, subject, now)
}

// ExpireApproval ends an open one whose time is over.
func (tx *Tx) ExpireApproval(id, now string) (bool, error) {
	return tx.changed(`UPDATE approvals SET state = 'expired', sealed = NULL WHERE id = $1 AND state IN ('pending', 'approved') AND expires_at <= $2`, id, now)
}

// VoidApprovals ends what an agent, or everybody under "*", has open.
func (tx *Tx) VoidApprovals(agent string) error {
	return tx.exec(`UPDATE approvals SET state = 'void', sealed = NULL WHERE state IN ('pending', 'approved') AND ($1 = '*' OR agent = $2)`, agent, agent)
}
