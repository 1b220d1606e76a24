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
	Entries iter.Seq2[store.Entry, error]
	Heads   []store.Head
	Witness string // path of a witness file; empty: none is looked at
	Expect  string // the hash that some earlier head is known to have; empty: none
}

// Verify checks every entry, link, signature and witnessed head under key.
func Verify(src Source, key ed25519.PublicKey) (*Report, error) {
	r := &Report{Key: hex.EncodeToString(key), Problems: []string{}}
	marks := map[int64]writ.Digest{} // what signed heads say of entries
	signedHeads(r, src.Heads, key, marks)
	if src.Witness != "" {
		witnessed(r, src.Witness, key, marks)
	}
	expected := src.Expect == ""
	var prev writ.Digest
	for e, err := range src.Entries {
		if err != nil {
			return nil, err
		}
		r.Entries++
		entry(r, e, prev)
		if want, ok := marks[e.Seq]; ok {
			if want != e.Hash {
				r.problem("entry %d is not the one that was signed", e.Seq)
			}
			delete(marks, e.Seq)
		}
		expected = expected || e.Hash.String() == src.Expect
		prev, r.Last, r.Chain = e.Hash, e.Hash.String(), e.Chain
	}
	for seq := range marks {
		r.problem("entry %d was signed and is gone: the ledger was cut, rolled back or reordered", seq)
	}
	if !expected {
		r.problem("no entry has the hash %s: the ledger was rolled back or replaced", src.Expect)
	}
	r.Unsigned = max(0, r.Entries-r.Signed)
	return r, nil
}

func signedHeads(r *Report, heads []store.Head, key ed25519.PublicKey, marks map[int64]writ.Digest) {
	for _, s := range heads {
		h, err := signedOf(s).check(key)
		if err != nil {
			r.problem("head %d: %v", s.Seq, err)
			continue
		}
		if h.Seq != s.Seq {
			r.problem("head %d says it is head %d", s.Seq, h.Seq)
		}
		r.Heads++
		r.Signed = max(r.Signed, h.Seq)
		marks[h.Seq] = h.Hash
	}
}

func witnessed(r *Report, path string, key ed25519.PublicKey, marks map[int64]writ.Digest) {
	err := eachWitnessed(path, key, func(h head) {
		r.Witness++
		if want, ok := marks[h.Seq]; ok && want != h.Hash {
			r.problem("two signed heads disagree about entry %d: the ledger was forked", h.Seq)
		}
		marks[h.Seq] = h.Hash
	})
	if err != nil {
		r.problem("witness: %v", err)
	}
	if r.Witness == 0 && r.Heads > 0 {
		r.problem("the witness %s holds nothing, though heads were signed", path)
	}
}

// entry checks one entry against its body, its place and its hash.
func entry(r *Report, e store.Entry, prev writ.Digest) {
	if e.Seq != r.Entries {
		r.problem("entry %d stands where %d belongs: entries are missing or out of order", e.Seq, r.Entries)
		r.Entries = e.Seq
	}
	if wire.Digest(e.Body) != e.Hash {
		r.problem("entry %d was edited: its hash is not that of its body", e.Seq)
		return
	}
	var b struct {
		Agent, At, Call, Chain, Kind, Prev string
		Seq                                int64
	}
	if err := json.Unmarshal([]byte(e.Body), &b); err != nil {
		r.problem("entry %d has no readable body", e.Seq)
		return
	}
	if b.Prev != prev.String() {
		r.problem("entry %d does not follow the one before it", e.Seq)
	}
	if b.Seq != e.Seq || b.Kind != e.Kind || b.Call != e.Call || b.Agent != e.Agent || b.At != e.At || b.Chain != e.Chain {
		r.problem("entry %d was edited: its columns differ from its body", e.Seq)
	}
}

// Verify checks this ledger's store and witness.
func (l *Ledger) Verify(ctx context.Context, witnessPath, expect string) (*Report, error) {
	heads, err := l.db.Heads(ctx)
	if err != nil {
		return nil, err
	}
	return Verify(Source{l.db.Entries(ctx), heads, witnessPath, expect}, l.Key())
}

// line is one line of an export: an entry or a head.
type line struct {
	Body json.RawMessage `json:"body,omitempty"`
	Hash string          `json:"hash,omitempty"`
	*Signed
}

// Export writes the whole ledger as JSON Lines: entries in order, then the heads.
func (l *Ledger) Export(ctx context.Context, w io.Writer) error {
	heads, err := l.db.Heads(ctx)
	if err != nil {
		return err
	}
	buf := bufio.NewWriter(w)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	for e, err := range l.db.Entries(ctx) {
		if err != nil {
			return err
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
	var src Source
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 16<<20)
	for n := 1; scan.Scan(); n++ {
		var l line
		if err := json.Unmarshal(scan.Bytes(), &l); err != nil {
			return src, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case l.Signed != nil && l.Head != nil:
			sig, err := hex.DecodeString(l.Signature)
			if err != nil {
				return src, fmt.Errorf("line %d: %w", n, err)
			}
			var h head
			if err := json.Unmarshal(l.Head, &h); err != nil {
				return src, fmt.Errorf("line %d: %w", n, err)
			}
			src.Heads = append(src.Heads, store.Head{Chain: h.Chain, Seq: h.Seq, Body: string(l.Head), Signature: sig})
		case l.Body != nil:
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
