package store

import (
	"context"
	"database/sql"
	"math"
)

// Egress is one connection or one question of a box, when it was over: what it wanted
// to reach, and whether it was let through. The schema adds them, and changes none.
type Egress struct {
	N        int64 // its place among all; AddEgress gives it
	At       string
	Call     string // empty: of something that no call runs, such as a server
	Agent    string
	Kind     string // connect, dns, http or ssh
	Host     string // host:port, or the name that was asked about: the box's own words
	Address  string // empty: none was dialled
	Verdict  string // allowed, or the name of the refusal
	Class    string // of the address, where that is why
	Rule     string // by which; of a refusal for want of one (egress.Verdict.Unmet), which would allow it
	Detail   string
	Sent     int64
	Received int64
	Micros   int64
}

const egressNames = `at, call, agent, kind, host, address, verdict, address_class, rule, detail, sent, received, micros`

// AddEgress adds what left boxes, or was refused, in the order given. On an error
// nothing of the transaction may stay.
func (tx *Tx) AddEgress(all []Egress) error {
	for _, e := range all {
		err := tx.exec(`INSERT INTO egress_events (n, `+egressNames+`)
			SELECT coalesce(max(n), 0) + 1, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 FROM egress_events`,
			e.At, e.Call, e.Agent, e.Kind, e.Host, e.Address, e.Verdict, e.Class, e.Rule, e.Detail, e.Sent, e.Received, e.Micros)
		if err != nil {
			return err
		}
	}
	return nil
}

// EgressOf chooses what to list of what left boxes. Its zero value chooses all.
type EgressOf struct {
	Call    string // empty: of every call, and of none
	Agent   string // empty: everybody's
	Refused bool   // only what was not let through
}

// EgressBefore lists at most limit of them, the newest first, that came before one (its
// place; zero: from the end).
func (db *DB) EgressBefore(ctx context.Context, of EgressOf, before int64, limit int) ([]Egress, error) {
	if before == 0 {
		before = math.MaxInt64
	}
	return db.egress(ctx, of, `n < $1`, `n DESC`, before, limit)
}

// EgressAfter lists at most limit of them, the oldest first, that came after one.
func (db *DB) EgressAfter(ctx context.Context, of EgressOf, after int64, limit int) ([]Egress, error) {
	return db.egress(ctx, of, `n > $1`, `n`, after, limit)
}

// egress names a filter only where there is one, so that each finds its index. A call
// has fewer than its agent: beside it the agent's index, which it could choose, is hidden.
func (db *DB) egress(ctx context.Context, of EgressOf, where, order string, n int64, limit int) ([]Egress, error) {
	args := []any{n, limit}
	switch {
	case of.Call != "" && of.Agent != "":
		where, args = where+` AND call = $3 AND agent || '' = $4`, append(args, of.Call, of.Agent)
	case of.Call != "":
		where, args = where+` AND call = $3`, append(args, of.Call)
	case of.Agent != "":
		where, args = where+` AND agent = $3`, append(args, of.Agent)
	}
	if of.Refused {
		where += ` AND verdict <> 'allowed'`
	}
	return query(ctx, db, scanEgress, `SELECT n, `+egressNames+` FROM egress_events WHERE `+where+` ORDER BY `+order+` LIMIT $2`, args...)
}

func scanEgress(rows *sql.Rows) (Egress, error) {
	var e Egress
	err := rows.Scan(&e.N, &e.At, &e.Call, &e.Agent, &e.Kind, &e.Host, &e.Address, &e.Verdict, &e.Class, &e.Rule, &e.Detail, &e.Sent, &e.Received, &e.Micros)
	return e, err
}
