package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/ledger"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/wire"
)

// UnconfinedRun is a command that somebody runs with nothing around it. It is no
// call: no agent asked for it and the gate has no part in it, so what is left to do
// is to write it down.
type UnconfinedRun struct {
	User    string // of the operating system; nobody proved to be a person
	UID     int
	Program string
	Argv    string // digest
	Args    int
	Bytes   int
	Dir     string
}

// UnconfinedEnd is how it ended.
type UnconfinedEnd struct {
	ExitCode   int
	Signal     int
	NotStarted bool
}

// Unconfined writes such commands down: each as unconfined.started before it starts,
// and as unconfined.ended, under one id.
type Unconfined struct {
	db     *store.DB
	ledger *ledger.Ledger
	ending sync.Locker // an end is looked for and written by one at a time
}

// Unconfined is the record of this engine's ledger.
func (e *Engine) Unconfined() Unconfined { return Unconfined{e.store, e.ledger, &e.changing} }

// WithoutDaemon lends record the ledger of a configuration while no daemon has it.
// Nothing else is opened: what waits or was approved stays as it is. The error is
// store.ErrLocked while another process has the store. What record did holds only
// where there is no error: closing signs and witnesses it.
func WithoutDaemon(ctx context.Context, path string, record func(Unconfined) error) (err error) {
	cfg, err := catalog.Config(path)
	if err != nil {
		return err
	}
	db, err := sqlite.Open(ctx, cfg.StatePath)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	keys, err := loadKeys(filepath.Join(cfg.StatePath, "keys"))
	if err != nil {
		return err
	}
	l, err := ledger.Open(ctx, db, ledger.Options{Key: keys.sign, Witness: cfg.Witness})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	return record(Unconfined{db, l, &sync.Mutex{}})
}

// StartUnconfined writes a command down. Whoever runs it does so when there is an id,
// and not otherwise.
func (u Unconfined) StartUnconfined(ctx context.Context, r UnconfinedRun) (id string, err error) {
	if err := r.check(); err != nil {
		return "", err
	}
	id = newID("unconfined_")
	err = u.ledger.Append(ctx, ledger.Entry{Kind: "unconfined.started", Call: id, Data: []wire.Field{
		wire.Str("user", r.User), wire.Int("uid", int64(r.UID)), wire.Str("program", r.Program), wire.Str("directory", r.Dir),
		wire.Str("argv_sha256", r.Argv), wire.Int("args", int64(r.Args)), wire.Int("args_bytes", int64(r.Bytes)),
	}})
	if err != nil {
		return "", err
	}
	return id, nil
}

// check keeps what is recorded for ever to what it says it is.
func (r UnconfinedRun) check() error {
	wrong := func(what string) error { return writ.Fail(writ.Invalid, what, nil) }
	if d, err := writ.ParseDigest(r.Argv); err != nil || d.String() != r.Argv {
		return wrong("argv_sha256: write a digest, 64 hexadecimal digits in small letters")
	}
	for _, f := range [][2]string{{"user", r.User}, {"program", r.Program}, {"directory", r.Dir}} {
		if text := f[1]; text == "" || len(text) > 4096 || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return wrong(f[0] + ": use 1 to 4096 bytes of text")
		}
	}
	switch {
	case !filepath.IsAbs(r.Program):
		return wrong("program: name the file by its absolute path")
	case !filepath.IsAbs(r.Dir):
		return wrong("directory: name it by its absolute path")
	case r.UID < 0 || int64(r.UID) > 1<<32-2:
		return wrong("uid: use the number of a user, 0 to 4294967294")
	case r.Args < 1 || r.Bytes < r.Args || r.Bytes > 1<<30:
		return wrong("args, args_bytes: count the command and its arguments, each with the zero byte that ends it")
	}
	return nil
}

// EndUnconfined writes down how a command ended, once.
func (u Unconfined) EndUnconfined(ctx context.Context, id string, end UnconfinedEnd) error {
	outcome := "exited"
	switch {
	case end.ExitCode < 0 || end.ExitCode > 255 || end.Signal < 0 || end.Signal > 127:
		return writ.Fail(writ.Invalid, "exit_code is 0 to 255, signal 0 to 127", nil)
	case end.NotStarted:
		outcome = "not_started"
	case end.Signal != 0:
		outcome = "signalled"
	}
	u.ending.Lock()
	defer u.ending.Unlock()
	if err := u.open(ctx, id); err != nil {
		return err
	}
	return u.ledger.Append(ctx, ledger.Entry{Kind: "unconfined.ended", Call: id, Data: []wire.Field{
		wire.Str("outcome", outcome), wire.Int("exit_code", int64(end.ExitCode)), wire.Int("signal", int64(end.Signal)),
	}})
}

// open reports why there is no end to write of an id, or nil.
func (u Unconfined) open(ctx context.Context, id string) error {
	said, err := u.db.OfCall(ctx, id)
	if err != nil {
		return err
	}
	if len(said) == 0 || said[0].Kind != "unconfined.started" {
		return writ.Fail(writ.NotFound, fmt.Sprintf("no command was started unconfined as %q; 'writ ledger tail' shows ids", clip(id)), nil)
	}
	if len(said) > 1 {
		return writ.Fail(writ.Conflict, "the end of this command is recorded already; 'writ ledger show "+id+"' shows it", nil)
	}
	return nil
}
