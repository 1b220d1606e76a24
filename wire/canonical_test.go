package wire

import (
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"

	"github.com/writ-run/writ"
)

// Rows with a want are accepted; rows with an err are refused with exactly that
// text after "JSON: ".
var canonicalRows = []struct{ in, want, err string }{
	// Values, space.
	{in: `null`, want: `null`},
	{in: `true`, want: `true`},
	{in: `false`, want: `false`},
	{in: `""`, want: `""`},
	{in: `[]`, want: `[]`},
	{in: `{}`, want: `{}`},
	{in: " \t\r\n{ } \n", want: `{}`},
	{in: `[ 1 , [ ] , { "b" : 2 , "a" : null } ]`, want: `[1,[],{"a":null,"b":2}]`},
	{in: `{"a":{"a":1},"b":{"a":1}}`, want: `{"a":{"a":1},"b":{"a":1}}`},
	{in: `{"Path":1,"path":2}`, want: `{"Path":1,"path":2}`},
	{in: `{"":1," ":2}`, want: `{"":1," ":2}`},
	{in: `{"__proto__":1,"constructor":2}`, want: `{"__proto__":1,"constructor":2}`},

	// Order of keys: UTF-16 code units, so U+1F600 sorts below U+FB33.
	{in: `{"b":1,"a":2}`, want: `{"a":2,"b":1}`},
	{in: `{"aa":1,"a":2}`, want: `{"a":2,"aa":1}`},
	{in: `{"10":1,"9":2}`, want: `{"10":1,"9":2}`},
	{in: "{\"\ufb33\":1,\"😀\":2}", want: "{\"😀\":2,\"\ufb33\":1}"},
	{in: "{\"😀\":2,\"\ufb33\":1}", want: "{\"😀\":2,\"\ufb33\":1}"},
	{in: `{"\ue000":1,"\ud83d\ude00":2,"é":3,"z":4}`, want: "{\"z\":4,\"é\":3,\"😀\":2,\"\ue000\":1}"},
	{in: `{"😁":1,"😀":2}`, want: `{"😀":2,"😁":1}`},

	// Strings.
	{in: `"\u0041\/\u00e9\u20ac"`, want: `"A/é€"`},
	{in: `"\"\\\b\f\n\r\t"`, want: `"\"\\\b\f\n\r\t"`},
	{in: `"\u0008\u000C\u000a\u000d\u0009"`, want: `"\b\f\n\r\t"`},
	{in: `"\u0000\u000b\u001f"`, want: `"\u0000\u000b\u001f"`},
	{in: `"\u000B\u001F"`, want: `"\u000b\u001f"`},
	{in: `"\u0022\u005c"`, want: `"\"\\"`},
	{in: `"\u003c\u003e\u0026"`, want: `"<>&"`},
	{in: `"\u2028\u2029"`, want: "\"\u2028\u2029\""},
	{in: "\"\u2028\u2029\"", want: "\"\u2028\u2029\""},
	{in: "\"\x7f\"", want: "\"\x7f\""},
	{in: `"\ud83d\ude00"`, want: `"😀"`},
	{in: `"\uD83D\uDE00"`, want: `"😀"`},
	{in: `"😀"`, want: `"😀"`},
	{in: `"\ufeff"`, want: "\"\ufeff\""},
	{in: "\"\ufeff\"", want: "\"\ufeff\""},
	{in: `"\ufffd\uffff"`, want: "\"\ufffd\uffff\""},
	{in: "\"e\u0301\"", want: "\"e\u0301\""}, // not normalised
	{in: "{\"é\":1,\"e\u0301\":2}", want: "{\"e\u0301\":2,\"é\":1}"},

	// Numbers that survive.
	{in: `0`, want: `0`},
	{in: `0.0`, want: `0`},
	{in: `0e0`, want: `0`},
	{in: `0E+400`, want: `0`},
	{in: `0.000e-400`, want: `0`},
	{in: `-1`, want: `-1`},
	{in: `1.0`, want: `1`},
	{in: `1.10`, want: `1.1`},
	{in: `-1.50e0`, want: `-1.5`},
	{in: `1e2`, want: `100`},
	{in: `1E2`, want: `100`},
	{in: `1e+2`, want: `100`},
	{in: `100e-2`, want: `1`},
	{in: `0.1`, want: `0.1`},
	{in: `0.10000000000000000000000000000000`, want: `0.1`},
	{in: `0.1e1`, want: `1`},
	{in: `0.000001`, want: `0.000001`},
	{in: `0.0000001`, want: `1e-7`},
	{in: `1e-7`, want: `1e-7`},
	{in: `1e20`, want: `100000000000000000000`},
	{in: `1e21`, want: `1e+21`},
	{in: `1e+21`, want: `1e+21`},
	{in: `1000000000000000000000`, want: `1e+21`},
	{in: `1e23`, want: `1e+23`},
	{in: `999999999999999`, want: `999999999999999`},
	{in: `9007199254740991`, want: `9007199254740991`},
	{in: `9007199254740992`, want: `9007199254740992`},
	{in: `-9007199254740992`, want: `-9007199254740992`},
	{in: `9007199254740994`, want: `9007199254740994`},
	{in: `4503599627370497.0e-1`, want: `450359962737049.7`},
	{in: `1.7976931348623157e308`, want: `1.7976931348623157e+308`},
	{in: `2.2250738585072014e-308`, want: `2.2250738585072014e-308`},
	{in: `5e-324`, want: `5e-324`},
	{in: `0.30000000000000004`, want: `0.30000000000000004`},
	{in: `1.0000000000000002`, want: `1.0000000000000002`},
	{in: `333333333.33333329`, err: `number that a 64-bit float does not keep at byte 0; send it as a string`},
	{in: `333333333.3333333`, want: `333333333.3333333`},
	{in: `[1700000000000000000]`, want: `[1700000000000000000]`},
	{in: `1` + strings.Repeat("0", 300), want: `1e+300`},
	{in: `0.` + strings.Repeat("0", 299) + `1`, want: `1e-300`},

	// Numbers that do not.
	{in: `-0`, err: `negative zero, which canonical form turns into 0, at byte 0; write 0`},
	{in: `[1,-0.0]`, err: `negative zero, which canonical form turns into 0, at byte 3; write 0`},
	{in: `-0e5`, err: `negative zero, which canonical form turns into 0, at byte 0; write 0`},
	{in: `9007199254740993`, err: `number that a 64-bit float does not keep at byte 0; send it as a string`},
	{in: `-9007199254740993`, err: `number that a 64-bit float does not keep at byte 0; send it as a string`},
	{in: `9007199254740993e0`, err: `number that a 64-bit float does not keep at byte 0; send it as a string`},
	{in: `1700000000000000001`, err: `number with more digits than a 64-bit float keeps at byte 0; send it as a string`},
	{in: `18446744073709551615`, err: `number with more digits than a 64-bit float keeps at byte 0; send it as a string`},
	{in: `123456789012345678901234567890`, err: `number with more digits than a 64-bit float keeps at byte 0; send it as a string`},
	{in: `{"n":0.1000000000000000055511151231257827}`, err: `number with more digits than a 64-bit float keeps at byte 5; send it as a string`},
	{in: `0.1000000000000000055511151231257827021181583404541015625`, err: `number with more digits than a 64-bit float keeps at byte 0; send it as a string`},
	{in: `0.10000000000000001`, err: `number that a 64-bit float does not keep at byte 0; send it as a string`},
	{in: `1e400`, err: `number outside the range of a 64-bit float at byte 0; send it as a string`},
	{in: `-1e400`, err: `number outside the range of a 64-bit float at byte 0; send it as a string`},
	{in: `1e-400`, err: `number outside the range of a 64-bit float at byte 0; send it as a string`},
	{in: `1e309`, err: `number outside the range of a 64-bit float at byte 0; send it as a string`},
	{in: `1e99999999999999999999999`, err: `number outside the range of a 64-bit float at byte 0; send it as a string`},
	{in: `1e-99999999999999999999999`, err: `number outside the range of a 64-bit float at byte 0; send it as a string`},
	{in: `4.9e-324`, err: `number that a 64-bit float does not keep at byte 0; send it as a string`},
	{in: `2e-324`, err: `number outside the range of a 64-bit float at byte 0; send it as a string`},
	{in: `1.7976931348623158e308`, err: `number that a 64-bit float does not keep at byte 0; send it as a string`},
	{in: `1.00000000000000000000000000000000000001`, err: `number with more digits than a 64-bit float keeps at byte 0; send it as a string`},

	// Numbers that are none.
	{in: `NaN`, err: `unexpected 'N' at byte 0; write a JSON value here`},
	{in: `[Infinity]`, err: `unexpected 'I' at byte 1; write a JSON value here`},
	{in: `-Infinity`, err: `unexpected 'I' at byte 1; write a digit here`},
	{in: `nan`, err: `unexpected 'n' at byte 0; write a JSON value here`},
	{in: `01`, err: `number with a leading zero at byte 0; leave the zero out`},
	{in: `-01`, err: `number with a leading zero at byte 1; leave the zero out`},
	{in: `00`, err: `number with a leading zero at byte 0; leave the zero out`},
	{in: `+1`, err: `unexpected '+' at byte 0; write a JSON value here`},
	{in: `.5`, err: `unexpected '.' at byte 0; write a JSON value here`},
	{in: `5.`, err: `the input ends too early at byte 2; write a digit after the point`},
	{in: `[5.]`, err: `unexpected ']' at byte 3; write a digit after the point`},
	{in: `1e`, err: `the input ends too early at byte 2; write a digit in the exponent`},
	{in: `1e+`, err: `the input ends too early at byte 3; write a digit in the exponent`},
	{in: `1e+-1`, err: `unexpected '-' at byte 3; write a digit in the exponent`},
	{in: `1.e1`, err: `unexpected 'e' at byte 2; write a digit after the point`},
	{in: `-`, err: `the input ends too early at byte 1; write a digit here`},
	{in: `--1`, err: `unexpected '-' at byte 1; write a digit here`},
	{in: `0x10`, err: `data after the value at byte 1; send exactly one value`},
	{in: `[1_000]`, err: `unexpected '_' at byte 2; write a comma or a closing bracket here`},
	{in: `1e1.5`, err: `data after the value at byte 3; send exactly one value`},
	{in: `[１]`, err: `unexpected '\uff11' at byte 1; write a JSON value here`},

	// Duplicate keys.
	{in: `{"path":"/a","path":"/b"}`, err: `duplicate key "path" at byte 13 (pointer "/path"); give each key once`},
	{in: `{"a":1,"\u0061":2}`, err: `duplicate key "a" at byte 7 (pointer "/a"); give each key once`},
	{in: `{"a":1,"b":2,"a":1}`, err: `duplicate key "a" at byte 13 (pointer "/a"); give each key once`},
	{in: `{"b":1,"a":2,"a":3,"b":4}`, err: `duplicate key "a" at byte 13 (pointer "/a"); give each key once`},
	{in: `{"a":1,"a":2,"a":3}`, err: `duplicate key "a" at byte 7 (pointer "/a"); give each key once`},
	{in: `{"":1,"":2}`, err: `duplicate key "" at byte 6 (pointer "/"); give each key once`},
	{in: `{"x":[0,{"k/~":{"d":1,"d":2}}]}`, err: `duplicate key "d" at byte 22 (pointer "/x/1/k~1~0/d"); give each key once`},
	{in: `{"x":{"y":1},"x":{"z":2}}`, err: `duplicate key "x" at byte 13 (pointer "/x"); give each key once`},
	{in: `{"\ud83d\ude00":1,"😀":2}`, err: `duplicate key "😀" at byte 18 (pointer "/😀"); give each key once`},
	{in: `{"a\n\u202e":1,"a\n\u202e":2}`, err: `duplicate key "a\n\u202e" at byte 15 (pointer "/a\n\u202e"); give each key once`},
	{in: `{"\/":1,"/":2}`, err: `duplicate key "/" at byte 8 (pointer "/~1"); give each key once`},

	// Objects and arrays that are none.
	{in: ``, err: `the input ends too early at byte 0; write a JSON value here`},
	{in: `  `, err: `the input ends too early at byte 2; write a JSON value here`},
	{in: `{`, err: `the input ends too early at byte 1; write a key in double quotes here`},
	{in: `[`, err: `the input ends too early at byte 1; write a JSON value here`},
	{in: `[1`, err: `the input ends too early at byte 2; write a comma or a closing bracket here`},
	{in: `}`, err: `unexpected '}' at byte 0; write a JSON value here`},
	{in: `[1,]`, err: `unexpected ']' at byte 3; write a JSON value here`},
	{in: `[,1]`, err: `unexpected ',' at byte 1; write a JSON value here`},
	{in: `[1,,2]`, err: `unexpected ',' at byte 3; write a JSON value here`},
	{in: `[1 2]`, err: `unexpected '2' at byte 3; write a comma or a closing bracket here`},
	{in: `[1}`, err: `unexpected '}' at byte 2; write a comma or a closing bracket here`},
	{in: `{"a":1,}`, err: `unexpected '}' at byte 7; write a key in double quotes here`},
	{in: `{,"a":1}`, err: `unexpected ',' at byte 1; write a key in double quotes here`},
	{in: `{"a"}`, err: `unexpected '}' at byte 4; write a colon after the key`},
	{in: `{"a":}`, err: `unexpected '}' at byte 5; write a JSON value here`},
	{in: `{"a" 1}`, err: `unexpected '1' at byte 5; write a colon after the key`},
	{in: `{"a"::1}`, err: `unexpected ':' at byte 5; write a JSON value here`},
	{in: `{"a":1:2}`, err: `unexpected ':' at byte 6; write a comma or a closing brace here`},
	{in: `{"a":1 "b":2}`, err: `unexpected '"' at byte 7; write a comma or a closing brace here`},
	{in: `{"a":1]`, err: `unexpected ']' at byte 6; write a comma or a closing brace here`},
	{in: `{a:1}`, err: `unexpected 'a' at byte 1; write a key in double quotes here`},
	{in: `{'a':1}`, err: `unexpected '\'' at byte 1; write a key in double quotes here`},
	{in: `{1:1}`, err: `unexpected '1' at byte 1; write a key in double quotes here`},
	{in: `{null:1}`, err: `unexpected 'n' at byte 1; write a key in double quotes here`},
	{in: `'a'`, err: `unexpected '\'' at byte 0; write a JSON value here`},

	// Words, comments, what follows the value.
	{in: `True`, err: `unexpected 'T' at byte 0; write a JSON value here`},
	{in: `tru`, err: `unexpected 't' at byte 0; write a JSON value here`},
	{in: `truex`, err: `data after the value at byte 4; send exactly one value`},
	{in: `undefined`, err: `unexpected 'u' at byte 0; write a JSON value here`},
	{in: `/* a */1`, err: `unexpected '/' at byte 0; write a JSON value here`},
	{in: `[1 // one` + "\n]", err: `unexpected '/' at byte 3; write a comma or a closing bracket here`},
	{in: `{}{}`, err: `data after the value at byte 2; send exactly one value`},
	{in: `{} []`, err: `data after the value at byte 3; send exactly one value`},
	{in: "1\n2", err: `data after the value at byte 2; send exactly one value`},
	{in: "{}\x00", err: `data after the value at byte 2; send exactly one value`},
	{in: "\x00", err: `unexpected '\x00' at byte 0; write a JSON value here`},
	{in: "\v1", err: `unexpected '\v' at byte 0; write a JSON value here`},
	{in: "[\f]", err: `unexpected '\f' at byte 1; write a JSON value here`},
	{in: "\u00a01", err: `unexpected '\u00a0' at byte 0; write a JSON value here`},
	{in: "\ufeff{}", err: `byte order mark at byte 0; send UTF-8 without one`},
	{in: "\xfe\xff\x00{", err: `invalid UTF-8 at byte 0; encode the text as UTF-8`},
	{in: " \ufeff{}", err: `unexpected '\ufeff' at byte 1; write a JSON value here`},

	// Strings that are none.
	{in: `"`, err: `string without an end at byte 0; close it with a double quote`},
	{in: `["abc`, err: `string without an end at byte 1; close it with a double quote`},
	{in: `"abc\"`, err: `string without an end at byte 0; close it with a double quote`},
	{in: "\"a\nb\"", err: `control character in a string at byte 2; write it as \u000a`},
	{in: "\"\x00\"", err: `control character in a string at byte 1; write it as \u0000`},
	{in: "{\"a\x1f\":1}", err: `control character in a string at byte 3; write it as \u001f`},
	{in: `"\x41"`, err: `unknown escape sequence at byte 1; write a backslash as \\`},
	{in: `"\'"`, err: `unknown escape sequence at byte 1; write a backslash as \\`},
	{in: `"\U0041"`, err: `unknown escape sequence at byte 1; write a backslash as \\`},
	{in: `"\`, err: `unknown escape sequence at byte 1; write a backslash as \\`},
	{in: `"\u12"`, err: `\u without four hexadecimal digits at byte 1; write \u and four of 0-9, a-f`},
	{in: `"\u12g4"`, err: `\u without four hexadecimal digits at byte 1; write \u and four of 0-9, a-f`},
	{in: `"\u+123"`, err: `\u without four hexadecimal digits at byte 1; write \u and four of 0-9, a-f`},
	{in: `"\u`, err: `\u without four hexadecimal digits at byte 1; write \u and four of 0-9, a-f`},
	{in: `"a\ud800"`, err: `lone surrogate at byte 2; write both halves of the pair, the high one first`},
	{in: `"\udc00"`, err: `lone surrogate at byte 1; write both halves of the pair, the high one first`},
	{in: `"\ude00\ud83d"`, err: `lone surrogate at byte 1; write both halves of the pair, the high one first`},
	{in: `"\ud83d\ud83d"`, err: `lone surrogate at byte 1; write both halves of the pair, the high one first`},
	{in: `"\ud83d\u0041"`, err: `lone surrogate at byte 1; write both halves of the pair, the high one first`},
	{in: `"\ud83d\n"`, err: `lone surrogate at byte 1; write both halves of the pair, the high one first`},
	{in: `"\ud83dx"`, err: `lone surrogate at byte 1; write both halves of the pair, the high one first`},
	{in: `"\ud83d\u12"`, err: `lone surrogate at byte 1; write both halves of the pair, the high one first`},
	{in: `{"\ud800":1}`, err: `lone surrogate at byte 2; write both halves of the pair, the high one first`},
	{in: "\"\xff\"", err: `invalid UTF-8 at byte 1; encode the text as UTF-8`},
	{in: "\"ab\xc3\"", err: `invalid UTF-8 at byte 3; encode the text as UTF-8`},
	{in: "\"\xc0\x80\"", err: `invalid UTF-8 at byte 1; encode the text as UTF-8`},         // overlong NUL
	{in: "\"\xe0\x80\xaf\"", err: `invalid UTF-8 at byte 1; encode the text as UTF-8`},     // overlong slash
	{in: "\"\xed\xa0\x80\"", err: `invalid UTF-8 at byte 1; encode the text as UTF-8`},     // a surrogate
	{in: "\"\xf4\x90\x80\x80\"", err: `invalid UTF-8 at byte 1; encode the text as UTF-8`}, // beyond U+10FFFF
	{in: "{\"\xff\":1}", err: `invalid UTF-8 at byte 2; encode the text as UTF-8`},
	{in: "[\xe9]", err: `invalid UTF-8 at byte 1; encode the text as UTF-8`},
	{in: "\"\xf0\x9f\x98", err: `invalid UTF-8 at byte 1; encode the text as UTF-8`},

	// Depth.
	{in: nested(MaxDepth), want: nested(MaxDepth)},
	{in: nested(MaxDepth + 1), err: `more than 64 levels of nesting at byte 64; nest less deeply`},
	{in: strings.Repeat(`{"a":`, 65), err: `more than 64 levels of nesting at byte 320; nest less deeply`},
	{in: strings.Repeat(`[`, 1<<20), err: `more than 64 levels of nesting at byte 64; nest less deeply`},
	{in: `[` + strings.Repeat(nested(MaxDepth-1)+",", 3) + `1]`, want: `[` + strings.Repeat(nested(MaxDepth-1)+",", 3) + `1]`},
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func TestCanonical(t *testing.T) {
	for _, row := range canonicalRows {
		got, err := Canonical([]byte(row.in))
		checkText(t, row.in, err, row.err)
		if row.err == "" && got != row.want {
			t.Errorf("%.80q: got %q, want %q", row.in, got, row.want)
		}
		if row.err != "" && got != "" {
			t.Errorf("%.80q: refused and still returned %q", row.in, got)
		}
	}
}

// checkText wants an error of kind Invalid with exactly this text, or none.
func checkText(t *testing.T, in string, err error, want string) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("%.80q: refused: %v", in, err)
		}
		return
	}
	checkError(t, in, err, writ.Invalid, "JSON: "+want)
}

