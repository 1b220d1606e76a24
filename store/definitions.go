package store

import (
	"context"
	"database/sql"
)

// Definition is a tool's definition as a person accepted it.
type Definition struct {
	Name     string `json:"name"`
	Digest   string `json:"digest"`
	Body     string `json:"body"` // canonical JSON
	Accepted string `json:"accepted_at"`
	By       string `json:"accepted_by"`
}

// Definitions lists the last accepted definition of every name.
func (db *DB) Definitions(ctx context.Context) ([]Definition, error) {
	scan := func(rows *sql.Rows) (Definition, error) {
		var d Definition
		err := rows.Scan(&d.Name, &d.Digest, &d.Body, &d.Accepted, &d.By)
		return d, err
	}
	return query(ctx, db, scan, `SELECT name, digest, body, accepted_at, accepted_by FROM definitions d
		WHERE accepted_at = (SELECT max(accepted_at) FROM definitions WHERE name = d.name) ORDER BY name`)
}

// AddDefinition accepts a definition; the ones before it are kept.
func (tx *Tx) AddDefinition(d Definition) error {
	return tx.exec(`INSERT INTO definitions (name, digest, body, accepted_at, accepted_by) VALUES ($1, $2, $3, $4, $5)`,
		d.Name, d.Digest, d.Body, d.Accepted, d.By)
}
