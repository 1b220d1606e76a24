package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// checkSchema refuses a database whose tables, triggers and indexes are not
// exactly those that the migrations make: a guard that is missing or altered
// guards nothing, and a trigger that was added can undo one (O2, O6).
func checkSchema(ctx context.Context, pool *sql.DB) error {
	want, err := ours()
	if err != nil {
		return err
	}
	have, err := schema(ctx, pool)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if _, ok := have[name]; !ok {
			return altered(name, "is missing")
		}
		if have[name] != want[name] {
			return altered(name, "is not as writ made it")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[name]; !ok {
			return altered(name, "was not made by writ")
		}
	}
	return nil
}

// ours is the schema that the migrations make of nothing; it never changes while the
// program runs.
var ours = sync.OnceValues(func() (_ map[string]string, err error) {
	fresh, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fresh.Close()) }()
	fresh.SetMaxOpenConns(1) // each connection would have a memory of its own
	ctx := context.Background()
	if err := migrate(ctx, fresh); err != nil {
		return nil, err
	}
	return schema(ctx, fresh)
})

func altered(name, how string) error {
	return fmt.Errorf("the %s of the database %s: somebody changed its rules, and nothing is served from it; restore a backup from before", name, how)
}

// schema is everything the engine keeps, by what it is: its table and its text.
// What ANALYZE leaves behind changes how fast a query is, not what it answers.
func schema(ctx context.Context, db *sql.DB) (map[string]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_schema
		WHERE type <> 'table' OR name NOT IN ('sqlite_stat1', 'sqlite_stat4')`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[string]string{}
	for rows.Next() {
		var kind, name, table, text string
		if err := rows.Scan(&kind, &name, &table, &text); err != nil {
			return nil, err
		}
		key := fmt.Sprintf("%s %q", kind, name)
		if _, twice := out[key]; twice {
			return nil, altered(key, "is there twice")
		}
		out[key] = table + "\n" + text
	}
	return out, rows.Err()
}
