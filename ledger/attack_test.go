package ledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/store/sqlite"
	"github.com/writ-run/writ/store/storetest"
	"github.com/writ-run/writ/wire"
)

func witnessOf(dir string) string { return filepath.Join(dir, "witness.jsonl") }

// built is a directory with a closed ledger of twelve entries, heads at 4, 8 and
// 12, and its witness.
func built(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for range 3 {
		grow(t, dir, 4)
	}
	return dir
}

// grow opens the ledger in dir, appends n entries and closes it.
func grow(t *testing.T, dir string, n int) {
	t.Helper()
	l, end := reopen(t, dir)
	for i := range n {
		if err := l.Append(context.Background(), Entry{Kind: "test", Call: fmt.Sprint("call", i), Agent: "coder", Data: []wire.Field{wire.Int("n", int64(i))}}); err != nil {
			t.Fatal(err)
		}
	}
	// One head each time: Close signs it, or the signer had to be very early.
	end()
}

// behind gives f the database as somebody has it who holds the file: guards taken
// away, and put back afterwards so that nothing shows in the schema.
func behind(t *testing.T, dir string, f func(*sql.DB)) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, sqlite.Name))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	triggers := map[string]string{}
	rows, err := db.Query(`SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		triggers[name] = text
	}
	rows.Close()
	for name := range triggers {
		run(t, db, `DROP TRIGGER `+name)
	}
	f(db)
	for _, text := range triggers {
		run(t, db, text)
	}
}

func run(t *testing.T, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.Exec(text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func statement(text string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { behind(t, dir, func(db *sql.DB) { run(t, db, text) }) }
}

// forge edits an entry and makes the chain whole again from there on, which needs no key.
func forge(t *testing.T, db *sql.DB, from int64) {
	t.Helper()
	var prev writ.Digest
	type row struct {
		seq  int64
		body string
	}
	var all []row
	rows, err := db.Query(`SELECT seq, body FROM ledger ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var r row
		if err := rows.Scan(&r.seq, &r.body); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	rows.Close()
	for _, r := range all {
		if r.seq == from {
			r.body = strings.Replace(r.body, `"n":`, `"n":66`, 1)
		}
		if r.seq >= from {
			at := strings.Index(r.body, `"prev":"`) + len(`"prev":"`)
			r.body = r.body[:at] + prev.String() + r.body[at+64:]
		}
		prev = wire.Digest(r.body)
		run(t, db, `UPDATE ledger SET body = $1, hash = $2 WHERE seq = $3`, r.body, prev[:], r.seq)
	}
}

// resign signs the heads anew for what the ledger holds now, under another key.
func resign(t *testing.T, db *sql.DB, key ed25519.PrivateKey) {
	t.Helper()
	for _, seq := range []int64{4, 8, 12} {
		var hash []byte
		var body string
		if err := db.QueryRow(`SELECT l.hash, h.body FROM ledger l JOIN ledger_heads h USING (seq) WHERE seq = $1`, seq).Scan(&hash, &body); err != nil {
			t.Fatal(err)
		}
		at := strings.Index(body, `"hash":"`) + len(`"hash":"`)
		body = body[:at] + hex.EncodeToString(hash) + body[at+64:]
		at = strings.Index(body, `"key":"`) + len(`"key":"`)
		body = body[:at] + hex.EncodeToString(key.Public().(ed25519.PublicKey)) + body[at+64:]
		run(t, db, `UPDATE ledger_heads SET body = $1, signature = $2 WHERE seq = $3`, body, ed25519.Sign(key, []byte(body)), seq)
	}
}

func otherKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, 32)) }