func checkError(t *testing.T, in string, err error, kind writ.Kind, msg string) {
	t.Helper()
	var e *writ.Error
	if !errors.As(err, &e) {
		t.Errorf("%.80q: error %v is not a writ.Error", in, err)
		return
	}
	if e.Kind != kind || e.Msg != msg {
		t.Errorf("%.80q:\n got %s %q\nwant %s %q", in, e.Kind, e.Msg, kind, msg)
	}
}

func TestCanonicalBounds(t *testing.T) {
	fill := func(n int) string { return `"` + strings.Repeat("a", n-2) + `"` }
	values := func(n int) string { return "[" + strings.Repeat("0,", n-2) + "0]" }
	for _, row := range []struct{ name, in, err string }{
		{"most bytes", fill(MaxBytes), ""},
		{"bytes", fill(MaxBytes + 1), "JSON: the input has 16777217 bytes and may have 16777216; send less"},
		{"most values", values(MaxValues), ""},
		{"values", values(MaxValues + 1), "JSON: more than 262144 values at byte 524287; send less"},
		{"values with space", " " + values(MaxValues+1), "JSON: more than 262144 values at byte 524288; send less"},
	} {
		_, err := Canonical([]byte(row.in))
		if row.err == "" {
			if err != nil {
				t.Errorf("%s: %v", row.name, err)
			}
			continue
		}
		checkError(t, row.name, err, writ.TooLarge, row.err)
	}
}

