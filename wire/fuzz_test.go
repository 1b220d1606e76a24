package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"strconv"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/writ-run/writ"
)

func seed(f *testing.F) {
	for _, row := range canonicalRows {
		if len(row.in) < 1000 {
			f.Add([]byte(row.in))
		}
	}
	f.Add([]byte(small))
}

// FuzzCanonical holds Canonical against encoding/json and jcs: it accepts what
// both read, unless it is too deep or a number would change; what it returns is
// what jcs returns, has the same value, is canonical itself and does not depend
// on the order of keys.
func FuzzCanonical(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := Canonical(raw)
		if want := acceptable(t, raw); (err == nil) != want {
			t.Fatalf("%q: acceptable %v, error %v", raw, want, err)
		}
		if err != nil {
			checkRefusal(t, raw, err)
			return
		}
		if form, err := jcs.Transform(raw); err != nil || string(form) != got {
			t.Fatalf("%q: got %q, jcs %q, %v", raw, got, form, err)
		}
		s := scannerOf([]byte(got))
		if err := s.scan(nil); err != nil || !s.canonical {
			t.Fatalf("%q: form %q is not taken for canonical: %v", raw, got, err)
		}
		before, after := tree(t, raw), tree(t, []byte(got))
		if !reflect.DeepEqual(floats(t, before), floats(t, after)) {
			t.Fatalf("%q: value changed to %q", raw, got)
		}
		rng := rand.New(rand.NewPCG(uint64(len(raw)), 1))
		mixed := shuffled(t, nil, before, rng)
		if again, err := Canonical(mixed); err != nil || again != got {
			t.Fatalf("%q: shuffled to %q: got %q, %v, want %q", raw, mixed, again, err, got)
		}
	})
}

// FuzzDecode checks that nothing with a key given twice, or with a key that is
// not spelled as a field, gets through, and that bytes are kept.
func FuzzDecode(f *testing.F) {
	seed(f)
	f.Add([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1}}}`))
	f.Add([]byte(`{"jsonrpc":"2.0","PARAMS":{"name":"x","arguments":{"a":1,"a":2}}}`))
	f.Add([]byte(`{"tool":"x","list":[{"n":1}],"map":{"a":{"n":2}},"ptr":{"Plain":""},"any":[{}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var o outer
		if err := Decode(raw, &o); err != nil {
			checkRefusal(t, raw, err)
		} else if repeated(t, raw) {
			t.Fatalf("%q: a key is given twice", raw)
		}
		var env envelope
		if err := Decode(raw, &env); err != nil {
			checkRefusal(t, raw, err)
			return
		}
		if repeated(t, raw) {
			t.Fatalf("%q: a key is given twice", raw)
		}
		if !bytes.Contains(raw, env.ID) || !bytes.Contains(raw, env.Params.Arguments) {
			t.Fatalf("%q: bytes changed: %+v", raw, env)
		}
		for name := range tree(t, raw).(map[string]any) {
			switch name {
			case "jsonrpc", "id", "method", "params":
			default:
				t.Fatalf("%q: field %q got through", raw, name)
			}
		}
	})
}

// checkRefusal wants a writ.Error of one line.
func checkRefusal(t *testing.T, raw []byte, err error) {
	t.Helper()
	var e *writ.Error
	if !errors.As(err, &e) || e.Kind != writ.Invalid && e.Kind != writ.TooLarge {
		t.Fatalf("%q: %T %v", raw, err, err)
	}
	if !bytes.HasPrefix([]byte(e.Msg), []byte("JSON: ")) || bytes.ContainsAny([]byte(e.Msg), "\n\r\x00\x1b") || len(e.Msg) > 1500 {
		t.Fatalf("%q: message %q", raw, e.Msg)
	}
}

// acceptable is the contract of Canonical in terms of other people's parsers.
func acceptable(t *testing.T, raw []byte) bool {
	t.Helper()
	if _, err := jcs.Transform(raw); err != nil {
		return false
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	depth := 0
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return true
		}
		if err != nil {
			t.Fatalf("%q: jcs reads it, encoding/json says %v", raw, err)
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '[' || v == '{' {
				depth++
			} else {
				depth--
			}
			if depth > MaxDepth {
				return false
			}
		case json.Number:
			if !rationalSurvives(t, string(v)) {
				return false
			}
		}
	}
}

// repeated says whether some object has a key twice, by encoding/json's tokens.
func repeated(t *testing.T, raw []byte) bool {
	t.Helper()
	type frame struct {
		keys  map[string]bool // nil in an array
		value bool            // a key was read, its value comes next
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	open := []*frame{{}}
	for {
		token, err := dec.Token()
		if err == io.EOF {
			return false
		}
		if err != nil {
			t.Fatal(err)
		}
		top := open[len(open)-1]
		if token == json.Delim('}') || token == json.Delim(']') {
			open = open[:len(open)-1]
			continue
		}
		if top.keys != nil && !top.value {
			name := token.(string)
			if top.keys[name] {
				return true
			}
			top.keys[name] = true
			top.value = true
			continue
		}
		top.value = false
		switch token {
		case json.Delim('{'):
			open = append(open, &frame{keys: map[string]bool{}})
		case json.Delim('['):
			open = append(open, &frame{})
		}
	}
}

func tree(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	return v
}

// floats is v with its numbers read as floats.
func floats(t *testing.T, v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, floats(t, e))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = floats(t, e)
		}
		return out
	}
	return v
}

// shuffled appends v with the keys of its objects in random order, spaces
// between tokens, and numbers as they were written.
func shuffled(t *testing.T, dst []byte, v any, rng *rand.Rand) []byte {
	t.Helper()
	switch v := v.(type) {
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, " ,"...)
			}
			dst = shuffled(t, dst, e, rng)
		}
		return append(dst, ']')
	case map[string]any:
		var names []string
		for k := range v {
			names = append(names, k)
		}
		rng.Shuffle(len(names), reflect.Swapper(names))
		dst = append(dst, '{')
		for i, k := range names {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(shuffled(t, dst, k, rng), ": "...)
			dst = shuffled(t, dst, v[k], rng)
		}
		return append(dst, '}')
	}
	scalar, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return append(dst, scalar...)
}
