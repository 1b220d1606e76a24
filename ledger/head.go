package ledger

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// head is the body of a signed head.
type head struct {
	At    string      `json:"at"`
	Chain string      `json:"chain"`
	Hash  writ.Digest `json:"hash"`
	Key   string      `json:"key"`
	Seq   int64       `json:"seq"`
}

// Signed is a head as the witness and an export carry it.
type Signed struct {
	Head      json.RawMessage `json:"head"`
	Signature string          `json:"signature"` // hexadecimal
}

// check verifies the signature under key and returns the head.
func (s Signed) check(key ed25519.PublicKey) (head, error) {
	var h head
	sig, err := hex.DecodeString(s.Signature)
	if err != nil || !ed25519.Verify(key, s.Head, sig) {
		return h, errors.New("the signature is not by this ledger's key")
	}
	if err := json.Unmarshal(s.Head, &h); err != nil {
		return h, fmt.Errorf("not a head: %w", err)
	}
	if h.Key != hex.EncodeToString(key) {
		return h, errors.New("the head names another key")
	}
	return h, nil
}

// sign keeps the head signed, off the path of calls: a little after a commit,
// for all commits since the last one, or at once when somebody asks. A head that
// cannot be kept or witnessed stops everything until it can.
func (l *Ledger) sign() {
	for {
		var asked chan<- error
		select {
		case <-l.grown:
			select {
			case <-time.After(signEvery):
			case asked = <-l.ask:
			case <-l.quit:
				return
			}
		case asked = <-l.ask:
		case <-l.quit:
			return
		}
		err := l.signHead()
		if asked != nil {
			asked <- err
		}
		if err == nil {
			continue
		}
		l.mu.Lock()
		l.broken = writ.Fail(writ.StoreUnavailable, "the ledger's head cannot be witnessed, so nothing runs: "+reason(err), err)
		l.mu.Unlock()
		select {
		case <-time.After(time.Second):
			l.poke()
		case <-l.quit:
			return
		}
	}
}

