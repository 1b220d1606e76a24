package store

import (
	"context"
	"database/sql"
)

// Registered is a tool as it counts: of which class, and whether it is dangerous. The
// two Unwaived say what it would be without a waiver, the highest that a definition
// of this name ever was; the schema never lets those go down.
type Registered struct {
	Key               string
	Definition        string
	Class             string // none, read_only or write
	Dangerous         bool
	Unwaived          string
	UnwaivedDangerous bool
	RequiresApproval  bool // always of class write, and of what is dangerous
	Registered        string
	Updated           string
}

// Registry lists every tool that was ever registered.
func (db *DB) Registry(ctx context.Context) ([]Registered, error) {
	scan := func(rows *sql.Rows) (Registered, error) {
		var r Registered
		err := rows.Scan(&r.Key, &r.Definition, &r.Class, &r.Dangerous, &r.Unwaived, &r.UnwaivedDangerous, &r.RequiresApproval, &r.Registered, &r.Updated)
		return r, err
	}
	return query(ctx, db, scan, `SELECT key, definition, egress_class, dangerous, unwaived_class, unwaived_dangerous, requires_approval, registered_at, updated_at
		FROM tools_registry ORDER BY key`)
}

// Register adds a tool, or brings the one of that key to another definition or class.
// The time it was first registered stays.
func (tx *Tx) Register(r Registered) error {
	needs := r.RequiresApproval || r.Class == "write" || r.Dangerous
	there, err := tx.changed(`UPDATE tools_registry SET definition = $1, egress_class = $2, dangerous = $3, unwaived_class = $4, unwaived_dangerous = $5,
		requires_approval = $6, updated_at = $7 WHERE key = $8`, r.Definition, r.Class, r.Dangerous, r.Unwaived, r.UnwaivedDangerous, needs, r.Updated, r.Key)
	if err != nil || there {
		return err
	}
	return tx.exec(`INSERT INTO tools_registry (key, definition, egress_class, dangerous, unwaived_class, unwaived_dangerous, requires_approval, registered_at, updated_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`, r.Key, r.Definition, r.Class, r.Dangerous, r.Unwaived, r.UnwaivedDangerous, needs, r.Updated, r.Updated)
}

// Waiver is a person's word that one exact definition counts as less than it says, or
// than it was.
type Waiver struct {
	ID         string
	Tool       string
	Definition string
	Class      string
	Dangerous  bool
	Reason     string
	By         string
	At         string
	Ended      string // empty while it is live
}

// Waivers lists every waiver, the oldest first, ended ones too.
func (db *DB) Waivers(ctx context.Context) ([]Waiver, error) {
	scan := func(rows *sql.Rows) (Waiver, error) {
		var w Waiver
		err := rows.Scan(&w.ID, &w.Tool, &w.Definition, &w.Class, &w.Dangerous, &w.Reason, &w.By, &w.At, &w.Ended)
		return w, err
	}
	return query(ctx, db, scan, `SELECT id, tool_key, definition, egress_class, dangerous, reason, waived_by, waived_at, ended_at FROM class_waivers ORDER BY waived_at, id`)
}

// AddWaiver adds a waiver; it reports false when one of that definition is live. It
// changes nothing of the tool itself: see Register.
func (tx *Tx) AddWaiver(w Waiver) (bool, error) {
	return tx.changed(`INSERT INTO class_waivers (id, tool_key, definition, egress_class, dangerous, reason, waived_by, waived_at, ended_at)
		SELECT $1, $2, $3, $4, $5, $6, $7, $8, '' WHERE NOT EXISTS (SELECT 1 FROM class_waivers WHERE tool_key = $2 AND definition = $3 AND ended_at = '')`,
		w.ID, w.Tool, w.Definition, w.Class, w.Dangerous, w.Reason, w.By, w.At)
}

// EndWaiver ends a live waiver, and the schema raises what it lowered; it reports
// false when there is none.
func (tx *Tx) EndWaiver(id, at string) (bool, error) {
	return tx.changed(`UPDATE class_waivers SET ended_at = $1 WHERE id = $2 AND ended_at = ''`, at, id)
}
