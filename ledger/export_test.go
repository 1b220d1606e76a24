package ledger

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/wire"
)

// hostile are texts that a log has to survive: CRLF, quotes, control and bidi
// characters, line separators, invalid UTF-8, a forged entry.
var hostile = []string{
	"a\r\nb", "\"},\"hash\":\"", "\x00\x01\x1b[31m\x7f", "\u2028\u2029\u202e\ufeff", "\xff\xfe\xc0\xaf", "\xed\xa0\x80", "é<>&'\\", "{\"body\":{}}\n{\"body\":{}}", strings.Repeat("x", 70000),
}

// exported is a ledger of hostile entries, and its export.
func exportedLedger(t *testing.T) (*Ledger, []byte) {
	t.Helper()
	dir := t.TempDir()
	l, end := reopen(t, dir)
	for i, h := range hostile {
		if err := l.Append(context.Background(), Entry{Kind: "test", Call: fmt.Sprint("call", i) + h, Agent: h, Person: h, Data: []wire.Field{wire.Str("reason", h), wire.Str("tool", h)}}); err != nil {
			t.Fatal(err)
		}
		if i == 3 {
			end()
			l, end = reopen(t, dir)
		}
	}
	if r, err := l.Verify(t.Context(), witnessOf(dir), ""); err != nil || !r.OK() || int(r.Entries) != len(hostile) {
		t.Fatalf("hostile texts do not verify: %+v, %v", r, err)
	}
	var b bytes.Buffer
	if err := l.Export(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return l, b.Bytes()
}

func verifyExport(export []byte) (*Report, error) {
	src, err := ReadExport(bytes.NewReader(export))
	if err != nil {
		return nil, err
	}
	return Verify(src, testKey().Public().(ed25519.PublicKey))
}

func TestExport(t *testing.T) {
	l, export := exportedLedger(t)
	r, err := verifyExport(export)
	if err != nil || !r.OK() || int(r.Entries) != len(hostile) || r.Unsigned != 0 || r.Heads < 2 {
		t.Errorf("an export does not verify: %+v, %v", r, err)
	}
	if lines := bytes.Count(export, []byte("\n")); lines != len(hostile)+r.Heads {
		t.Errorf("%d lines for %d entries and %d heads", lines, len(hostile), r.Heads)
	}
	if i := bytes.IndexFunc(bytes.ReplaceAll(export, []byte("\n"), nil), func(c rune) bool { return c < ' ' }); i >= 0 {
		t.Errorf("a control character got out: %q", export[i])
	}
	for _, pair := range [][2]string{{"call0a\r\nb", "a\r\nb"}, {"call4\ufffd\ufffd\ufffd\ufffd", "\ufffd\ufffd\ufffd\ufffd"}} {
		got, err := l.db.OfCall(t.Context(), pair[0])
		if err != nil || len(got) != 1 || got[0].Agent != pair[1] {
			t.Errorf("looked up by %q: %v, %v", pair[0], got, err)
		}
	}
}

// tampered are edits of an export. Each must be found here and by the script.
func tampered(export []byte) map[string][]byte {
	lines := strings.SplitAfter(strings.TrimSuffix(string(export), "\n"), "\n")
	lines[len(lines)-1] += "\n"
	n := len(hostile)
	join := func(l ...[]string) []byte { return []byte(strings.Join(slices.Concat(l...), "")) }
	swap := slices.Clone(lines)
	swap[2], swap[3] = swap[3], swap[2]
	edit := slices.Clone(lines)
	edit[2] = strings.Replace(edit[2], `"kind":"test"`, `"kind":"tést"`, 1)
	rehashed := slices.Clone(edit)
	body, _, _ := strings.Cut(strings.TrimPrefix(edit[2], `{"body":`), `,"hash"`)
	rehashed[2] = `{"body":` + body + `,"hash":"` + wire.Digest(body).String() + "\"}\n"
	spaced := slices.Clone(lines)
	spaced[2] = strings.Replace(spaced[2], `"kind":`, `"kind": `, 1)
	signature := slices.Clone(lines)
	last := len(lines) - 1
	signature[last] = strings.Replace(signature[last], `"signature":"`, `"signature":"00`, 1)
	head := slices.Clone(lines)
	head[n] = strings.Replace(head[n], `"at":"2`, `"at":"3`, 1)
	mixed := slices.Clone(lines)
	mixed[2] = strings.TrimSuffix(mixed[2], "}\n") + `,` + strings.TrimPrefix(lines[last], "{")
	return map[string][]byte{
		"edited": join(edit), "edited and rehashed": join(rehashed), "reordered": join(swap), "spaced": join(spaced),
		"middle deleted": join(lines[:3], lines[4:]), "first deleted": join(lines[1:]), "tail deleted": join(lines[:n-1], lines[n:]),
		"heads deleted": join(lines[:n]), "last head deleted": join(lines[:last]), "twice the last entry": join(lines[:n], lines[n-1:]),
		"signature edited": join(signature), "head edited": join(head), "both in a line": join(mixed),
		"garbage": join(lines, []string{"garbage\n"}), "an empty line": join(lines[:2], []string{"\n"}, lines[2:]), "cut in a line": export[:len(export)-40],
	}
}

func TestTamperedExport(t *testing.T) {
	_, export := exportedLedger(t)
	for name, text := range tampered(export) {
		if r, err := verifyExport(text); err == nil && r.OK() {
			t.Errorf("%s: verifies", name)
		}
	}
	// Two heads of one entry, both with good signatures, in either order.
	src, err := ReadExport(bytes.NewReader(export))
	if err != nil {
		t.Fatal(err)
	}
	forked := src.Heads[0]
	forked.Body = strings.Replace(forked.Body, `"hash":"`, `"hash":"00`, 1)
	forked.Body = forked.Body[:strings.Index(forked.Body, `","key"`)-2] + forked.Body[strings.Index(forked.Body, `","key"`):]
	forked.Signature = ed25519.Sign(testKey(), []byte(forked.Body))
	heads := src.Heads
	for _, src.Heads = range [][]store.Head{append([]store.Head{forked}, heads...), append(slices.Clone(heads), forked)} {
		r, err := Verify(src, testKey().Public().(ed25519.PublicKey))
		if err != nil {
			t.Fatal(err)
		}
		found(t, "verifying", "the ledger was forked", strings.Join(r.Problems, "\n"))
	}
	src.Heads = heads
	if r, err := Verify(src, otherKey().Public().(ed25519.PublicKey)); err != nil || r.OK() {
		t.Errorf("verifies under another key: %v", err)
	}
	if _, err := Verify(src, ed25519.PublicKey("short")); err == nil {
		t.Error("half a key verifies")
	}
}

// TestIndependentVerifier runs a verifier that shares no code with this one.
func TestIndependentVerifier(t *testing.T) {
	python := "/usr/bin/python3" // what is first in PATH may be a wrapper that takes a second to start
	if _, err := os.Stat(python); err != nil {
		python = "python3"
	}
	for _, program := range []string{python, "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			need.Lacking(t, "%s is missing", program)
		}
	}
	_, export := exportedLedger(t)
	key := hex.EncodeToString(testKey().Public().(ed25519.PublicKey))
	check := func(text []byte, args ...string) (string, error) {
		path := filepath.Join(t.TempDir(), "ledger.jsonl")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), python, append([]string{"testdata/verify.py", path}, args...)...).CombinedOutput()
		return string(out), err
	}
	r, err := verifyExport(export)
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("entries %d\nlast %s\nheads %d through %d\nsignatures checked under %s\n", r.Entries, r.Last, r.Heads, r.Signed, key)
	if out, err := check(export, key, r.Last); err != nil || out != want {
		t.Errorf("%v:\n%s\nwant\n%s", err, out, want)
	}
	for name, text := range tampered(export) {
		if out, err := check(text, key); err == nil || !strings.Contains(out, "PROBLEM") {
			t.Errorf("%s: the script finds nothing:\n%s", name, out)
		}
	}
	other := hex.EncodeToString(otherKey().Public().(ed25519.PublicKey))
	if out, err := check(export, other); err == nil || !strings.Contains(out, "another key") {
		t.Errorf("another key:\n%s", out)
	}
	if out, err := check(export, key, strings.Repeat("0", 63)+"1"); err == nil || !strings.Contains(out, "no entry has the hash") {
		t.Errorf("a hash that is not there:\n%s", out)
	}
}

// FuzzReadExport: whatever is read is verified without a panic, and nothing but
// the ledger itself verifies with entries in it.
func FuzzReadExport(f *testing.F) {
	f.Add([]byte(`{"body":{"seq":9223372036854775807},"hash":"` + strings.Repeat("0", 64) + `"}`))
	f.Add([]byte(`{"head":{"seq":-1,"hash":"` + strings.Repeat("0", 64) + `"},"signature":"00"}`))
	f.Add([]byte(`{"head":null,"signature":""}`))
	f.Add([]byte("{}\n{}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := verifyExport(text)
		if err == nil && r.OK() && r.Entries > 0 {
			t.Errorf("%d entries without a signature verify", r.Entries)
		}
	})
}
