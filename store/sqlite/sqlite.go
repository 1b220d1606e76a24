// Package sqlite is the embedded engine: one file, one process, WAL with
// synchronous FULL, so that what was committed survives a power cut.
//
// The guards in the schema hold against any statement over any connection, and a
// schema that is not ours to the letter is not opened. Whoever can write the file
// can still take a guard away, change rows, and put it back before anybody looks;
// that shows in the ledger's signed heads and their witness, not here.
package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pressly/goose/v3"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/writ-run/writ/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Name is the database's file name inside the state directory.
const Name = "writ.db"

// Open opens the store in dir, making it if it is not there, and takes its lock:
// two processes never share one file.
func Open(ctx context.Context, dir string) (*store.DB, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("make the store's directory: %w", err)
	}
	release, err := lock(filepath.Join(dir, Name+".lock"))
	if err != nil {
		return nil, err
	}
	db, err := open(ctx, filepath.Join(dir, Name), release)
	if err != nil {
		return nil, errors.Join(err, release())
	}
	return db, nil
}

func open(ctx context.Context, path string, release func() error) (*store.DB, error) {
	// The file holds who may do what: nobody else reads it.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	f.Close()
	q := url.Values{"_defensive": {"1"}, "_pragma": {
		"journal_mode(wal)", "synchronous(full)", "busy_timeout(2000)", "foreign_keys(1)", "trusted_schema(0)", "cell_size_check(1)",
		"recursive_triggers(1)", // REPLACE fires the triggers on DELETE
		"secure_delete(1)",      // what a request was about is overwritten when it ends
	}}
	pool, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?"+q.Encode())
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(4)
	if err := migrate(ctx, pool); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", explain(err)), pool.Close())
	}
	if err := checkSchema(ctx, pool); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", explain(err)), pool.Close())
	}
	db, err := store.New(ctx, pool, store.Options{Placed: true, Refused: refused, Explain: explain, Release: release})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", explain(err)), pool.Close())
	}
	return db, nil
}

func migrate(ctx context.Context, pool *sql.DB) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, pool, files)
	if err != nil {
		return err
	}
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return err
	}
	if have > want {
		return fmt.Errorf("the store has schema version %d, this program knows %d: use a writ that is at least as new", have, want)
	}
	if have < want {
		if _, err := p.Up(ctx); err != nil {
			return err
		}
	}
	_, err = pool.ExecContext(ctx, `INSERT INTO ledger_chain (chain) SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM ledger_chain)`, rand.Text())
	return err
}

// refused reports whether a CHECK, a unique index or a trigger refused a statement.
// SQLite undoes that statement and leaves the transaction as it was.
func refused(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_CONSTRAINT
}

// explain says what the engine's error means for whoever runs writ.
func explain(err error) error {
	var e *sqlite.Error
	if !errors.As(err, &e) {
		return err
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_FULL:
		return errors.New("the disk is full; free some space")
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return errors.New("another program holds the database locked; close it")
	case sqlite3.SQLITE_READONLY:
		return errors.New("the database cannot be written; check the file's mode and the disk")
	case sqlite3.SQLITE_IOERR:
		return fmt.Errorf("the disk failed or is full (%w)", err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return errors.New("the database file is damaged; restore a backup")
	}
	return err
}

func lockedBy(err error) error {
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return store.ErrLocked
	}
	return fmt.Errorf("lock the store: %w", err)
}
