package wire

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/writ-run/writ"
)

// envelope has the shape of a front door's request.
type envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method"`
	Params  struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	} `json:"params"`
}

type inner struct {
	N     int8   `json:"n"`
	Plain string // no tag: the name as it is
}

type common struct {
	Trace string `json:"trace"`
	Any   inner  `json:"any"` // hidden by outer.Any
}

type loop struct {
	*loop2
	A string `json:"a"`
}

type loop2 struct {
	*loop
	B string `json:"b"`
}

type outer struct {
	common
	Tool   string           `json:"tool"`
	On     bool             `json:"on"`
	F      float64          `json:"f"`
	U      uint16           `json:"u"`
	List   []inner          `json:"list"`
	Map    map[string]inner `json:"map"`
	Ptr    **inner          `json:"ptr"`
	Any    any              `json:"any"`
	Digest writ.Digest      `json:"digest"`
	At     time.Time        `json:"at"`
	Args   json.RawMessage  `json:"args"`
	Hidden string           `json:"-"`
	//lint:ignore SA5008 the odd tag is what is tested
	Dash   string `json:"-,"`
	secret string
}

func TestDecode(t *testing.T) {
	const unknown = "; remove it or spell it exactly as documented"
	for _, row := range []struct{ in, err string }{
		{in: `{}`},
		{in: ` {"tool":"x","on":true,"f":1.5,"u":65535,"trace":"t","-":"d"} `},
		{in: `{"list":[{"n":1,"Plain":"p"},{"n":-128}],"map":{"N":{"n":2}},"ptr":{"n":3}}`},
		{in: `{"any":{"TOOL":1,"Whatever":[{"x":2}]},"args":{"TOOL":1}}`},
		{in: `{"list":null,"ptr":null,"tool":null}`},
		{in: `{"digest":"0000000000000000000000000000000000000000000000000000000000000000","at":"2026-01-02T03:04:05Z"}`},

		{in: `{"TOOL":"x"}`, err: `unknown field "TOOL" at byte 1 (pointer "/TOOL")` + unknown},
		{in: `{"tool":"x","Tool":"y"}`, err: `unknown field "Tool" at byte 12 (pointer "/Tool")` + unknown},
		{in: `{"\u0054ool":"x"}`, err: `unknown field "Tool" at byte 1 (pointer "/Tool")` + unknown},
		{in: `{"ſ":1}`, err: `unknown field "ſ" at byte 1 (pointer "/ſ")` + unknown},
		{in: `{"more":1}`, err: `unknown field "more" at byte 1 (pointer "/more")` + unknown},
		{in: `{"Hidden":1}`, err: `unknown field "Hidden" at byte 1 (pointer "/Hidden")` + unknown},
		{in: `{"secret":1}`, err: `unknown field "secret" at byte 1 (pointer "/secret")` + unknown},
		{in: `{"common":{}}`, err: `unknown field "common" at byte 1 (pointer "/common")` + unknown},
		{in: `{"list":[{"n":1},{"N":1}]}`, err: `unknown field "N" at byte 18 (pointer "/list/1/N")` + unknown},
		{in: `{"list":[{"plain":1}]}`, err: `unknown field "plain" at byte 10 (pointer "/list/0/plain")` + unknown},
		{in: `{"map":{"a/b":{"N":1}}}`, err: `unknown field "N" at byte 15 (pointer "/map/a~1b/N")` + unknown},
		{in: `{"ptr":{"N":1}}`, err: `unknown field "N" at byte 8 (pointer "/ptr/N")` + unknown},

		{in: `{"args":{"a":1,"a":2}}`, err: `duplicate key "a" at byte 15 (pointer "/args/a"); give each key once`},
		{in: `{"tool":"a","tool":"b"}`, err: `duplicate key "tool" at byte 12 (pointer "/tool"); give each key once`},
		{in: `{"args":9007199254740993}`, err: `number that a 64-bit float does not keep at byte 8; send it as a string`},
		{in: "{\"tool\":\"\xff\"}", err: `invalid UTF-8 at byte 9; encode the text as UTF-8`},
		{in: `{} {}`, err: `data after the value at byte 3; send exactly one value`},
		{in: ``, err: `the input ends too early at byte 0; write a JSON value here`},
		{in: `null`, err: `the value is not an object at byte 0; send an object`},
		{in: ` []`, err: `the value is not an object at byte 1; send an object`},

		{in: `{"tool":1}`, err: `field "tool", before byte 9, cannot be this number; send a string`},
		{in: `{"on":"yes"}`, err: `field "on", before byte 11, cannot be this string; send true or false`},
		{in: `{"f":"1"}`, err: `field "f", before byte 8, cannot be this string; send a number`},
		{in: `{"u":-1}`, err: `field "u", before byte 7, cannot be this number; send a whole number of 16 bits, not below 0`},
		{in: `{"list":[{"n":300}]}`, err: `field "list.n", before byte 17, cannot be this number; send a whole number of 8 bits`},
		{in: `{"list":{}}`, err: `field "list", before byte 9, cannot be this object; send an array`},
		{in: `{"ptr":[]}`, err: `field "ptr", before byte 8, cannot be this array; send an object`},
		{in: `{"digest":"abc"}`, err: `a field has a value that it cannot hold; see the field's format`},
		{in: `{"at":"yesterday"}`, err: `a field has a value that it cannot hold; see the field's format`},
	} {
		before := outer{Tool: "before", secret: "kept"}
		got := before
		err := Decode([]byte(row.in), &got)
		checkText(t, row.in, err, row.err)
		if err != nil && !reflect.DeepEqual(got, before) {
			t.Errorf("%s: refused and still changed the value to %+v", row.in, got)
		}
		if err == nil && (got.Tool == "before" || got.secret != "") {
			t.Errorf("%s: the old value shows through: %+v", row.in, got)
		}
	}
}

func TestDecodeKeepsExactBytes(t *testing.T) {
	var env envelope
	const args = "{ \"b\" : 1.0,\t\"a\":\"\\u0041\" }"
	if err := Decode([]byte(`{"jsonrpc":"2.0","id": 1e0 ,"method":"tools/call","params":{"arguments": `+args+` ,"name":"x"}}`), &env); err != nil {
		t.Fatal(err)
	}
	if string(env.Params.Arguments) != args || string(env.ID) != "1e0" || env.Params.Name != "x" {
		t.Errorf("got %+v", env)
	}
}

func TestDecodeOtherTargets(t *testing.T) {
	var list []inner
	checkText(t, "slice", Decode([]byte(`[{"n":1},{"N":1}]`), &list), `unknown field "N" at byte 10 (pointer "/1/N"); remove it or spell it exactly as documented`)
	checkText(t, "null slice", Decode([]byte(`null`), &list), "")
	var cyclic loop
	checkText(t, "types that embed each other", Decode([]byte(`{"a":"x","c":1}`), &cyclic), `unknown field "c" at byte 9 (pointer "/c"); remove it or spell it exactly as documented`)
	var odd struct {
		//lint:ignore SA5008 the odd tag is what is tested
		F string `json:"a\\b"` // not a name to encoding/json, which calls the field F
	}
	checkText(t, "field that only we know", Decode([]byte(`{"a\\b":"x"}`), &odd), `a field has a value that it cannot hold; see the field's format`)
	for _, into := range []any{nil, outer{}, (*outer)(nil)} {
		checkText(t, "no target", Decode([]byte(`{}`), into), `there is nothing to decode into; report this as a bug`)
	}
}
