package wire

import (
	"encoding/json"
	"testing"
)

// Nothing is escaped for HTML, and raw parts keep their bytes.
func TestPlain(t *testing.T) {
	for _, c := range []struct {
		in   any
		want string
	}{
		{"<a href='x'>&\u2028</a>", `"<a href='x'>&\u2028</a>"`},
		{"a\nb", `"a\nb"`},
		{[]byte(nil), `null`},
		{map[string]int{"b": 1, "a": 2}, `{"a":2,"b":1}`},
		{map[string]json.RawMessage{"n": json.RawMessage(`1.0e2`), "s": json.RawMessage(`"\u003c<\/"`)}, `{"n":1.0e2,"s":"\u003c<\/"}`},
		{json.RawMessage("{ \"b\" : 1,\n\"a\":2}"), `{"b":1,"a":2}`},
	} {
		if got, err := Plain(c.in); err != nil || string(got) != c.want {
			t.Errorf("%v is %s, %v; want %s", c.in, got, err, c.want)
		}
	}
	for _, bad := range []any{func() {}, json.RawMessage(`{`), map[string]any{"a": make(chan int)}} {
		if got, err := Plain(bad); err == nil || got != nil {
			t.Errorf("%T is %s, %v", bad, got, err)
		}
	}
}
