package store

import (
	"context"
	"database/sql"
	"iter"
	"math"

	"github.com/writ-run/writ"
)

// Entry is one row of the ledger. Body is canonical JSON that holds everything,
// the other columns included; Hash is its SHA-256.
type Entry struct {
	Chain string
	Seq   int64
	Kind  string
	Call  string
	Agent string
	At    string
	Body  string
	Hash  writ.Digest
}

// Head is a signed statement of how far a chain had come.
type Head struct {
	Chain     string
	Seq       int64
	Body      string // canonical JSON, what is signed
	Signature []byte
}

const insertEntry = `INSERT INTO ledger (chain, seq, kind, call, agent, at, body, hash) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`

// Append adds one entry.
func (tx *Tx) Append(e Entry) error {
	return tx.exec(insertEntry, e.Chain, e.Seq, e.Kind, e.Call, e.Agent, e.At, e.Body, e.Hash[:])
}

// SetHead adds a signed head.
func (tx *Tx) SetHead(h Head) error {
	return tx.exec(`INSERT INTO ledger_heads (chain, seq, body, signature) VALUES ($1, $2, $3, $4)`, h.Chain, h.Seq, h.Body, h.Signature)
}

// Chain is the id of the store's chain and the end of it; seq 0 when it is empty.
func (db *DB) Chain(ctx context.Context) (chain string, seq int64, last writ.Digest, err error) {
	err = db.row(ctx, `SELECT chain FROM ledger_chain`).Scan(&chain)
	if err != nil {
		return "", 0, last, db.unavailable(err)
	}
	var hash []byte
	err = db.row(ctx, `SELECT seq, hash FROM ledger WHERE chain = $1 ORDER BY seq DESC LIMIT 1`, chain).Scan(&seq, &hash)
	if err == sql.ErrNoRows {
		return chain, 0, last, nil
	}
	if err != nil {
		return "", 0, last, db.unavailable(err)
	}
	copy(last[:], hash)
	return chain, seq, last, nil
}

// sinceHead is the entries after the last signed head, which the list of calls does not
// have yet.
const sinceHead = ` seq > (SELECT coalesce(max(h.seq), 0) FROM ledger_heads h WHERE h.chain = (SELECT chain FROM ledger_chain))`

// FirstOf is the number of the first entry about a call; 1 where there is none.
func (db *DB) FirstOf(ctx context.Context, call string) (int64, error) {
	var seq int64
	err := db.row(ctx, `SELECT coalesce((SELECT min(seq) FROM ledger_calls WHERE call = $1), (SELECT min(seq) FROM ledger WHERE`+sinceHead+` AND call = $1 AND call <> ''), 1)`, call).Scan(&seq)
	if err != nil {
		return 0, db.unavailable(err)
	}
	return seq, nil
}

const entryColumns = `SELECT chain, seq, kind, call, agent, at, body, hash FROM ledger`

func scanEntry(rows *sql.Rows) (Entry, error) {
	var e Entry
	var hash []byte
	err := rows.Scan(&e.Chain, &e.Seq, &e.Kind, &e.Call, &e.Agent, &e.At, &e.Body, &hash)
	copy(e.Hash[:], hash)
	return e, err
}

// After lists at most n entries after a sequence number.
func (db *DB) After(ctx context.Context, seq int64, n int) ([]Entry, error) {
	return query(ctx, db, scanEntry, entryColumns+` WHERE seq > $1 ORDER BY seq LIMIT $2`, seq, n)
}

// OfCall lists the entries about one call.
func (db *DB) OfCall(ctx context.Context, call string) ([]Entry, error) {
	return query(ctx, db, scanEntry, entryColumns+` WHERE seq IN (SELECT seq FROM ledger_calls WHERE call = $1)
		UNION `+entryColumns+` WHERE`+sinceHead+` AND call = $1 ORDER BY seq`, call)
}

// Entries walks the whole ledger in order of insertion, in pages, so that a long
// one does not sit in memory.
func (db *DB) Entries(ctx context.Context) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for seq := int64(math.MinInt64); ; {
			page, err := db.After(ctx, seq, 1000)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
				seq = e.Seq
			}
			if len(page) == 0 {
				return
			}
		}
	}
}

// Unlisted counts the entries under a signed head that the list of calls does not have:
// somebody took them out of it.
func (db *DB) Unlisted(ctx context.Context) (n int64, err error) {
	err = db.row(ctx, `SELECT (SELECT count(*) FROM ledger WHERE call <> '' AND NOT`+sinceHead+`) - (SELECT count(*) FROM ledger_calls)`).Scan(&n)
	if err != nil {
		return 0, db.unavailable(err)
	}
	return n, nil
}

// Heads lists every signed head in order.
func (db *DB) Heads(ctx context.Context) ([]Head, error) {
	scan := func(rows *sql.Rows) (Head, error) {
		var h Head
		err := rows.Scan(&h.Chain, &h.Seq, &h.Body, &h.Signature)
		return h, err
	}
	return query(ctx, db, scan, `SELECT chain, seq, body, signature FROM ledger_heads ORDER BY seq`)
}
