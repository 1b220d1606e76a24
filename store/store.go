// Package store is the schema's queries, written once in SQL that every engine
// takes. An engine (store/sqlite) opens a database, migrates it and hands it
// over as a DB. Rules that must hold even against a bug in this program are
// triggers and constraints in the schema, and storetest tries them on each engine.
//
// All writing goes through one connection, inside transactions that package
// ledger opens: no state changes without an entry in the ledger beside it.
package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"

	"github.com/writ-run/writ"
)

// ErrLocked says that another process has the store.
var ErrLocked = errors.New("another writ process has the store open")

// DB is an open store.
type DB struct {
	pool    *sql.DB
	writer  *sql.Conn
	writing sync.Mutex // who has the writer
	begin   *sql.Stmt  // these two run for every change, so they are prepared
	commit  *sql.Stmt
	writes  map[string]statement // what the writer ran before, by its text; the writer's alone
	reads   sync.Map             // the same of the pool, from string to statement
	placed  bool
	refused func(error) bool
	explain func(error) error
	release func() error
}

// Options are what an engine knows that the queries do not.
type Options struct {
	Placed  bool              // parameters are ? instead of $1, which is faster there
	Refused func(error) bool  // whether a guard of the schema refused a statement, which then changed nothing
	Explain func(error) error // turns an engine's error into one that says what to do
	Release func() error      // gives up the lock on the store
}

// New takes over a migrated database. DB.Close closes it.
func New(ctx context.Context, pool *sql.DB, o Options) (*DB, error) {
	conn, err := pool.Conn(ctx)
	if err != nil {
		return nil, err
	}
	db := &DB{pool: pool, writer: conn, refused: o.Refused, explain: o.Explain, release: o.Release, placed: o.Placed, writes: map[string]statement{}}
	for text, stmt := range map[string]**sql.Stmt{"BEGIN IMMEDIATE": &db.begin, "COMMIT": &db.commit} {
		if *stmt, err = conn.PrepareContext(ctx, text); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
	}
	return db, nil
}

// Close ends the store; nobody may be using it any more.
func (db *DB) Close() error {
	var errs []error
	for _, stmt := range db.writes {
		errs = append(errs, stmt.Close())
	}
	db.reads.Range(func(_, stmt any) bool {
		errs = append(errs, stmt.(statement).Close())
		return true
	})
	return errors.Join(errors.Join(errs...), db.begin.Close(), db.commit.Close(), db.writer.Close(), db.pool.Close(), db.release())
}

// Tx is one transaction on the writing connection.
type Tx struct {
	db     *DB
	ctx    context.Context
	single bool // one statement, which commits by itself
}

// Begin starts a transaction that holds the write lock from the start. Only the
// ledger's writer calls it, one at a time.
func (db *DB) Begin(ctx context.Context) (*Tx, error) {
	db.writing.Lock()
	if _, err := db.begin.ExecContext(ctx); err != nil {
		db.writing.Unlock()
		return nil, db.unavailable(err)
	}
	return &Tx{db: db, ctx: ctx}, nil
}

// Single is a transaction for exactly one statement. It saves the two statements
// around it, which is what one caller alone waits for. For the same caller as Begin.
func (db *DB) Single(ctx context.Context) (*Tx, error) {
	db.writing.Lock()
	return &Tx{db: db, ctx: ctx, single: true}, nil
}

// Commit makes the transaction durable before it returns.
func (tx *Tx) Commit() error {
	if tx.single {
		tx.db.writing.Unlock()
		return nil
	}
	if _, err := tx.db.commit.ExecContext(tx.ctx); err != nil {
		return tx.db.unavailable(errors.Join(err, tx.Rollback()))
	}
	tx.db.writing.Unlock()
	return nil
}

// Rollback undoes the transaction.
func (tx *Tx) Rollback() error {
	defer tx.db.writing.Unlock()
	if tx.single {
		return nil
	}
	_, err := tx.db.writer.ExecContext(context.WithoutCancel(tx.ctx), "ROLLBACK")
	return err
}

// ErrRefused says that a guard of the schema refused a change: not the store is at
// fault, but whoever asked.
var ErrRefused = errors.New("a guard of the database refused it")

// unavailable is the error of a store that cannot be written or read now.
func (db *DB) unavailable(err error) error {
	if db.refused(err) {
		return writ.Fail(writ.StoreUnavailable, "the store does not take this change; the daemon's log has the cause", errors.Join(ErrRefused, err))
	}
	why := db.explain(err)
	if why == err { // the engine's own words are for the log (I15)
		why = errors.New("the database refused it; the daemon's log has the cause")
	}
	return writ.Fail(writ.StoreUnavailable, fmt.Sprintf("the store is unavailable, so nothing runs: %v", why), err)
}

