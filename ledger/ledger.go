// Package ledger is the record of everything: append-only, one hash chain a
// writer, heads signed with Ed25519 and copied to a witness outside the database.
//
// It is also the only way to change the store: each change and the entry that
// says so commit together, and many callers' changes share one commit, so that
// durability does not cost a flush of the disk for each of them. Arguments and
// results appear as digests and sizes; their values never do (I7).
package ledger

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// Entry is one thing to write down.
type Entry struct {
	Kind   string
	Call   string
	Agent  string
	Person string // who did it, where a person did
	Data   []wire.Field
	Also   []Entry // what else the same change did, each an entry of its own

	data string // Data as it is written, once encoded
}

// Encode writes Data out. Callers do it before they queue up, so that it is not done
// one after the other.
func (e *Entry) Encode() error {
	b, err := wire.AppendObject(make([]byte, 0, 768), e.Data...)
	e.data = string(b)
	return err
}

// Options are what a ledger needs besides its store.
type Options struct {
	Key     ed25519.PrivateKey
	Witness string           // file that heads are copied to
	Now     func() time.Time // nil: time.Now
}

// Ledger is an open ledger. It is safe for concurrent use.
type Ledger struct {
	db    *store.DB
	key   ed25519.PrivateKey
	now   func() time.Time
	chain string

	group   group
	callers sync.WaitGroup    // those inside Write
	grown   chan struct{}     // told when there is something to sign
	ask     chan chan<- error // asks the signer to sign now
	quit    chan struct{}     // ends the signer
	signer  sync.WaitGroup
	closing sync.WaitGroup // Close, from ending the signer to the last head
	kept    int64          // seq of the last head in the store; this and the next two are the signer's alone
	unseen  []store.Head   // heads in the store that the witness has not got yet
	witness witness
	watch   watch // whoever follows the ledger

	clock  sync.Mutex
	latest time.Time     // the latest that the clock showed
	ahead  time.Duration // of the machine's clock

	mu     sync.Mutex
	closed bool        // no more changes are taken
	seq    int64       // of the last durable entry
	last   writ.Digest // its hash
	signed int64       // seq of the last signed head
	broken error       // why nothing may be written now
}

// signEvery is how long a head waits for more entries before it is signed.
const signEvery = 100 * time.Millisecond

// TimeFormat is RFC 3339 in UTC with a fixed width, so that times compare as text.
const TimeFormat = "2006-01-02T15:04:05.000000000Z"

// Open takes up the chain where it ended. It refuses a store that is behind its
// witness, or not the one it saw: somebody has cut, rolled back or replaced it.
func Open(ctx context.Context, db *store.DB, o Options) (*Ledger, error) {
	if len(o.Key) != ed25519.PrivateKeySize {
		return nil, errors.New("open the ledger: there is no signing key")
	}
	l := &Ledger{
		db: db, key: o.Key, now: o.Now, witness: witness{path: o.Witness},
		grown: make(chan struct{}, 1), ask: make(chan chan<- error), quit: make(chan struct{}),
	}
	l.group.commit = l.commit
	if l.now == nil {
		l.now = time.Now
	}
	var err error
	if l.chain, l.seq, l.last, err = db.Chain(ctx); err != nil {
		return nil, err
	}
	if end, err := db.EntriesBefore(ctx, 0, 1); err != nil {
		return nil, err
	} else if len(end) > 0 {
		l.latest, _ = time.Parse(TimeFormat, end[0].At) // of an entry that is not ours there is no time
	}
	notes, err := l.resume(ctx)
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	l.signer.Go(l.sign)
	l.poke()
	for _, e := range notes {
		if err := l.Append(ctx, e); err != nil {
			return nil, fmt.Errorf("open the ledger: %w", errors.Join(err, l.Close()))
		}
	}
	return l, nil
}

// Time is the ledger's clock. It never goes back, not over a restart either: what
// expired once stays so, whatever somebody does to the machine's clock.
func (l *Ledger) Time() time.Time {
	l.clock.Lock()
	defer l.clock.Unlock()
	now := l.now().Add(l.ahead)
	if now.Before(l.latest) { // somebody set the clock back: time goes on from where it was
		l.ahead += l.latest.Sub(now)
		now = l.latest
	}
	l.latest = now
	return now
}

// Now is that time as it is written.
func (l *Ledger) Now() string { return l.Time().UTC().Format(TimeFormat) }

// Write commits one change of the store and the entry that it returns, together.
// An error from make, other than one of the store itself, must have changed
// nothing: then only this change is dropped. Write returns once the outcome is
// durable.
func (l *Ledger) Write(ctx context.Context, make func(*store.Tx) (Entry, error)) error {
	return l.write(ctx, &change{make: make})
}

