package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"
)

// Vote is one person's answer to a request.
type Vote struct {
	Invocation string
	Person     string
	Decision   string // approve or reject
	Digest     string // of the request as it was shown
	Factor     string // what they proved themselves with
	At         string
	Proof      []byte // that the daemon took it
	Role       string // which they must have, where any that may approve is not enough; not kept
}

// Votes lists the answers to a request, the first first.
func (db *DB) Votes(ctx context.Context, id string) ([]Vote, error) {
	scan := func(rows *sql.Rows) (Vote, error) {
		var v Vote
		err := rows.Scan(&v.Invocation, &v.Person, &v.Decision, &v.Digest, &v.Factor, &v.At, &v.Proof)
		return v, err
	}
	votes, err := look(ctx, db, scan, `SELECT invocation, person, decision, digest, factor, at, proof FROM tool_approvals WHERE invocation = $1`, id)
	// They are few, and the engine would make a table to sort them.
	slices.SortFunc(votes, func(a, b Vote) int {
		return cmp.Or(strings.Compare(a.At, b.At), strings.Compare(a.Person, b.Person))
	})
	return votes, err
}

// voteCounts is what has to hold for an answer to count.
const voteCounts = ` EXISTS (SELECT 1 FROM people WHERE name = $2 AND role IN ('approver', 'admin') AND ($7 = '' OR role = $7))
	AND EXISTS (SELECT 1 FROM tool_invocations WHERE id = $1 AND status = 'pending' AND digest = $4 AND requested_at <= $6 AND expires_at > $6 AND ($3 = 'reject' OR not_by <> $2))
	AND NOT EXISTS (SELECT 1 FROM tool_approvals WHERE invocation = $1 AND person = $2) AND $5 <> ''`

func (v *Vote) args() []any {
	return []any{v.Invocation, v.Person, v.Decision, v.Digest, v.Factor, v.At, v.Role}
}

// AddVote adds an answer. It reports false when it does not count: the request is
// not pending, is over or another one, the person answered already, may not approve
// (any more), or is the one it is asked for where four eyes are called for.
func (tx *Tx) AddVote(v Vote) (bool, error) {
	if v.Role != "" {
		n, err := tx.count(`SELECT count(*) FROM people WHERE name = $1 AND role = $2`, v.Person, v.Role)
		if err != nil || n == 0 {
			return false, err
		}
	}
	// Of rows that a SELECT finds the engine would make a table first.
	return tx.taken(`INSERT INTO tool_approvals (invocation, person, decision, digest, factor, at, proof) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
		v.Invocation, v.Person, v.Decision, v.Digest, v.Factor, v.At, v.Proof)
}

// CanVote reports whether AddVote would add it.
func (tx *Tx) CanVote(v Vote) (bool, error) {
	n, err := tx.count(`SELECT count(*) FROM (SELECT 1 WHERE`+voteCounts+`) t`, v.args()...)
	return n == 1, err
}

// ApproveInvocation lets a request run once enough people have agreed, the one named
// among them; it reports false while they have not. Who may not approve any more does
// not count any more.
func (tx *Tx) ApproveInvocation(id, by, now string) (bool, error) {
	return tx.changed(`UPDATE tool_invocations SET status = 'running', approval_status = 'approved', decided_by = $1, decided_at = $2, started_at = $3
		WHERE id = $4 AND status = 'pending' AND expires_at > $5
		AND EXISTS (SELECT 1 FROM tool_approvals v WHERE v.invocation = $4 AND v.person = $1 AND v.decision = 'approve')
		AND (SELECT count(*) FROM tool_approvals v JOIN people p ON p.name = v.person AND p.role IN ('approver', 'admin')
			WHERE v.invocation = $4 AND v.decision = 'approve' AND v.digest = tool_invocations.digest) >= quorum`,
		by, now, now, id, now)
}

// RejectInvocation ends a request that the one named said no to.
func (tx *Tx) RejectInvocation(id, by, reason, now string) (bool, error) {
	return tx.changed(`UPDATE tool_invocations SET status = 'rejected', approval_status = 'rejected', decided_by = $1, decided_at = $2, completed_at = $3,
		approval_reason = $4, outcome = 'rejected', sealed = NULL WHERE id = $5 AND status = 'pending' AND expires_at > $6
		AND EXISTS (SELECT 1 FROM tool_approvals v WHERE v.invocation = $5 AND v.person = $1 AND v.decision = 'reject')`, by, now, now, reason, id, now)
}

// Approvers counts the people who may approve.
func (db *DB) Approvers(ctx context.Context) (int, error) {
	n, err := query(ctx, db, func(rows *sql.Rows) (n int, err error) { return n, rows.Scan(&n) },
		`SELECT count(*) FROM people WHERE role IN ('approver', 'admin')`)
	if err != nil {
		return 0, err
	}
	return n[0], nil
}

// Resolution is what a person found out about an outcome that could not be known.
type Resolution struct {
	Invocation string
	Happened   string // yes, no or partly
	Note       string
	By         string
	At         string
}

// Resolution finds what was found out about one.
func (db *DB) Resolution(ctx context.Context, id string) (Resolution, bool, error) {
	scan := func(rows *sql.Rows) (Resolution, error) {
		var r Resolution
		err := rows.Scan(&r.Invocation, &r.Happened, &r.Note, &r.By, &r.At)
		return r, err
	}
	return first(query(ctx, db, scan, `SELECT invocation, happened, note, resolved_by, resolved_at FROM invocation_resolutions WHERE invocation = $1`, id))
}

// AddResolution says what was found out; false: it is not unknown, was resolved, or
// the one named may not say so.
func (tx *Tx) AddResolution(r Resolution) (bool, error) {
	return tx.changed(`INSERT INTO invocation_resolutions (invocation, happened, note, resolved_by, resolved_at) SELECT $1, $2, $3, $4, $5
		WHERE EXISTS (SELECT 1 FROM tool_invocations WHERE id = $6 AND status = 'unknown')
		AND NOT EXISTS (SELECT 1 FROM invocation_resolutions WHERE invocation = $7)
		AND EXISTS (SELECT 1 FROM people WHERE name = $4 AND role IN ('operator', 'approver', 'admin'))`, r.Invocation, r.Happened, r.Note, r.By, r.At, r.Invocation, r.Invocation)
}
