package store

import (
	"context"
	"math"
)

// EntriesBefore lists at most n entries, the newest first, that come before a
// sequence number; zero: from the end.
func (db *DB) EntriesBefore(ctx context.Context, seq int64, n int) ([]Entry, error) {
	if seq == 0 {
		seq = math.MaxInt64
	}
	return query(ctx, db, scanEntry, entryColumns+` WHERE seq < $1 ORDER BY seq DESC LIMIT $2`, seq, n)
}

// ApprovalsOf chooses approvals to list.
type ApprovalsOf struct {
	Agent string // empty: everybody's
	State string // empty: any
	Now   string // what is open and should have ended by now counts as expired
}

// ApprovalsBefore lists at most n approvals, the newest first, that come after one
// (of that time and id) in this order. What they sealed is left out.
func (db *DB) ApprovalsBefore(ctx context.Context, of ApprovalsOf, requested, id string, n int) ([]Approval, error) {
	return query(ctx, db, scanApproval, `SELECT id, digest, subject, agent, tool, state, requested_at, expires_at, decided_at, decided_by, reason, NULL FROM (
		SELECT id, digest, subject, agent, tool, requested_at, expires_at, decided_at, decided_by, reason,
			CASE WHEN state IN ('pending', 'approved') AND expires_at <= $1 THEN 'expired' ELSE state END AS state FROM approvals) t
		WHERE ($2 = '' OR agent = $3) AND ($4 = '' OR state = $5) AND ($6 = '' OR requested_at < $7 OR requested_at = $8 AND id < $9)
		ORDER BY requested_at DESC, id DESC LIMIT $10`,
		of.Now, of.Agent, of.Agent, of.State, of.State, requested, requested, requested, id, n)
}