func editWitness(f func(lines []string) []string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		b, err := os.ReadFile(witnessOf(dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(witnessOf(dir), []byte(strings.Join(f(strings.SplitAfter(string(b), "\n")), "")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func without(t *testing.T, dir, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(dir, name)); err != nil {
		t.Fatal(err)
	}
}

// TestTampering is group L: what a holder of the files without the key does.
// opens and verifies are what is said of it; "" means that it passes there.
func TestTampering(t *testing.T) {
	base := built(t)
	for _, row := range []struct {
		name            string
		do              func(*testing.T, string)
		opens, verifies string
	}{
		{"control: nothing", func(*testing.T, string) {}, "", ""},
		{"truncate the tail", statement(`DELETE FROM ledger WHERE seq > 10`), "entry 12, which was signed, is gone", "entry 12 was signed and is gone"},
		{"truncate the tail and its head", statement(`DELETE FROM ledger WHERE seq > 8; DELETE FROM ledger_heads WHERE seq > 8`), "does not hold what its witness", "entry 12 was signed and is gone"},
		{"delete everything", statement(`DELETE FROM ledger; DELETE FROM ledger_heads`), "does not hold what its witness", "entry 12 was signed and is gone"},
		{"delete the middle", statement(`DELETE FROM ledger WHERE seq = 6`), "", "entry 7 stands where 6 belongs"},
		{"delete the middle and close the gap", statement(`DELETE FROM ledger WHERE seq = 6; UPDATE ledger SET seq = seq - 1 WHERE seq > 6`), "entry 12, which was signed, is gone", "entry 6 was edited: its columns differ"},
		{"reorder", statement(`UPDATE ledger SET seq = 1000 WHERE seq = 5; UPDATE ledger SET seq = 5 WHERE seq = 6; UPDATE ledger SET seq = 6 WHERE seq = 1000`), "", "entry 5 was edited: its columns differ"},
		{"edit", statement(`UPDATE ledger SET body = replace(body, 'coder', 'other') WHERE seq = 6`), "", "entry 6 was edited: its hash"},
		{"edit the signed last entry", statement(`UPDATE ledger SET body = replace(body, 'coder', 'other') WHERE seq = 12`), "entry 12 is not the one that was signed", "entry 12 was edited: its hash"},
		{"edit a column", statement(`UPDATE ledger SET agent = 'other' WHERE seq = 6`), "", "entry 6 was edited: its columns"},
		{"edit and rehash that one", func(t *testing.T, dir string) {
			behind(t, dir, func(db *sql.DB) {
				body := `{}`
				hash := wire.Digest(body)
				run(t, db, `UPDATE ledger SET body = $1, hash = $2 WHERE seq = 6`, body, hash[:])
			})
		}, "", "entry 7 does not follow"},
		{"edit and rehash all", func(t *testing.T, dir string) { behind(t, dir, func(db *sql.DB) { forge(t, db, 6) }) },
			"entry 12 is not the one that was signed", "entry 8 is not the one that was signed"},
		{"edit, rehash all, drop the heads", func(t *testing.T, dir string) {
			behind(t, dir, func(db *sql.DB) { forge(t, db, 6); run(t, db, `DELETE FROM ledger_heads`) })
		}, "does not hold what its witness", "entry 8 is not the one that was signed"},
		{"edit, rehash all, drop the heads and the witness", func(t *testing.T, dir string) {
			behind(t, dir, func(db *sql.DB) { forge(t, db, 6); run(t, db, `DELETE FROM ledger_heads`) })
			without(t, dir, "witness.jsonl")
		}, "", "entry 12 stands under no signed head"},
		{"edit, rehash all, sign with another key", func(t *testing.T, dir string) {
			behind(t, dir, func(db *sql.DB) { forge(t, db, 6); resign(t, db, otherKey()) })
		}, "head 12: the signature is not by this ledger's key", "head 4: the signature is not by this ledger's key"},
		{"name another key in a head", statement(`UPDATE ledger_heads SET body = replace(body, '"key":"3b', '"key":"00')`), "head 12: the signature", "head 4: the signature"},
		{"rename the chain", statement(`UPDATE ledger_chain SET chain = 'other'`), "is of another ledger", "12 entries about a call"},
		{"an entry of another chain", statement(`UPDATE ledger SET chain = 'other' WHERE seq = 6`), "", "entry 6 is of another chain"},
		{"a forged entry after the end", statement(`INSERT INTO ledger SELECT chain, 13, kind, call, agent, at, body, hash FROM ledger WHERE seq = 12`), "after the last signed head, entry 13", "entry 13 was edited"},
		{"an entry far below", statement(`PRAGMA ignore_check_constraints = 1; INSERT INTO ledger SELECT chain, -9223372036854775807, kind, call, agent, at, body, hash FROM ledger WHERE seq = 12`), "", "stands where 1 belongs"},
		{"an entry far above", statement(`INSERT INTO ledger SELECT chain, 9223372036854775807, kind, call, agent, at, body, hash FROM ledger WHERE seq = 12`), "after the last signed head", "stands where 13 belongs"},
		{"bodies that are no bodies", statement(`UPDATE ledger SET body = char(0) || '[[[' , hash = zeroblob(32)`), "is not the one that was signed", "entry 1 was edited"},
		{"heads that are no heads", statement(`UPDATE ledger_heads SET body = 'null', signature = zeroblob(64)`), "head 12", "head 4"},
		{"an entry hidden from its call", statement(`DELETE FROM ledger_calls WHERE seq = 6`), "", "1 entries about a call were taken out"},
		{"a head removed", statement(`DELETE FROM ledger_heads WHERE seq = 8`), "", ""}, // the witness still speaks for it

		{"the witness without its last line", editWitness(func(l []string) []string { return l[:2] }), "", ""}, // as after a crash; it is added again
		{"the witness without two lines", editWitness(func(l []string) []string { return l[:1] }), "", "the witness does not hold head 8"},
		{"the witness without its middle", editWitness(func(l []string) []string { return slices.Delete(l, 1, 2) }), "", "the witness does not hold head 8"},
		{"the witness edited", editWitness(func(l []string) []string { return []string{l[0], strings.Replace(l[1], `"seq":8`, `"seq":7`, 1), l[2]} }), "witness.jsonl:2: the signature", "witness.jsonl:2: the signature"},
		{"the witness deleted", func(t *testing.T, dir string) { without(t, dir, "witness.jsonl") }, "", "holds nothing"},
		{"the witness emptied", editWitness(func([]string) []string { return nil }), "", "holds nothing"},
		{"garbage in the witness", editWitness(func(l []string) []string { return []string{l[0], "garbage\n", l[1], l[2]} }), "witness.jsonl:2: not a signed head", "witness.jsonl:2: not a signed head"},
		{"an empty line in the witness", editWitness(func(l []string) []string { return []string{l[0], "\n", l[1], l[2]} }), "witness.jsonl:2: not a signed head", "witness.jsonl:2: not a signed head"},
		{"half a last line", editWitness(func(l []string) []string { return []string{l[0], l[1], l[2][:len(l[2])/2]} }), "", ""},
		{"zeros at the end, as a power cut leaves them", editWitness(func(l []string) []string { return []string{l[0], l[1], l[2], string(make([]byte, 100))} }), "", ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := copyDir(t, base)
			row.do(t, dir)
			r := verifyFiles(t, dir)
			found(t, "verifying", row.verifies, strings.Join(r.Problems, "\n"))
			err := tryOpen(t, dir)
			said := ""
			if err != nil {
				said = err.Error()
			}
			found(t, "opening", row.opens, said)
			if row.opens == "" && row.verifies == "" {
				// It goes on, and comes up again after that.
				for range 2 {
					grow(t, dir, 2)
				}
				if r := verifyFiles(t, dir); !r.OK() {
					t.Errorf("afterwards: %q", r.Problems)
				}
			}
		})
	}
}

func found(t *testing.T, where, want, got string) {
	t.Helper()
	if want == "" && got != "" || !strings.Contains(got, want) {
		t.Errorf("%s says %q, want %q", where, got, want)
	}
}

// verifyFiles verifies a store and its witness as they lie there, all of it
// signed, without opening the ledger.
func verifyFiles(t *testing.T, dir string) *Report {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	heads, err := db.Heads(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unlisted, err := db.Unlisted(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r, err := Verify(Source{db.Entries(t.Context()), heads, unlisted, witnessOf(dir), "", Everything}, testKey().Public().(ed25519.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tryOpen opens the ledger in dir and closes it again.
func tryOpen(t *testing.T, dir string) error {
	t.Helper()
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l, err := Open(t.Context(), db, Options{Key: testKey(), Witness: witnessOf(dir)})
	if err != nil {
		return err
	}
	return l.Close()
}

func copyDir(t *testing.T, from string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// restore puts an earlier copy of the database back, and leaves the witness.
func restore(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(from, sqlite.Name))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(to, sqlite.Name), b, 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRollback(t *testing.T) {
	dir := built(t)
	earlier := copyDir(t, dir)
	grow(t, dir, 3)
	if err := tryOpen(t, dir); err != nil {
		t.Fatalf("control: %v", err)
	}
	restore(t, earlier, dir)
	if err := tryOpen(t, dir); err == nil || !strings.Contains(err.Error(), "cut or rolled back") || !strings.Contains(err.Error(), "move the witness away") {
		t.Errorf("an earlier copy opens: %v", err)
	}
	found(t, "verifying", "entry 15 was signed and is gone", strings.Join(verifyFiles(t, dir).Problems, "\n"))

	// A new database where there was one is a rollback to nothing.
	without(t, dir, sqlite.Name)
	if err := tryOpen(t, dir); err == nil || !strings.Contains(err.Error(), "is of another ledger") {
		t.Errorf("a new store opens beside an old witness: %v", err)
	}

	// On purpose, with the witness moved away, it goes on; the old witness, kept
	// elsewhere, shows it whenever it is asked.
	restore(t, earlier, dir)
	moved := filepath.Join(dir, "moved.jsonl")
	if err := os.Rename(witnessOf(dir), moved); err != nil {
		t.Fatal(err)
	}
	grow(t, dir, 4)
	if r := verifyFiles(t, dir); !r.OK() || r.From != 12 {
		t.Errorf("after a restore on purpose: %+v", r)
	}
	l, _ := reopen(t, dir)
	if r, err := l.Verify(t.Context(), moved, ""); err != nil || r.OK() {
		t.Errorf("the old witness does not show it: %+v, %v", r, err)
	}
	if !kinds(t, l)["ledger.witness_cut"] {
		t.Error("the ledger does not say that its witness was new")
	}
}

func kinds(t *testing.T, l *Ledger) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for e, err := range l.db.Entries(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		out[e.Kind] = true
	}
	return out
}

// TestFork: the store is copied with its key, and both go on.
func TestFork(t *testing.T) {
	dir := built(t)
	other := copyDir(t, dir)
	grow(t, dir, 2)
	grow(t, other, 2)
	for _, d := range []string{dir, other} {
		if r := verifyFiles(t, d); !r.OK() {
			t.Fatalf("control: %q", r.Problems)
		}
	}
	a, err := os.ReadFile(witnessOf(dir))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(witnessOf(other))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(witnessOf(dir), append(a, b...), 0o600); err != nil {
		t.Fatal(err)
	}
	found(t, "verifying", "two signed heads disagree about entry 14: the ledger was forked", strings.Join(verifyFiles(t, dir).Problems, "\n"))
	if err := tryOpen(t, dir); err == nil {
		t.Error("a fork opens")
	}
}

// TestWitnessLostWhileRunning: it is made again, and the ledger says so.
func TestWitnessLostWhileRunning(t *testing.T) {
	dir := built(t)
	l, end := reopen(t, dir)
	without(t, dir, "witness.jsonl")
	if err := l.Append(t.Context(), Entry{Kind: "test"}); err != nil {
		t.Fatal(err)
	}
	if err := l.signNow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if !kinds(t, l)["ledger.witness_cut"] {
		t.Error("the ledger does not say so")
	}
	end()
	if err := tryOpen(t, dir); err != nil {
		t.Error(err)
	}
}

// TestWitnessGone: while heads cannot be witnessed nothing is taken, and the
// error says why without saying where.
func TestWitnessGone(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(t.TempDir(), "place")
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := Open(t.Context(), db, Options{Key: testKey(), Witness: filepath.Join(place, "missing", "witness.jsonl")}); err == nil {
		t.Error("a ledger opens without a witness")
	}
	l, err := Open(t.Context(), db, Options{Key: testKey(), Witness: filepath.Join(place, "witness.jsonl")})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := os.RemoveAll(place); err != nil {
		t.Fatal(err)
	}
	until := time.Now().Add(10 * time.Second)
	for err = nil; err == nil && time.Now().Before(until); {
		err = l.Append(t.Context(), Entry{Kind: "test"})
	}
	kind, msg := writ.Public(err)
	if kind != writ.StoreUnavailable || !strings.Contains(msg, "no such file or directory") || strings.Contains(msg, place) {
		t.Errorf("without its witness the ledger says: %v", err)
	}
	if err := os.Mkdir(place, 0o700); err != nil {
		t.Fatal(err)
	}
	for err != nil && time.Now().Before(until) {
		err = l.Append(t.Context(), Entry{Kind: "test"})
	}
	if err != nil {
		t.Errorf("with its witness back: %v", err)
	}
	if r, err := l.Verify(t.Context(), filepath.Join(place, "witness.jsonl"), ""); err != nil || !r.OK() {
		t.Error(r, err)
	}
}

// TestHeadThatWasNoted: verify --head finds what neither store nor witness can.
func TestHeadThatWasNoted(t *testing.T) {
	dir := built(t)
	earlier := copyDir(t, dir)
	grow(t, dir, 2)
	noted := verifyFiles(t, dir).Last
	l, end := reopen(t, dir)
	if r, err := l.Verify(t.Context(), witnessOf(dir), noted); err != nil || !r.OK() {
		t.Errorf("control: %+v, %v", r, err)
	}
	end()
	l, _ = reopen(t, earlier) // store and witness rolled back together
	r, err := l.Verify(t.Context(), witnessOf(earlier), noted)
	if err != nil {
		t.Fatal(err)
	}
	found(t, "verifying", "no entry has the hash "+noted, strings.Join(r.Problems, "\n"))
}

// TestChangeWithoutEntry: a change whose entry cannot be written is not made.
func TestChangeWithoutEntry(t *testing.T) {
	l, _ := reopen(t, t.TempDir())
	for _, bad := range [][]wire.Field{
		{wire.Str("twice", ""), wire.Str("twice", "")}, {wire.Int("large", 1<<62)}, {{}},
	} {
		err := l.Write(t.Context(), func(tx *store.Tx) (Entry, error) {
			return Entry{Kind: "stop.set", Data: bad}, tx.AddStop(store.Stop{Agent: "coder", At: l.Now()})
		})
		if err == nil {
			t.Error("an entry that cannot be written was written")
		}
	}
	if stops, err := l.db.Stops(t.Context()); err != nil || len(stops) != 0 {
		t.Errorf("a change was kept without its entry: %v, %v", stops, err)
	}
	err := l.Write(t.Context(), func(tx *store.Tx) (Entry, error) {
		return Entry{Kind: "stop.set"}, tx.AddStop(store.Stop{Agent: "coder", At: l.Now()})
	})
	if stops, err2 := l.db.Stops(t.Context()); errors.Join(err, err2) != nil || len(stops) != 1 {
		t.Errorf("control: %v, %v, %v", stops, err, err2)
	}
}

// TestWitnessDiskFull: a line that the disk took only half of is not left there,
// where it would make the witness unreadable for ever.
func TestWitnessDiskFull(t *testing.T) {
	disk := storetest.SmallDisk(t, 256<<10)
	path := filepath.Join(disk, "witness.jsonl")
	db, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	l, err := Open(t.Context(), db, Options{Key: testKey(), Witness: path})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	filler := filepath.Join(disk, "filler")
	storetest.Fill(t, filler, 4096)
	for n := 0; err == nil; n++ {
		if n > 1000 {
			t.Fatal("a full disk takes heads")
		}
		if err = l.Append(t.Context(), Entry{Kind: "test"}); err == nil {
			err = l.signNow(t.Context())
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	// Callers who were let in just before make the next head, which has to wait too;
	// the witness gets both.
	err = l.group.do(&change{make: func(*store.Tx) (Entry, error) { return Entry{Kind: "test"}, nil }})
	if again := l.signNow(t.Context()); err != nil || !errors.Is(again, syscall.ENOSPC) {
		t.Fatal(err, again)
	}
	b, err := os.ReadFile(path)
	if err != nil || !bytes.HasSuffix(b, []byte("}\n")) {
		t.Errorf("half a line is left: %q, %v", b[max(0, len(b)-50):], err)
	}
	until := time.Now().Add(10 * time.Second)
	for err = nil; err == nil && time.Now().Before(until); {
		err = l.Append(t.Context(), Entry{Kind: "test"})
	}
	if _, msg := writ.Public(err); writ.KindOf(err) != writ.StoreUnavailable || !strings.Contains(msg, "the disk is full") {
		t.Errorf("without room for its witness the ledger says: %v", err)
	}
	without(t, disk, "filler")
	for err != nil && time.Now().Before(until) {
		err = l.Append(t.Context(), Entry{Kind: "test"})
	}
	if r, err := l.Verify(t.Context(), path, ""); err != nil || !r.OK() {
		t.Error(r, err)
	}
}

// TestUnsignedTail: a hash chain needs no key, so whoever holds the file can add
// to what is not signed yet, as a crash can leave it. It is taken up, and the
// ledger says which entries no signature held.
func TestUnsignedTail(t *testing.T) {
	dir := built(t)
	behind(t, dir, func(db *sql.DB) {
		var body string
		var hash []byte
		if err := db.QueryRow(`SELECT body, hash FROM ledger WHERE seq = 12`).Scan(&body, &hash); err != nil {
			t.Fatal(err)
		}
		at := strings.Index(body, `"prev":"`) + len(`"prev":"`)
		body = strings.Replace(body[:at]+hex.EncodeToString(hash)+body[at+64:], `"seq":12`, `"seq":13`, 1)
		sum := wire.Digest(body)
		run(t, db, `INSERT INTO ledger SELECT chain, 13, kind, call, agent, at, $1, $2 FROM ledger WHERE seq = 12`, body, sum[:])
	})
	l, _ := reopen(t, dir)
	got, err := l.db.After(t.Context(), 13, 10)
	if err != nil || len(got) != 1 || !strings.Contains(got[0].Body, `"data":{"unsigned_from":13,"unsigned_through":13}`) || got[0].Kind != "ledger.resumed" {
		t.Errorf("after the tail: %+v, %v", got, err)
	}
	if r, err := l.Verify(t.Context(), witnessOf(dir), ""); err != nil || !r.OK() {
		t.Error(r, err)
	}
}
