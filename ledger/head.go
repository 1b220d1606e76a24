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
// for all commits since the last one. A head that cannot be kept or witnessed
// stops everything until it can.
func (l *Ledger) sign() {
	for l.wait(l.grown, 0) && l.wait(nil, signEvery) {
		err := l.signHead(func(c *change) { l.queue <- c })
		if err == nil {
			continue
		}
		l.mu.Lock()
		l.broken = writ.Fail(writ.StoreUnavailable, "the ledger's head cannot be witnessed, so nothing runs", err)
		l.mu.Unlock()
		if l.wait(nil, time.Second) {
			l.poke()
		}
	}
}

// wait returns true when woken or when d is over, false when the ledger closes.
func (l *Ledger) wait(wake <-chan struct{}, d time.Duration) bool {
	var timer <-chan time.Time
	if wake == nil {
		timer = time.After(d)
	}
	select {
	case <-wake:
	case <-timer:
	case <-l.quit:
		return false
	}
	return true
}

// signHead signs the last durable entry, keeps the head beside the ledger and
// copies it to the witness. The witness comes last, so that it is never ahead of
// a store that crashed.
func (l *Ledger) signHead(submit func(*change)) error {
	l.mu.Lock()
	seq, hash, signed := l.seq, l.last, l.signed
	l.mu.Unlock()
	if seq == signed {
		return nil
	}
	body, err := wire.AppendObject(nil, wire.Str("at", l.Now()), wire.Str("chain", l.chain), wire.Str("hash", hash.String()),
		wire.Str("key", hex.EncodeToString(l.Key())), wire.Int("seq", seq))
	if err != nil {
		return err
	}
	h := store.Head{Chain: l.chain, Seq: seq, Body: string(body), Signature: ed25519.Sign(l.key, body)}
	if l.kept < seq { // a head that was kept but not witnessed is not kept twice
		c := &change{done: newDone(), make: func(tx *store.Tx) (Entry, error) { return Entry{}, tx.SetHead(h) }}
		submit(c)
		if err := <-c.done; err != nil {
			return err
		}
		l.kept = seq
	}
	if err := l.witness.add(h); err != nil {
		return err
	}
	l.mu.Lock()
	l.signed, l.broken = seq, nil
	l.mu.Unlock()
	return nil
}

// Key is the public key that heads are signed with.
func (l *Ledger) Key() ed25519.PublicKey { return l.key.Public().(ed25519.PublicKey) }

// resume checks the end of the chain against what was signed, and returns how
// far the signatures go.
func (l *Ledger) resume(ctx context.Context, witnessPath string) (int64, error) {
	heads, err := l.db.Heads(ctx)
	if err != nil {
		return 0, err
	}
	var signed int64
	if len(heads) > 0 {
		last := heads[len(heads)-1]
		h, err := signedOf(last).check(l.Key())
		if err != nil {
			return 0, fmt.Errorf("head %d: %w", last.Seq, err)
		}
		signed = h.Seq
		if err := l.matches(ctx, h); err != nil {
			return 0, err
		}
	}
	h, ok, err := lastWitnessed(witnessPath, l.Key())
	if err != nil {
		return 0, err
	}
	if ok && h.Chain == l.chain {
		if err := l.matches(ctx, h); err != nil {
			return 0, fmt.Errorf("the store does not hold what its witness %s saw: %w; if you restored a backup on purpose, move the witness away", witnessPath, err)
		}
	}
	return signed, nil
}

// matches checks that the store has the entry a head speaks of.
func (l *Ledger) matches(ctx context.Context, h head) error {
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

// witness is the file outside the database that heads are copied to.
type witness struct{ file *os.File }

func openWitness(path string) (*witness, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the witness: %w", err)
	}
	return &witness{f}, nil
}

func (w *witness) add(h store.Head) error {
	line, err := json.Marshal(signedOf(h))
	if err != nil {
		return err
	}
	_, err = w.file.Write(append(line, '\n'))
	return err
}

func (w *witness) close() error { return w.file.Close() }

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
