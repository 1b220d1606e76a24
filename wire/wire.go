// Package wire turns bytes from outside into the one form of a call that is
// decided, approved, recorded and run: strict JSON, then RFC 8785 canonical form.
//
// Strict means that no two readers can disagree about the value. Duplicate keys,
// invalid UTF-8, lone surrogates, trailing data and every other departure from
// the grammar are refused, and so is a number that canonical form would print as
// another number: an approval of 9007199254740992 must not run 9007199254740993
// (I4). Bytes are parsed here once; what comes out is a string nobody can change.
//
// Every error but Plain's is a [writ.Error] of kind Invalid or TooLarge. Its message starts
// with "JSON: ", says at which byte of the input (counted from zero) and never
// repeats a value of it, because a value may be a secret (I7); keys are repeated,
// quoted and cut.
//
// The package does not look at schemas, at what a path or host in a string
// means, or at keys that differ only in case: a schema refuses those as unknown.
// All functions may be called concurrently.
package wire

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"unsafe"

	"github.com/gowebpki/jcs"

	"github.com/writ-run/writ"
)

// The bounds hold for every input of this package, and MaxBytes for every
// canonical form too, so that what was accepted once is accepted again.
const (
	MaxDepth = 64       // arrays and objects inside one another
	MaxBytes = 16 << 20 // of one input or one canonical form

	// MaxValues bounds what the canonicaliser builds in memory, some two hundred
	// bytes a value: without it 16 MiB of "0," cost 1.5 GB and ten seconds.
	MaxValues = 1 << 18
)

// Canonical returns the canonical form of raw, which must hold exactly one JSON
// value. It keeps no reference to raw.
func Canonical(raw []byte) (string, error) {
	s := scannerOf(raw)
	if err := s.scan(nil); err != nil {
		return "", err
	}
	return s.form()
}

// CanonicalObject is Canonical for arguments: the value must be an object.
func CanonicalObject(raw []byte) (string, error) {
	s := scannerOf(raw)
	if err := s.scan(nil); err != nil {
		return "", err
	}
	if err := s.wantObject(); err != nil {
		return "", err
	}
	return s.form()
}

// Marshal returns the canonical form of a Go value, encoded by encoding/json
// without its HTML escapes. Digests of definitions and approvals are taken over
// it, so what encoding/json would blur is refused: an integer that is not a
// 64-bit float, negative zero, a map with two keys of one text, and a string
// that is not UTF-8 (two files named "\xfe" and "\xff" would both print as
// U+FFFD, and an approval for one would match the other). A json.RawMessage
// inside v must not spell U+FFFD as an escape; canonical bytes never do.
func Marshal(v any) (string, error) {
	b, err := Plain(v)
	if err != nil {
		return "", writ.Fail(writ.Invalid, "JSON: the value cannot be written as JSON; use types that can", err)
	}
	s := scannerOf(b)
	if err := s.scan(nil); err != nil {
		return "", err
	}
	if s.replaced {
		return "", writ.Fail(writ.Invalid, "JSON: a string of the value is not valid UTF-8; make it valid first", nil)
	}
	return s.form()
}

// Plain returns a Go value as JSON on one line, encoded by encoding/json without its
// HTML escapes: people read it, and a json.RawMessage inside v keeps the bytes that a
// digest was taken of, but for space between tokens. It is not canonical and blurs what
// encoding/json blurs, so no digest is taken over it. The error is encoding/json's: of
// a value of ours that is no JSON, never of what a caller sent.
func Plain(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Digest is the SHA-256 sum of canonical bytes.
func Digest(canonical string) writ.Digest {
	// A conversion would copy the whole text for a function that only reads it.
	return sha256.Sum256(unsafe.Slice(unsafe.StringData(canonical), len(canonical)))
}

// form is the canonical form of what was scanned. Input that is its own
// canonical form, as our own clients and our own store send it, skips the
// canonicaliser, which takes some nine times as long as the scan and allocates
// for every value.
func (s *scanner) form() (string, error) {
	if s.canonical {
		return string(s.raw), nil
	}
	out, err := jcs.Transform(s.raw)
	if err != nil {
		return "", writ.Fail(writ.Invalid, "JSON: the value has no canonical form; simplify it", err)
	}
	if len(out) > MaxBytes { // 1e20 grows to 21 digits
		return "", tooManyBytes("canonical form", len(out))
	}
	return string(out), nil
}

func tooManyBytes(what string, n int) *writ.Error {
	return writ.Fail(writ.TooLarge, fmt.Sprintf("JSON: the %s has %d bytes and may have %d; send less", what, n, MaxBytes), nil)
}

// Check holds raw to the rules of Canonical without making anything of it: for what
// is then read member by member, with keys that may be unknown.
func Check(raw []byte) error {
	s := scannerOf(raw)
	return s.scan(nil)
}