// Canonical form may be longer than the input; it is held to the same bound, or
// what was accepted once would be refused the next time.
func TestCanonicalFormIsBounded(t *testing.T) {
	in := `["` + strings.Repeat("a", MaxBytes-12) + `", 1e20]`
	got, err := Canonical([]byte(in))
	checkError(t, "growing number", err, writ.TooLarge, "JSON: the canonical form has 16777230 bytes and may have 16777216; send less")
	if got != "" {
		t.Errorf("refused and still returned %d bytes", len(got))
	}
}

func TestHostileKeysAreCut(t *testing.T) {
	long := strings.Repeat("é", 200)
	_, err := Canonical([]byte(`{"` + long + `":{"k":1,"k":2}}`))
	checkText(t, "long pointer", err, `duplicate key "k" at byte 411 (pointer "/`+strings.Repeat("é", 63)+`"…); give each key once`)
	_, err = Canonical([]byte(`{"` + long + `":1,"` + long + `":2}`))
	checkText(t, "long key", err, `duplicate key "`+strings.Repeat("é", 32)+`"… at byte 406 (pointer "/`+strings.Repeat("é", 63)+`"…); give each key once`)
}

// A refused value may be a secret: it is not in the message (I7).
func TestMessagesDoNotRepeatValues(t *testing.T) {
	for _, in := range []string{`{"pin":90071992547409931234}`, `{"key":"s3cr3t` + "\x01" + `"}`, `{"key":"s3cr3t","key":1}`, `["s3cr3t"`} {
		_, err := Canonical([]byte(in))
		if err == nil || strings.Contains(err.Error(), "s3cr3t") || strings.Contains(err.Error(), "1234") {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestCanonicalObject(t *testing.T) {
	for _, row := range []struct{ in, want, err string }{
		{in: ` {"b":1,"a":[]}`, want: `{"a":[],"b":1}`},
		{in: `{}`, want: `{}`},
		{in: `[]`, err: `the value is not an object at byte 0; send an object`},
		{in: "\n null", err: `the value is not an object at byte 2; send an object`},
		{in: `"{}"`, err: `the value is not an object at byte 0; send an object`},
		{in: `1`, err: `the value is not an object at byte 0; send an object`},
		{in: ``, err: `the input ends too early at byte 0; write a JSON value here`},
		{in: `{"a":1,"a":1}`, err: `duplicate key "a" at byte 7 (pointer "/a"); give each key once`},
	} {
		got, err := CanonicalObject([]byte(row.in))
		checkText(t, row.in, err, row.err)
		if got != row.want {
			t.Errorf("%q: got %q, want %q", row.in, got, row.want)
		}
	}
}

// The worked examples of RFC 8785, sections 3.2.2 to 3.2.4 and appendix B. The
// RFC's own 333333333.33333329 does not survive and stands here as it prints.
func TestRFC8785(t *testing.T) {
	in := `{"numbers":[333333333.3333333,1E30,4.50,2e-3,0.000000000000000000000000001],` +
		`"string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}`
	want := `{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],` +
		`"string":"€$\u000f\nA'B\"\\\\\"/"}`
	if got, err := Canonical([]byte(in)); got != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	in = `{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",` +
		`"\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}`
	want = `{"\r":"Carriage Return","1":"One","` + "\u0080" + `":"Control","ö":"Latin Small Letter O With Diaeresis",` +
		`"€":"Euro Sign","😀":"Emoji: Grinning Face","` + "\ufb33" + `":"Hebrew Letter Dalet With Dagesh"}`
	if got, err := Canonical([]byte(in)); got != want || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for bits, want := range map[uint64]string{
		0x0000000000000000: "0",
		0x0000000000000001: "5e-324",
		0x8000000000000001: "-5e-324",
		0x7fefffffffffffff: "1.7976931348623157e+308",
		0xffefffffffffffff: "-1.7976931348623157e+308",
		0x4340000000000000: "9007199254740992",
		0xc340000000000000: "-9007199254740992",
		0x4430000000000000: "295147905179352830000",
		0x44b52d02c7e14af5: "9.999999999999997e+22",
		0x44b52d02c7e14af6: "1e+23",
		0x44b52d02c7e14af7: "1.0000000000000001e+23",
		0x444b1ae4d6e2ef4e: "999999999999999700000",
		0x444b1ae4d6e2ef4f: "999999999999999900000",
		0x444b1ae4d6e2ef50: "1e+21",
		0x3eb0c6f7a0b5ed8c: "9.999999999999997e-7",
		0x3eb0c6f7a0b5ed8d: "0.000001",
		0x41b3de4355555553: "333333333.3333332",
		0x41b3de4355555554: "333333333.33333325",
		0x41b3de4355555555: "333333333.3333333",
		0x41b3de4355555556: "333333333.3333334",
		0x41b3de4355555557: "333333333.33333343",
		0xbecbf647612f3696: "-0.0000033333333333333333",
		0x43143ff3c1cb0959: "1424953923781206.2",
	} {
		in := strconv.FormatFloat(math.Float64frombits(bits), 'e', -1, 64)
		if got, err := Canonical([]byte(in)); got != want || err != nil {
			t.Errorf("%x: got %q, %v, want %q", bits, got, err, want)
		}
	}
}

// Every float has one decimal that survives, however it is spelled.
func TestEveryFloatSurvives(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		f := math.Float64frombits(rng.Uint64())
		if math.IsNaN(f) || math.IsInf(f, 0) || f == 0 {
			continue
		}
		want, err := jcs.NumberToJSON(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, in := range []string{want, strconv.FormatFloat(f, 'e', -1, 64), strconv.FormatFloat(f, 'f', -1, 64)} {
			if got, err := Canonical([]byte(in)); got != want || err != nil {
				t.Fatalf("%s: got %q, %v, want %q", in, got, err, want)
			}
		}
	}
}

// Decimals near the edge of what a float keeps, judged by exact fractions.
func TestNumbersSurviveOrAreRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	kept := 0
	for range 10_000 {
		in := strconv.FormatUint(1+rng.Uint64N(9_999_999_999), 10) + strconv.FormatUint(rng.Uint64N(9_999_999), 10)
		switch rng.IntN(3) {
		case 0:
			in = in[:1] + "." + in[1:]
		case 1:
			in += "e" + strconv.Itoa(rng.IntN(600)-300)
		}
		want := rationalSurvives(t, in)
		if want {
			kept++
		}
		if _, err := Canonical([]byte(in)); (err == nil) != want {
			t.Fatalf("%s: survives %v, error %v", in, want, err)
		}
	}
	if kept < 100 || kept > 9_900 {
		t.Errorf("%d of 10000 survived: the test no longer tests", kept)
	}
}

// rationalSurvives says by exact arithmetic whether canonical form keeps a number.
func rationalSurvives(t *testing.T, literal string) bool {
	t.Helper()
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return false
	}
	if f == 0 {
		return !strings.HasPrefix(literal, "-") && strings.Trim(strings.FieldsFunc(literal, func(r rune) bool { return r == 'e' || r == 'E' })[0], "0.") == ""
	}
	form, err := jcs.NumberToJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	written, ok1 := new(big.Rat).SetString(literal)
	printed, ok2 := new(big.Rat).SetString(form)
	if !ok1 || !ok2 {
		t.Fatalf("big.Rat reads neither %q nor %q", literal, form)
	}
	return written.Cmp(printed) == 0
}