// Append writes an entry that changes nothing else.
func (l *Ledger) Append(ctx context.Context, e Entry) error {
	if err := e.Encode(); err != nil {
		return err
	}
	return l.write(ctx, &change{plain: true, make: func(*store.Tx) (Entry, error) { return e, nil }})
}

func (l *Ledger) write(ctx context.Context, c *change) error {
	if err := ctx.Err(); err != nil {
		return writ.Fail(writ.StoreUnavailable, "the caller gave up before it was recorded", err)
	}
	if err := l.enter(); err != nil {
		return err
	}
	defer l.callers.Done()
	return l.group.do(c)
}

// enter lets a caller in, unless nothing may be written now.
func (l *Ledger) enter() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken != nil {
		return l.broken
	}
	if l.closed {
		return writ.Fail(writ.StoreUnavailable, "the ledger is closed, so nothing runs", nil)
	}
	l.callers.Add(1)
	return nil
}

// commit runs the changes in one transaction. A change that refuses is dropped
// alone; a store that fails drops them all.
func (l *Ledger) commit(batch []*change) {
	seq, last := l.seq, l.last
	err := l.transact(len(batch) == 1 && batch[0].plain, func(tx *store.Tx) error {
		for _, c := range batch {
			e, err := c.run(tx)
			if writ.KindOf(err) == writ.StoreUnavailable || errors.Is(err, errPanic) {
				return err
			}
			if err != nil || e.Kind == "" { // refused, or a change that says nothing of itself
				c.err = err
				continue
			}
			for _, e := range append([]Entry{e}, e.Also...) {
				row, err := l.seal(e, seq+1, last)
				if err != nil {
					// The change was made already, and must not be kept without its entry.
					return writ.Fail(writ.Internal, "an entry could not be written down, so nothing of its commit was kept", err)
				}
				if err := tx.Append(row); err != nil {
					return err
				}
				seq, last = row.Seq, row.Hash
			}
		}
		return nil
	})
	if errors.Is(err, store.ErrRefused) && len(batch) > 1 {
		for _, c := range batch { // each by itself, so that nobody pays for another's mistake
			c.err = nil
			l.commit([]*change{c})
		}
		return
	}
	if err == nil {
		l.mu.Lock()
		l.seq, l.last = seq, last
		l.mu.Unlock()
		l.poke()
		l.watch.wake()
	}
	if err != nil {
		for _, c := range batch {
			c.err = err
		}
	}
}

func (l *Ledger) transact(single bool, f func(*store.Tx) error) error {
	begin := l.db.Begin
	if single {
		begin = l.db.Single
	}
	tx, err := begin(context.Background())
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// seal fixes an entry's place in the chain. The body holds everything, the hash
// before it included, and the hash is that of the body.
func (l *Ledger) seal(e Entry, seq int64, prev writ.Digest) (store.Entry, error) {
	at := l.Now()
	e.Kind, e.Call, e.Agent = valid(e.Kind), valid(e.Call), valid(e.Agent)
	if e.data == "" {
		if err := e.Encode(); err != nil {
			return store.Entry{}, err
		}
	}
	body, err := wire.AppendObject(make([]byte, 0, 512+len(e.data)),
		wire.Str("agent", e.Agent), wire.Str("at", at), wire.Str("call", e.Call), wire.Str("chain", l.chain),
		wire.Raw("data", e.data), wire.Str("kind", e.Kind), wire.Str("person", e.Person),
		wire.Str("prev", prev.String()), wire.Int("seq", seq))
	if err != nil {
		return store.Entry{}, err
	}
	text := string(body)
	return store.Entry{Chain: l.chain, Seq: seq, Kind: e.Kind, Call: e.Call, Agent: e.Agent, At: at, Body: text, Hash: wire.Digest(text)}, nil
}

// valid is s as the body spells it, so that columns and body agree.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

func (l *Ledger) poke() {
	select {
	case l.grown <- struct{}{}:
	default:
	}
}

// Close lets the changes under way finish, signs the last head and ends the
// writer. The store stays open. Closing again waits for the first.
func (l *Ledger) Close() error {
	l.mu.Lock()
	already := l.closed
	l.closed = true
	if !already {
		l.closing.Add(1)
	}
	l.mu.Unlock()
	if already {
		l.closing.Wait()
		return nil
	}
	defer l.closing.Done()
	close(l.quit)
	l.signer.Wait()
	l.callers.Wait()
	return l.signHead()
}
