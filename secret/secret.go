// Package secret is credentials by reference: a configuration says where a value is
// kept, and the value is looked up where it is used and nowhere else (I7). A Value does
// not print; only Reveal hands it out, so whoever sends one somewhere is found by that
// word. The package reads values and seals them; it does not decide who may use one.
package secret

import (
	"encoding/json"
	"fmt"
	"log/slog"
)

// Shown is what stands where a value would.
const Shown = "[secret]"

// MaxBytes bounds one value.
const MaxBytes = 64 << 10

// MinBytes is the least there is in a secret of the store, of a connection and of an MCP server:
// what is shorter is found in every text, and could not be kept out of answers.
const MinBytes = 8

// Value is a secret. The zero Value holds none. It lies in a function, so that a struct
// which has one in an unexported field, where fmt calls no method, prints an address;
// of a pointer fmt prints what it points at, for some verbs.
type Value struct{ held func() string }

// New makes a value of a text.
func New(text string) Value { return Value{func() string { return text }} }

// Reveal hands the value out. What it returns goes to where the secret is used, never
// into a message, a log or a record.
func (v Value) Reveal() string {
	if v.held == nil {
		return ""
	}
	return v.held()
}

// Empty reports whether there is nothing in it.
func (v Value) Empty() bool { return v.Reveal() == "" }

// Length is about how long a value is: enough to see that it is not cut off or another
// one altogether, not enough to help a guess.
func (v Value) Length() string {
	switch n := len(v.Reveal()); {
	case n == 0:
		return "empty"
	case n < 8:
		return "under 8 bytes"
	case n < 32:
		return "8 to 31 bytes"
	case n < 256:
		return "32 to 255 bytes"
	}
	return "256 bytes or more"
}

func (Value) String() string               { return Shown }
func (Value) GoString() string             { return Shown }
func (Value) Format(f fmt.State, _ rune)   { fmt.Fprint(f, Shown) }
func (Value) MarshalText() ([]byte, error) { return []byte(Shown), nil }
func (Value) MarshalJSON() ([]byte, error) { return json.Marshal(Shown) }
func (Value) LogValue() slog.Value         { return slog.StringValue(Shown) }
