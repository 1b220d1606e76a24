package ledger

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// Report is what verifying found.
type Report struct {
	Chain    string   `json:"chain"`
	Entries  int64    `json:"entries"`
	Last     string   `json:"last_hash"`
	Heads    int      `json:"heads"`
	Signed   int64    `json:"signed_through"`
	Unsigned int64    `json:"unsigned_tail"` // entries after the newest head; a running daemon signs them within moments
	Witness  int      `json:"witnessed_heads"`
	From     int64    `json:"witnessed_from"` // the first entry that a witnessed head speaks of; a witness that was moved away starts anew
	Key      string   `json:"key"`
	Problems []string `json:"problems"`
}

// OK reports whether nothing was found.
func (r *Report) OK() bool { return len(r.Problems) == 0 }

// maxProblems bounds a report on a ledger that is wrong throughout.
const maxProblems = 100

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < maxProblems {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// Source is a ledger to verify: a store or an exported file.
type Source struct {
	Entries  iter.Seq2[store.Entry, error]
	Heads    []store.Head
	Unlisted int64  // entries about a call that are not found by it
	Witness  string // path of a witness file; empty: none is looked at
	Expect   string // the hash that some earlier head is known to have; empty: none
	Through  int64  // entries through this one must stand under a signed head
}

// Everything is the Through of a source that is signed to its end, as an export is.
const Everything = math.MaxInt64

// marks are what signed heads say of entries, and of which ledgers they are.
type marks struct {
	hash   map[int64]writ.Digest
	chains map[string]bool
}

func (m marks) add(r *Report, h head) {
	if other, ok := m.hash[h.Seq]; ok && other != h.Hash {
		r.problem("two signed heads disagree about entry %d: the ledger was forked", h.Seq)
		return
	}
	m.hash[h.Seq], m.chains[h.Chain] = h.Hash, true
}

// Verify checks every entry, link, signature and witnessed head under key.
func Verify(src Source, key ed25519.PublicKey) (*Report, error) {
	if len(key) != ed25519.PublicKeySize {
		return nil, fmt.Errorf("a public key has %d bytes, not %d", ed25519.PublicKeySize, len(key))
	}
	r := &Report{Key: hex.EncodeToString(key), Problems: []string{}}
	m := marks{map[int64]writ.Digest{}, map[string]bool{}}
	signedHeads(r, src.Heads, key, m)
	if r.Heads == 0 && len(src.Heads) > 0 {
		r.Problems = append(r.Problems[:1], fmt.Sprintf("and so with all %d heads; is it the right key?", len(src.Heads)))
		return r, nil
	}
	if src.Witness != "" {
		witnessed(r, src, key, m)
	}
	expected := src.Expect == ""
	var prev writ.Digest
	seq := int64(1)
	for e, err := range src.Entries {
		if err != nil {
			return nil, err
		}
		if r.Entries++; r.Entries == 1 {
			r.Chain = e.Chain
		}
		seq = entry(r, e, seq, prev) + 1
		if want, ok := m.hash[e.Seq]; ok {
			if want != e.Hash {
				r.problem("entry %d is not the one that was signed", e.Seq)
			}
			delete(m.hash, e.Seq)
		}
		if e.Seq > r.Signed && e.Seq <= src.Through {
			r.problem("entry %d stands under no signed head", e.Seq)
		}
		expected = expected || e.Hash.String() == src.Expect
		prev, r.Last = e.Hash, e.Hash.String()
	}
	for _, seq := range slices.Sorted(maps.Keys(m.hash)) {
		r.problem("entry %d was signed and is gone: the ledger was cut, rolled back or reordered", seq)
	}
	delete(m.chains, r.Chain)
	if len(m.chains) > 0 && r.Entries > 0 {
		r.problem("signed heads are of another ledger: this one was replaced")
	}
	if src.Unlisted != 0 {
		r.problem("%d entries about a call were taken out of, or put into, the list by which they are found", max(src.Unlisted, -src.Unlisted))
	}
	if !expected {
		r.problem("no entry has the hash %s: the ledger was rolled back or replaced", src.Expect)
	}
	r.Unsigned = max(0, seq-1-r.Signed)
	return r, nil
}

func signedHeads(r *Report, heads []store.Head, key ed25519.PublicKey, m marks) {
	for _, s := range heads {
		h, err := signedOf(s).check(key)
		if err != nil {
			r.problem("head %d: %v", s.Seq, err)
			continue
		}
		if h.Seq != s.Seq || h.Chain != s.Chain {
			r.problem("head %d says it is head %d of chain %q", s.Seq, h.Seq, h.Chain)
		}
		r.Heads++
		r.Signed = max(r.Signed, h.Seq)
		m.add(r, h)
	}
}

// witnessed checks the witness, and the store's heads against it: from the first
// one it holds it has them all, but for a newest one that is on its way.
func witnessed(r *Report, src Source, key ed25519.PublicKey, m marks) {
	seen := map[int64]bool{}
	err := eachWitnessed(src.Witness, key, func(h head) {
		if r.Witness++; r.Witness == 1 {
			r.From = h.Seq
		}
		seen[h.Seq] = true
		m.add(r, h)
	})
	if err != nil {
		r.problem("witness: %v", err)
		return
	}
	if r.Witness == 0 && r.Heads > 0 {
		r.problem("the witness %s holds nothing, though heads were signed", src.Witness)
		return
	}
	for i, h := range src.Heads {
		if i < len(src.Heads)-1 && h.Seq > r.From && !seen[h.Seq] {
			r.problem("the witness does not hold head %d: it was cut or edited", h.Seq)
		}
	}
}

// entry checks one entry against its body, its place and its hash. It returns
// the place that it has.
func entry(r *Report, e store.Entry, seq int64, prev writ.Digest) int64 {
	if e.Seq != seq {
		r.problem("entry %d stands where %d belongs: entries are missing or out of order", e.Seq, seq)
	}
	if e.Chain != r.Chain {
		r.problem("entry %d is of another chain", e.Seq)
	}
	if wire.Digest(e.Body) != e.Hash {
		r.problem("entry %d was edited: its hash is not that of its body", e.Seq)
		return e.Seq
	}
	var b struct {
		Agent, At, Call, Chain, Kind, Prev string
		Seq                                int64
	}
	if err := json.Unmarshal([]byte(e.Body), &b); err != nil {
		r.problem("entry %d has no readable body", e.Seq)
		return e.Seq
	}
	if b.Prev != prev.String() {
		r.problem("entry %d does not follow the one before it", e.Seq)
	}
	if b.Seq != e.Seq || b.Kind != e.Kind || b.Call != e.Call || b.Agent != e.Agent || b.At != e.At || b.Chain != e.Chain {
		r.problem("entry %d was edited: its columns differ from its body", e.Seq)
	}
	return e.Seq
}

// Verify checks this ledger's store and witness.
func (l *Ledger) Verify(ctx context.Context, witnessPath, expect string) (*Report, error) {
	heads, through, err := l.signedHeads(ctx)
	if err != nil {
		return nil, err
	}
	unlisted, err := l.db.Unlisted(ctx)
	if err != nil {
		return nil, err
	}
	return Verify(Source{l.db.Entries(ctx), heads, unlisted, witnessPath, expect, through}, l.Key())
}

// signedHeads has everything signed that is durable now, and returns the heads
// and the last entry that they must reach.
func (l *Ledger) signedHeads(ctx context.Context) ([]store.Head, int64, error) {
	l.mu.Lock()
	through := l.seq
	l.mu.Unlock()
	if err := l.signNow(ctx); err != nil {
		return nil, 0, fmt.Errorf("sign the head: %w", err)
	}
	heads, err := l.db.Heads(ctx)
	return heads, through, err
}

// line is one line of an export: an entry or a head.
type line struct {
	Body json.RawMessage `json:"body,omitempty"`
	Hash string          `json:"hash,omitempty"`
	*Signed
}

// Export writes the ledger as JSON Lines: entries in order, then the heads. The
// last head is of the last entry, so that an export cut short shows.
func (l *Ledger) Export(ctx context.Context, w io.Writer) error {
	heads, _, err := l.signedHeads(ctx)
	if err != nil {
		return err
	}
	var last int64
	if len(heads) > 0 {
		last = heads[len(heads)-1].Seq
	}
	buf := bufio.NewWriter(w)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	for e, err := range l.db.Entries(ctx) {
		if err != nil {
			return err
		}
		if e.Seq > last {
			break // written since
		}
		if err := enc.Encode(line{Body: json.RawMessage(e.Body), Hash: e.Hash.String()}); err != nil {
			return err
		}
	}
	for _, h := range heads {
		s := signedOf(h)
		if err := enc.Encode(line{Signed: &s}); err != nil {
			return err
		}
	}
	return buf.Flush()
}

// ReadExport reads what Export wrote, for verifying it elsewhere.
func ReadExport(r io.Reader) (Source, error) {
	var entries []store.Entry
	src := Source{Through: Everything}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 16<<20)
	for n := 1; scan.Scan(); n++ {
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			return src, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case l.Signed != nil && l.Head != nil && l.Body == nil && l.Hash == "":
			sig, err := hex.DecodeString(l.Signature)
			if err != nil {
				return src, fmt.Errorf("line %d: %w", n, err)
			}
			var h head
			if err := json.Unmarshal(l.Head, &h); err != nil {
				return src, fmt.Errorf("line %d: %w", n, err)
			}
			src.Heads = append(src.Heads, store.Head{Chain: h.Chain, Seq: h.Seq, Body: string(l.Head), Signature: sig})
		case l.Body != nil && l.Signed == nil:
			e, err := exported(l)
			if err != nil {
				return src, fmt.Errorf("line %d: %w", n, err)
			}
			entries = append(entries, e)
		default:
			return src, fmt.Errorf("line %d is neither an entry nor a head", n)
		}
	}
	src.Entries = func(yield func(store.Entry, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
	return src, scan.Err()
}

func exported(l line) (store.Entry, error) {
	e := store.Entry{Body: string(l.Body)}
	var b struct {
		Agent, At, Call, Chain, Kind string
		Seq                          int64
	}
	if err := json.Unmarshal(l.Body, &b); err != nil {
		return e, err
	}
	hash, err := writ.ParseDigest(l.Hash)
	if err != nil {
		return e, err
	}
	e.Chain, e.Seq, e.Kind, e.Call, e.Agent, e.At, e.Hash = b.Chain, b.Seq, b.Kind, b.Call, b.Agent, b.At, hash
	return e, nil
}
