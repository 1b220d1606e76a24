package store

import (
	"context"
	"database/sql"
)

// Kept is what came of a call, kept for whoever comes back for it.
type Kept struct {
	Invocation string
	Asked      string // the call as it was asked; empty: found by its key only
	At         string
	Delivered  string // when somebody got it; empty: nobody has
	Sealed     []byte
}

func scanKept(rows *sql.Rows) (Kept, error) {
	var k Kept
	err := rows.Scan(&k.Invocation, &k.Asked, &k.At, &k.Delivered, &k.Sealed)
	return k, err
}

const keptColumns = `SELECT invocation, asked, kept_at, delivered_at, sealed FROM invocation_results`

// Result finds what came of one.
func (db *DB) Result(ctx context.Context, id string) (Kept, bool, error) {
	return first(query(ctx, db, scanKept, keptColumns+` WHERE invocation = $1`, id))
}

// Undelivered finds the outcome that waits for a call to be made again.
func (db *DB) Undelivered(ctx context.Context, asked string) (Kept, bool, error) {
	return first(query(ctx, db, scanKept, keptColumns+` WHERE asked = $1 AND asked <> '' AND delivered_at = '' ORDER BY kept_at LIMIT 1`, asked))
}

// KeepResult keeps an outcome.
func (tx *Tx) KeepResult(k Kept) error {
	return tx.exec(`INSERT INTO invocation_results (invocation, asked, kept_at, delivered_at, sealed) VALUES ($1, $2, $3, $4, $5)`,
		k.Invocation, k.Asked, k.At, k.Delivered, k.Sealed)
}

// DeliverResult hands an outcome over, once.
func (tx *Tx) DeliverResult(id, now string) (bool, error) {
	return tx.changed(`UPDATE invocation_results SET delivered_at = $1 WHERE invocation = $2 AND delivered_at = ''`, now, id)
}

// settled leaves out what is unknown until a person has found out.
const settled = ` AND NOT EXISTS (SELECT 1 FROM tool_invocations i WHERE i.id = invocation_results.invocation AND i.status = 'unknown'
	AND NOT EXISTS (SELECT 1 FROM invocation_resolutions r WHERE r.invocation = i.id))`

// DropResults forgets outcomes kept before a time, but for what nobody has settled.
func (tx *Tx) DropResults(before string) error {
	return tx.exec(`DELETE FROM invocation_results WHERE kept_at < $1`+settled, before)
}

// OldResults reports whether there is an outcome kept before a time.
func (db *DB) OldResults(ctx context.Context, before string) (bool, error) {
	_, ok, err := first(query(ctx, db, func(rows *sql.Rows) (id string, err error) { return id, rows.Scan(&id) },
		`SELECT invocation FROM invocation_results WHERE kept_at < $1`+settled+` LIMIT 1`, before))
	return ok, err
}