// signNow has everything that is durable now signed before it returns. On a
// ledger that is closed, Close has done it.
func (l *Ledger) signNow(ctx context.Context) error {
	done := make(chan error, 1)
	select {
	case l.ask <- done:
		return <-done
	case <-l.quit:
		l.closing.Wait()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reason is what may be said to anybody of why a head could not be kept: no paths.
func reason(err error) string {
	var no syscall.Errno
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full; free some space"
	case errors.As(err, &no):
		return no.Error()
	}
	_, msg := writ.Public(err)
	return msg
}

// signHead signs the last durable entry, keeps the head beside the ledger and
// copies it to the witness. The witness comes last, so that it is never ahead of
// a store that crashed.
func (l *Ledger) signHead() error {
	l.mu.Lock()
	seq, hash, signed := l.seq, l.last, l.signed
	l.mu.Unlock()
	if seq == signed {
		return nil
	}
	if l.kept < seq {
		h, err := l.head(seq, hash)
		if err != nil {
			return err
		}
		if err := l.group.do(&change{make: func(tx *store.Tx) (Entry, error) { return Entry{}, tx.SetHead(h) }}); err != nil {
			return err
		}
		l.kept, l.unseen = seq, append(l.unseen, h)
	}
	cut, err := l.witness.add(l.unseen...)
	if err != nil {
		return err
	}
	l.unseen = nil
	l.mu.Lock()
	l.signed, l.broken = seq, nil
	l.mu.Unlock()
	if !cut {
		return nil
	}
	if err := l.group.do(&change{make: func(*store.Tx) (Entry, error) { return witnessCut, nil }}); err != nil {
		return err
	}
	return l.signHead()
}

func (l *Ledger) head(seq int64, hash writ.Digest) (store.Head, error) {
	body, err := wire.AppendObject(nil, wire.Str("at", l.Now()), wire.Str("chain", l.chain), wire.Str("hash", hash.String()),
		wire.Str("key", hex.EncodeToString(l.Key())), wire.Int("seq", seq))
	return store.Head{Chain: l.chain, Seq: seq, Body: string(body), Signature: ed25519.Sign(l.key, body)}, err
}

// witnessCut says that the witness no longer held what had been written to it.
var witnessCut = Entry{Kind: "ledger.witness_cut"}

// Key is the public key that heads are signed with.
func (l *Ledger) Key() ed25519.PublicKey { return l.key.Public().(ed25519.PublicKey) }

// resume checks the end of the chain against what was signed. It returns what
// has to be written down about how the chain was found.
func (l *Ledger) resume(ctx context.Context) ([]Entry, error) {
	heads, err := l.db.Heads(ctx)
	if err != nil {
		return nil, err
	}
	var notes []Entry
	var signed head
	if len(heads) > 0 {
		last := heads[len(heads)-1]
		if signed, err = signedOf(last).check(l.Key()); err != nil {
			return nil, fmt.Errorf("head %d: %w", last.Seq, err)
		}
		if err := l.matches(ctx, signed); err != nil {
			return nil, err
		}
	}
	seen, ok, err := lastWitnessed(l.witness.path, l.Key())
	if err != nil {
		return nil, err
	}
	if ok {
		if err := l.matches(ctx, seen); err != nil {
			return nil, fmt.Errorf("the store does not hold what its witness %s saw: %w; if you restored a backup on purpose, move the witness away", l.witness.path, err)
		}
	}
	if err := l.witness.ready(); err != nil {
		return nil, err
	}
	// A crash can come between keeping a head and witnessing it; more than one that
	// is missing, or all of them, is rare enough to be said.
	var missing []store.Head
	for i, h := range heads {
		if h.Seq <= seen.Seq || !ok && i < len(heads)-1 {
			continue
		}
		if _, err := signedOf(h).check(l.Key()); err != nil {
			return nil, fmt.Errorf("head %d: %w", h.Seq, err)
		}
		missing = append(missing, h)
	}
	if len(missing) > 0 {
		if _, err := l.witness.add(missing...); err != nil {
			return nil, err
		}
	}
	if len(missing) > 1 || len(missing) == 1 && !ok {
		notes = append(notes, witnessCut)
	}
	l.signed, l.kept = signed.Seq, signed.Seq
	if l.signed < l.seq {
		// Only a crash leaves entries unsigned, for moments. They are signed now like
		// any other, so let it be seen which ones had no signature to hold them.
		if err := l.follows(ctx, signed); err != nil {
			return nil, err
		}
		notes = append(notes, Entry{Kind: "ledger.resumed", Data: []wire.Field{wire.Int("unsigned_from", l.signed+1), wire.Int("unsigned_through", l.seq)}})
	}
	return notes, nil
}

// follows checks that the entries after the last head are links of its chain.
func (l *Ledger) follows(ctx context.Context, last head) error {
	r, prev := &Report{Chain: l.chain}, last.Hash
	for seq := last.Seq; seq < l.seq && r.OK(); {
		page, err := l.db.After(ctx, seq, 1000)
		if err != nil {
			return err
		}
		for _, e := range page {
			seq++
			entry(r, e, seq, prev)
			prev = e.Hash
		}
		if len(page) == 0 {
			r.problem("entry %d is gone", seq+1)
		}
	}
	if !r.OK() {
		return fmt.Errorf("after the last signed head, %s; restore a backup", r.Problems[0])
	}
	return nil
}

// matches checks that the store has the entry a head speaks of.
func (l *Ledger) matches(ctx context.Context, h head) error {
	if h.Chain != l.chain {
		return fmt.Errorf("the signed head %d is of another ledger", h.Seq)
	}
	got, err := l.db.After(ctx, h.Seq-1, 1)
	if err != nil {
		return err
	}
	if len(got) == 0 || got[0].Seq != h.Seq {
		return fmt.Errorf("entry %d, which was signed, is gone: the ledger was cut or rolled back", h.Seq)
	}
	if got[0].Hash != h.Hash || wire.Digest(got[0].Body) != h.Hash {
		return fmt.Errorf("entry %d is not the one that was signed", h.Seq)
	}
	return nil
}

func signedOf(h store.Head) Signed {
	return Signed{Head: json.RawMessage(h.Body), Signature: hex.EncodeToString(h.Signature)}
}

// witness is the file outside the database that heads are copied to. The signer
// alone uses it.
type witness struct {
	path string
	size int64 // what it held when it was last written
}

// longestLine bounds a line of a witness; ours have some 400 bytes.
const longestLine = 4096

// ready makes sure that heads can be written, before anything relies on it.
func (w *witness) ready() error {
	f, size, err := w.open()
	if err != nil {
		return err
	}
	w.size = size
	return f.Close()
}

// open opens the file at the end of its last whole line. What a crash or a full
// disk cut short is removed: left there, it would make the next line unreadable.
func (w *witness) open() (*os.File, int64, error) {
	f, err := os.OpenFile(w.path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, 0, fmt.Errorf("open the witness: %w", err)
	}
	whole, err := wholeLines(f)
	if err != nil {
		return nil, 0, errors.Join(fmt.Errorf("open the witness: %w", err), f.Close())
	}
	return f, whole, nil
}

// add writes heads at the end, durably, all or none. It reports whether what was
// written earlier is gone.
func (w *witness) add(heads ...store.Head) (cut bool, err error) {
	var lines []byte
	for _, h := range heads {
		line, err := json.Marshal(signedOf(h))
		if err != nil {
			return false, err
		}
		lines = append(append(lines, line...), '\n')
	}
	f, whole, err := w.open()
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(lines); err != nil {
		return false, errors.Join(err, f.Truncate(whole))
	}
	if err := f.Sync(); err != nil {
		return false, err
	}
	cut = whole < w.size
	w.size = whole + int64(len(lines))
	return cut, nil
}

// wholeLines cuts f after its last whole line, and returns its size.
func wholeLines(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	size := info.Size()
	tail := make([]byte, min(size, longestLine))
	if _, err := f.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return 0, err
	}
	half := len(tail) - 1 - bytes.LastIndexByte(tail, '\n')
	if half == longestLine {
		return 0, errors.New("the witness holds something else than heads; move it away")
	}
	if half == 0 {
		return size, nil
	}
	return size - int64(half), f.Truncate(size - int64(half))
}

// lastWitnessed is the newest head in a witness file; ok is false when there is none.
func lastWitnessed(path string, key ed25519.PublicKey) (last head, ok bool, err error) {
	err = eachWitnessed(path, key, func(h head) { last, ok = h, true })
	return last, ok, err
}

// eachWitnessed reads a witness file. A last line without its end is a write that
// a crash cut short and is passed over; anything else that is not a signed head
// is an error.
func eachWitnessed(path string, key ed25519.PublicKey, visit func(head)) error {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var s Signed
		if err := json.Unmarshal(bytes.TrimSpace(line), &s); err != nil {
			return fmt.Errorf("%s:%d: not a signed head: %w", path, n, err)
		}
		h, err := s.check(key)
		if err != nil {
			return fmt.Errorf("%s:%d: %w", path, n, err)
		}
		visit(h)
	}
}
