package store

import (
	"context"
	"database/sql"
)

// Person is somebody who may decide.
type Person struct {
	Name       string
	Role       string
	Passphrase string // argon2id, in its usual text form
	Created    string
}

// People lists everybody.
func (db *DB) People(ctx context.Context) ([]Person, error) {
	scan := func(rows *sql.Rows) (Person, error) {
		var p Person
		err := rows.Scan(&p.Name, &p.Role, &p.Passphrase, &p.Created)
		return p, err
	}
	return query(ctx, db, scan, `SELECT name, role, passphrase, created_at FROM people ORDER BY name`)
}

// AddFirstPerson adds somebody while there is nobody; it reports false otherwise.
func (tx *Tx) AddFirstPerson(p Person) (bool, error) {
	return tx.changed(`INSERT INTO people (name, role, passphrase, created_at) SELECT $1, $2, $3, $4 WHERE NOT EXISTS (SELECT 1 FROM people)`,
		p.Name, p.Role, p.Passphrase, p.Created)
}

// AddPerson adds somebody; it reports false when there is one of that name, in whatever
// letters: who decided must be plain to whoever reads of it.
func (tx *Tx) AddPerson(p Person) (bool, error) {
	return tx.changed(`INSERT INTO people (name, role, passphrase, created_at) SELECT $1, $2, $3, $4 WHERE NOT EXISTS (SELECT 1 FROM people WHERE lower(name) = lower($1))`,
		p.Name, p.Role, p.Passphrase, p.Created)
}

// SetRole gives somebody another role; it reports false, having changed nothing,
// when there is nobody of that name, they have it already, or nobody else is an
// admin and they would cease to be.
func (tx *Tx) SetRole(name, role string) (bool, error) {
	return tx.changed(`UPDATE people SET role = $1 WHERE name = $2 AND role <> $1
		AND (role <> 'admin' OR EXISTS (SELECT 1 FROM people WHERE role = 'admin' AND name <> $2))`, role, name)
}

// SetPassphrase replaces somebody's hash; it reports false when there is nobody of
// that name.
func (tx *Tx) SetPassphrase(name, hash string) (bool, error) {
	return tx.changed(`UPDATE people SET passphrase = $1 WHERE name = $2`, hash, name)
}

// Person finds somebody as they are in this transaction.
func (tx *Tx) Person(name string) (p Person, found bool, err error) {
	err = tx.row(tx.ctx, `SELECT name, role, passphrase, created_at FROM people WHERE name = $1`, name).
		Scan(&p.Name, &p.Role, &p.Passphrase, &p.Created)
	if err == sql.ErrNoRows {
		return Person{}, false, nil
	}
	if err != nil {
		return Person{}, false, tx.db.unavailable(err)
	}
	return p, true, nil
}

// AboutPeople lists the entries about people since a time, the oldest first. It
// reads no further back than that, however long the ledger is.
func (db *DB) AboutPeople(ctx context.Context, since string) ([]Entry, error) {
	return query(ctx, db, scanEntry, entryColumns+` WHERE seq > coalesce((SELECT seq FROM ledger WHERE at < $1 ORDER BY seq DESC LIMIT 1), 0)
		AND substr(kind, 1, 7) = 'person.' ORDER BY seq`, since)
}

// Token is a bearer token of an agent. Only its hash is kept.
type Token struct {
	ID      string
	Agent   string
	Hash    []byte
	Created string
	Revoked string // empty while it is good
}

// Tokens lists every token, revoked ones too.
func (db *DB) Tokens(ctx context.Context) ([]Token, error) {
	scan := func(rows *sql.Rows) (Token, error) {
		var t Token
		err := rows.Scan(&t.ID, &t.Agent, &t.Hash, &t.Created, &t.Revoked)
		return t, err
	}
	return query(ctx, db, scan, `SELECT id, agent, hash, created_at, revoked_at FROM tokens ORDER BY created_at, id`)
}

// AddToken adds a token.
func (tx *Tx) AddToken(t Token) error {
	return tx.exec(`INSERT INTO tokens (id, agent, hash, created_at, revoked_at) VALUES ($1, $2, $3, $4, '')`, t.ID, t.Agent, t.Hash, t.Created)
}

// RevokeToken ends a token; it reports false when there is none that is good.
func (tx *Tx) RevokeToken(id, at string) (bool, error) {
	return tx.changed(`UPDATE tokens SET revoked_at = $1 WHERE id = $2 AND revoked_at = ''`, at, id)
}

// TokenGood reports whether a token is there and has not been revoked.
func (tx *Tx) TokenGood(id string) (bool, error) {
	var ok bool
	err := tx.row(tx.ctx, `SELECT EXISTS (SELECT 1 FROM tokens WHERE id = $1 AND revoked_at = '')`, id).Scan(&ok)
	if err != nil {
		return false, tx.db.unavailable(err)
	}
	return ok, nil
}

// Stop is a stop of one agent, or of all under the name "*".
type Stop struct {
	Agent  string `json:"agent"`
	At     string `json:"at"`
	Reason string `json:"reason,omitempty"`
}

// Stops lists the stops in force.
func (db *DB) Stops(ctx context.Context) ([]Stop, error) {
	scan := func(rows *sql.Rows) (Stop, error) {
		var s Stop
		err := rows.Scan(&s.Agent, &s.At, &s.Reason)
		return s, err
	}
	return query(ctx, db, scan, `SELECT agent, at, reason FROM stops ORDER BY agent`)
}

// AddStop stops an agent; stopping a stopped one changes nothing.
func (tx *Tx) AddStop(s Stop) error {
	return tx.exec(`INSERT INTO stops (agent, at, reason) VALUES ($1, $2, $3) ON CONFLICT (agent) DO NOTHING`, s.Agent, s.At, s.Reason)
}

// LiftStop ends a stop; it reports false when there is none.
func (tx *Tx) LiftStop(agent string) (bool, error) {
	return tx.changed(`DELETE FROM stops WHERE agent = $1`, agent)
}
