package store

import (
	"context"
	"database/sql"
	"errors"
)

// Secret is what may be known of a secret in the store.
type Secret struct {
	Name string
	Set  string // when
	By   string // whom
}

// Secrets lists the secrets there are, without what they hold.
func (db *DB) Secrets(ctx context.Context) ([]Secret, error) {
	scan := func(rows *sql.Rows) (Secret, error) {
		var s Secret
		err := rows.Scan(&s.Name, &s.Set, &s.By)
		return s, err
	}
	return query(ctx, db, scan, `SELECT name, set_at, set_by FROM secrets ORDER BY name`)
}

// Secret is what one holds, sealed.
func (db *DB) Secret(ctx context.Context, name string) (sealed []byte, found bool, err error) {
	err = db.row(ctx, `SELECT sealed FROM secrets WHERE name = $1`, name).Scan(&sealed)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, db.unavailable(err)
	}
	return sealed, true, nil
}

// SetSecret keeps a sealed value, instead of the one before.
func (tx *Tx) SetSecret(s Secret, sealed []byte) error {
	return tx.exec(`INSERT INTO secrets (name, sealed, set_at, set_by) VALUES ($1, $2, $3, $4)
		ON CONFLICT (name) DO UPDATE SET sealed = excluded.sealed, set_at = excluded.set_at, set_by = excluded.set_by`, s.Name, sealed, s.Set, s.By)
}

// RemoveSecret forgets one; it reports false where there was none.
func (tx *Tx) RemoveSecret(name string) (bool, error) {
	return tx.changed(`DELETE FROM secrets WHERE name = $1`, name)
}
