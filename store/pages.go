package store

import (
	"context"
	"math"
	"strings"
)

// EntriesBefore lists at most n entries, the newest first, that come before a
// sequence number; zero: from the end.
func (db *DB) EntriesBefore(ctx context.Context, seq int64, n int) ([]Entry, error) {
	if seq == 0 {
		seq = math.MaxInt64
	}
	return query(ctx, db, scanEntry, entryColumns+` WHERE seq < $1 ORDER BY seq DESC LIMIT $2`, seq, n)
}

// InvocationsOf chooses invocations to list.
type InvocationsOf struct {
	Agent string // empty: everybody's
	State string // one of States, or empty: any
	Now   string // what is open and should have ended by now counts as expired
}

// States are the words by which invocations are chosen, each with what it stands for.
// Besides every status there are the states of a request: asked (any that a person
// was asked about), approved (nobody has taken it up), used and void.
var States = map[string]string{
	"pending":   `status = 'pending' AND expires_at > $now`,
	"running":   `status = 'running'`,
	"completed": `status = 'completed'`,
	"failed":    `status = 'failed'`,
	"rejected":  `status = 'rejected'`,
	"expired":   `(status = 'expired' OR status = 'pending' AND expires_at <= $now OR status = 'running' AND worker = '' AND expires_at <= $now OR status = 'cancelled' AND outcome = 'expired')`,
	"cancelled": `status = 'cancelled'`,
	"unknown":   `status = 'unknown' AND NOT EXISTS (SELECT 1 FROM invocation_resolutions r WHERE r.invocation = tool_invocations.id)`, // to be settled
	"denied":    `status = 'denied'`,
	"asked":     `asked <> ''`,
	"approved":  `status = 'running' AND fence = 0 AND expires_at > $now`,
	"used":      `asked <> '' AND fence > 0`,
	"void":      `asked <> '' AND status = 'cancelled' AND fence = 0 AND outcome <> 'expired'`,
}

// InvocationsBefore lists at most n invocations, the newest first, that came before
// one (its place; zero: from the end). What they show is left out.
func (db *DB) InvocationsBefore(ctx context.Context, of InvocationsOf, before int64, n int) ([]Invocation, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	where := ""
	if of.State != "" {
		where = " AND " + strings.ReplaceAll(States[of.State], "$now", "$4")
	}
	return query(ctx, db, scanInvocation, listedColumns+` WHERE n < $1 AND ($2 = '' OR agent = $3)`+where+` AND $4 <> '' ORDER BY n DESC LIMIT $5`,
		before, of.Agent, of.Agent, of.Now, n)
}
