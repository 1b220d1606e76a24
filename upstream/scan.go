package upstream

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// deepest is how far arrays and objects of a message may be nested.
const deepest = 64

// A scanner reads one JSON object once: it holds it to the grammar, shows the
// object's own members to whoever asked, and notes whether two readers could
// disagree about what is inside. It is not wire's, which refuses numbers that a
// float does not keep: an answer that holds one is passed on as it is.
type scanner struct {
	raw   []byte
	pos   int
	depth int
	keys  [][]byte // of the objects now open, unescaped
	loose error    // the first thing that readers could disagree about
	each  func(key, value []byte)
}

// members shows every member of the object raw to each, as parts of raw, keys
// unescaped. What is malformed is an error; what is well formed and still open to
// two readings (duplicate keys, invalid UTF-8, lone surrogates) comes back as loose,
// unless it is the object's own keys that repeat.
func members(raw []byte, each func(key, value []byte)) (loose, err error) {
	var room [16][]byte
	s := scanner{raw: raw, each: each, keys: room[:0]}
	s.space()
	if s.peek() != '{' {
		return nil, s.fault("a JSON object is expected")
	}
	if err := s.value(); err != nil {
		return nil, err
	}
	if s.space(); s.pos < len(raw) {
		return nil, s.fault("data after the value")
	}
	return s.loose, nil
}

// field is one member of an object that was checked before; nil when it is not there.
func field(raw []byte, name string) json.RawMessage {
	var found []byte
	if _, err := members(raw, func(key, value []byte) {
		if string(key) == name {
			found = value
		}
	}); err != nil {
		return nil
	}
	return found
}

// text is a JSON string's value, or "" of anything else.
func text(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	if inner := raw[1 : len(raw)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// elements are the elements of an array that was checked before.
func elements(raw []byte) ([]json.RawMessage, error) {
	var out []json.RawMessage
	if len(raw) == 0 || raw[0] != '[' {
		return nil, errors.New("an array is expected")
	}
	err := json.Unmarshal(raw, &out)
	return out, err
}

func (s *scanner) fault(what string) error {
	return fmt.Errorf("JSON: %s at byte %d", what, s.pos)
}

func (s *scanner) note(what string) {
	if s.loose == nil {
		s.loose = s.fault(what)
	}
}
