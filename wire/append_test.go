package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/writ-run/writ"
)

// oracle is the canonical form by encoding/json and jcs alone.
func oracle(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out, err := jcs.Transform(raw)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func randomText(rng *rand.Rand) string {
	alphabet := []string{"a", "Z", "\"", "\\", "/", "<", "&", "\x00", "\x08", "\n", "\x1f", "\x7f", "\u0080", "é", "\u2028", "\ue000", "\ufb33", "\uffff", "😀", "\U0010ffff", "\xff", "\xc3", "\xed\xa0\x80", "\ufffd"}
	var b []byte
	for range rng.IntN(12) {
		b = append(b, alphabet[rng.IntN(len(alphabet))]...)
	}
	return string(b)
}

func TestAppendString(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		s := randomText(rng)
		if got, want := string(AppendString([]byte("x"), s)), "x"+oracle(t, s); got != want {
			t.Fatalf("%q: got %q, want %q", s, got, want)
		}
	}
}

func TestAppendObject(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 3_000 {
		var fields []Field
		want := map[string]any{}
		for range rng.IntN(8) {
			key := string(bytes.ToValidUTF8([]byte(randomText(rng)), nil))
			if _, used := want[key]; used {
				continue
			}
			switch rng.IntN(4) {
			case 0:
				v := randomText(rng)
				want[key] = v
				fields = append(fields, Str(key, v))
			case 1:
				v := rng.Int64N(1<<54+1) - 1<<53
				want[key] = v
				fields = append(fields, Int(key, v))
			case 2:
				v := rng.IntN(2) == 0
				want[key] = v
				fields = append(fields, Bool(key, v))
			case 3:
				v := map[string]any{"z": rng.Float64(), "a": []any{nil, randomText(rng)}}
				want[key] = v
				fields = append(fields, Raw(key, oracle(t, v)))
			}
		}
		got, err := AppendObject([]byte("x"), fields...)
		if err != nil || string(got) != "x"+oracle(t, want) {
			t.Fatalf("%v: got %q, %v, want %q", want, got, err, oracle(t, want))
		}
		if again, err := Canonical(got[1:]); err != nil || again != string(got[1:]) {
			t.Fatalf("%q is not canonical: %q, %v", got, again, err)
		}
	}
}

func TestAppendObjectRefuses(t *testing.T) {
	for _, row := range []struct {
		fields []Field
		err    string
	}{
		{[]Field{Int("n", 1<<53)}, ""},
		{[]Field{Int("n", -1<<53)}, ""},
		{[]Field{Int("n", 1<<53+1)}, `field "n" is an integer beyond 2^53; write it as a string`},
		{[]Field{Str("a", ""), Int("n", -1<<53-1)}, `field "n" is an integer beyond 2^53; write it as a string`},
		{[]Field{Str("a", ""), Int("b", 1), Str("a", "")}, `field "a" is given twice; give each key once`},
		{[]Field{{}}, `field "" has no value; make fields with Str, Int, Bool or Raw`},
		{[]Field{Raw("r", "")}, `field "r" has an empty value; give it canonical JSON`},
		{[]Field{Str("\xff", "")}, `field "\xff" is not valid UTF-8; use keys that are`},
	} {
		got, err := AppendObject([]byte("x"), row.fields...)
		checkText(t, fmt.Sprint(row.fields), err, row.err)
		if err != nil && string(got) != "x" {
			t.Errorf("refused and still appended: %q", got)
		}
	}
}

func TestMarshal(t *testing.T) {
	type definition struct {
		Name  string          `json:"name"`
		About string          `json:"about"`
		Max   int64           `json:"max"`
		Rate  float64         `json:"rate"`
		Raw   json.RawMessage `json:"raw,omitempty"`
	}
	for _, row := range []struct {
		v         any
		want, err string
	}{
		{v: definition{Name: "a<b>&c\u2028", About: "\x00é\ufffd", Max: 1 << 53, Rate: 0.1},
			want: "{\"about\":\"\\u0000é\ufffd\",\"max\":9007199254740992,\"name\":\"a<b>&c\u2028\",\"rate\":0.1}"},
		{v: definition{Raw: json.RawMessage(`{"b": 1.0, "a": "\u0041"}`)}, want: `{"about":"","max":0,"name":"","rate":0,"raw":{"a":"A","b":1}}`},
		{v: map[string]any{"b": nil, "a": []int{}}, want: `{"a":[],"b":null}`},
		{v: "x\n", want: `"x\n"`},
		{v: float32(0.1), want: `0.1`},
		{v: 1e21, want: `1e+21`},
		{v: definition{Max: 1<<53 + 1}, err: `number that a 64-bit float does not keep at byte 28; send it as a string`},
		{v: -1 / inf(), err: `negative zero, which canonical form turns into 0, at byte 0; write 0`},
		{v: definition{Raw: json.RawMessage(`{"a":1,"a":2}`)}, err: `duplicate key "a" at byte 52 (pointer "/raw/a"); give each key once`},
		{v: "/tmp/\xff", err: `a string of the value is not valid UTF-8; make it valid first`},
		{v: map[string]int{"\xfe": 1}, err: `a string of the value is not valid UTF-8; make it valid first`},
		{v: inf(), err: `the value cannot be written as JSON; use types that can`},
		{v: make(chan int), err: `the value cannot be written as JSON; use types that can`},
	} {
		got, err := Marshal(row.v)
		checkText(t, fmt.Sprintf("%+v", row.v), err, row.err)
		if got != row.want {
			t.Errorf("%+v: got %q, want %q", row.v, got, row.want)
		}
	}
}

func inf() float64 { return 1 / zero }

var zero float64

func TestDigest(t *testing.T) {
	want, err := writ.ParseDigest("44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a")
	if err != nil {
		t.Fatal(err)
	}
	if got := Digest(`{}`); got != want {
		t.Errorf("got %s", got)
	}
	if Digest("") == Digest(`{}`) || Digest("").IsZero() {
		t.Error("the digest of nothing is wrong")
	}
}

// The hot path of the ledger allocates nothing.
func TestAllocations(t *testing.T) {
	dst := make([]byte, 0, 512)
	text, raw := small, []byte(small)
	for name, f := range map[string]func(){
		"Digest": func() { Digest(text) },
		"AppendObject": func() {
			dst, _ = AppendObject(dst[:0], Str("text", text), Int("seq", int64(len(raw))), Bool("ok", true))
		},
	} {
		if n := testing.AllocsPerRun(100, f); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