// changed runs a statement that must change exactly one row; it reports false,
// having changed nothing, when the row was not as the statement demands.
func (tx *Tx) changed(query string, args ...any) (bool, error) {
	return tx.one(tx.run(query, args...))
}

// one reports whether a statement changed exactly one row.
func (tx *Tx) one(res sql.Result, err error) (bool, error) {
	if err != nil {
		return false, tx.db.unavailable(err)
	}
	n, err := res.RowsAffected()
	if err != nil {
		return false, tx.db.unavailable(err) // what it changed is unknown: nothing of this transaction may stay
	}
	return n == 1, nil
}

// taken runs a statement that a guard of the schema may refuse; it reports false,
// having changed nothing, when one does.
func (tx *Tx) taken(query string, args ...any) (bool, error) {
	_, err := tx.run(query, args...)
	if err != nil && tx.db.refused(err) {
		return false, nil
	}
	if err != nil {
		return false, tx.db.unavailable(err)
	}
	return true, nil
}

func (tx *Tx) exec(query string, args ...any) error {
	if _, err := tx.run(query, args...); err != nil {
		return tx.db.unavailable(err)
	}
	return nil
}

func (tx *Tx) run(query string, args ...any) (sql.Result, error) {
	stmt, err := tx.prepared(query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(tx.ctx, stmt.args(args)...)
}

// row asks for one row, inside the transaction.
func (tx *Tx) row(ctx context.Context, query string, args ...any) scanner {
	stmt, err := tx.prepared(query)
	if err != nil {
		return failed{err}
	}
	return stmt.QueryRowContext(ctx, stmt.args(args)...)
}

// prepared is a statement as the writer keeps it. Making one costs more than running
// it, with all the triggers that go with it; texts are few and never made up.
func (tx *Tx) prepared(query string) (statement, error) {
	if stmt, ok := tx.db.writes[query]; ok {
		return stmt, nil
	}
	stmt, err := tx.db.prepare(context.WithoutCancel(tx.ctx), tx.db.writer, query)
	if err == nil {
		tx.db.writes[query] = stmt
	}
	return stmt, err
}

// prepared is a statement as the pool keeps it.
func (db *DB) prepared(ctx context.Context, query string) (statement, error) {
	if stmt, ok := db.reads.Load(query); ok {
		return stmt.(statement), nil
	}
	stmt, err := db.prepare(ctx, db.pool, query)
	if err != nil {
		return stmt, err
	}
	if first, there := db.reads.LoadOrStore(query, stmt); there {
		return first.(statement), stmt.Close()
	}
	return stmt, nil
}

// row asks for one row of the store as it is.
func (db *DB) row(ctx context.Context, query string, args ...any) scanner {
	stmt, err := db.prepared(ctx, query)
	if err != nil {
		return failed{err}
	}
	return stmt.QueryRowContext(ctx, stmt.args(args)...)
}

// scanner is a row, or why there is none.
type scanner interface{ Scan(...any) error }

type failed struct{ err error }

func (f failed) Scan(...any) error { return f.err }

// query runs a read on the pool and scans each row.
func query[T any](ctx context.Context, db *DB, scan func(*sql.Rows) (T, error), text string, args ...any) ([]T, error) {
	stmt, err := db.prepared(ctx, text)
	if err != nil {
		return nil, db.unavailable(err)
	}
	rows, err := stmt.QueryContext(ctx, stmt.args(args)...)
	if err != nil {
		return nil, db.unavailable(err)
	}
	return collect(db, rows, scan)
}

// collect scans each row and closes them.
func collect[T any](db *DB, rows *sql.Rows, scan func(*sql.Rows) (T, error)) ([]T, error) {
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	if err := rows.Err(); err != nil {
		return nil, db.unavailable(err)
	}
	return out, nil
}

// look is query for the few rows of one call. While nobody writes it asks the writer's
// connection, which still has in memory what it wrote; another one has to read the
// pages anew after every commit.
func look[T any](ctx context.Context, db *DB, scan func(*sql.Rows) (T, error), text string, args ...any) ([]T, error) {
	if !db.writing.TryLock() {
		return query(ctx, db, scan, text, args...)
	}
	defer db.writing.Unlock()
	ctx = context.WithoutCancel(ctx) // it takes microseconds, and the writer is not to be interrupted
	stmt, err := (&Tx{db: db, ctx: ctx}).prepared(text)
	if err != nil {
		return nil, db.unavailable(err)
	}
	rows, err := stmt.QueryContext(ctx, stmt.args(args)...)
	if err != nil {
		return nil, db.unavailable(err)
	}
	return collect(db, rows, scan)
}
