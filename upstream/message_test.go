package upstream

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWithMeta(t *testing.T) {
	set := []metaMember{{key: "v", value: []byte(`"ours"`)}, {key: "c", value: []byte(`{}`), keep: true}}
	for _, c := range []struct {
		params, want string
		set          []metaMember
	}{
		{``, `{"_meta":{"v":"ours","c":{}}}`, set},
		{` { } `, ` { "_meta":{"v":"ours","c":{}}}`, set},
		{`{"n":12345678901234567890, "a":1}`, `{"n":12345678901234567890, "a":1,"_meta":{"v":"ours","c":{}}}`, set},
		{`{"_meta":{"x":1,"v":"theirs","c":{"sampling":{}}}, "a":1}`, `{"_meta":{"x":1,"c":{"sampling":{}},"v":"ours"}, "a":1}`, set},
		{`{"a":1,"_meta":null}`, `{"a":1,"_meta":{"v":"ours","c":{}}}`, set},
		{`{"a" : 1}`, `{"a" : 1}`, nil},
		{``, ``, nil},
	} {
		got, err := withMeta([]byte(c.params), c.set...)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", c.params, got, err)
		}
	}
	for _, bad := range []string{`[]`, `{}},{"x":1`, `{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`, `{"_meta":7}`} {
		if got, err := withMeta([]byte(bad), set...); err == nil {
			t.Errorf("%s: %s", bad, got)
		}
	}
	if got, err := withMeta([]byte(`{}},{"x":1`)); err == nil {
		t.Errorf("%s", got)
	}
}

// A message of the server's for people reaches the one call it can be about, and
// otherwise whoever takes notices.
func TestLogs(t *testing.T) {
	const log = `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"d"}}`
	h, dial := newHand(t, func(h *hand) {
		h.answers["tools/call"] = func(id, _ string) string { return log + "\n" + result(id, `{}`) }
		h.answers["ping"] = func(id, _ string) string { return result(id, `{}`) }
	})
	notices := make(chan string, 1)
	c := connected(t, dial, Options{Notice: func(method string, params json.RawMessage) { notices <- method + " " + string(params) }})
	p := &peer{}
	if _, err := c.Call(t.Context(), "tools/call", json.RawMessage(ping), p); err != nil || strings.Join(p.logs, "") != `{"level":"info","data":"d"}` {
		t.Errorf("%q, %v", p.logs, err)
	}
	h.say(log)
	if got := <-notices; got != `notifications/message {"level":"info","data":"d"}` {
		t.Error(got)
	}
}

func TestMembers(t *testing.T) {
	for _, c := range []struct{ raw, loose, err string }{
		{`{}`, "", ""},
		{` {"a":[1,-2.5e-3,"x\u00e9\ud83d\ude00",{"b":null}],"c":true} `, "", ""},
		{`{"n":123456789012345678901234567890.5e999}`, "", ""},
		{`{"a":{"b":1,"c":2,"b":3}}`, "JSON: duplicate key before the end of the object at byte 24", ""},
		{`{"a":{"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"\u0031":0}}`, "JSON: duplicate key before the end of the object at byte 71", ""},
		{"{\"a\":\"\xc3\"}", "JSON: invalid UTF-8 at byte 6", ""},
		{`{"a":"\ude00"}`, "JSON: lone surrogate at byte 12", ""},
		{`{"a":"\ud83d\u0041"}`, "JSON: lone surrogate at byte 12", ""},
		{`{"a":1,"a":2}`, "", "JSON: duplicate key before the end of the object at byte 13"},
		{``, "", "JSON: a JSON object is expected at byte 0"},
		{`null`, "", "JSON: a JSON object is expected at byte 0"},
		{`{"a":1}x`, "", "JSON: data after the value at byte 7"},
		{`{"a":01}`, "", "JSON: a number is expected at byte 7"},
		{`{"a":1.}`, "", "JSON: a digit is expected at byte 7"},
		{`{"a":NaN}`, "", "JSON: a value is expected at byte 5"},
		{`{"a":1,}`, "", "JSON: a key is expected at byte 7"},
		{`{'a':1}`, "", "JSON: a key is expected at byte 1"},
		{`{"a":"` + "\x01" + `"}`, "", "JSON: control character in a string at byte 6"},
		{`{"a":"\x"}`, "", "JSON: unknown escape at byte 7"},
		{`{"a":"`, "", "JSON: a string without an end at byte 6"},
		{`{"a":` + strings.Repeat("[", 64), "", "JSON: more than 64 levels of nesting at byte 68"},
	} {
		loose, err := members([]byte(c.raw), nil)
		if said(loose) != c.loose || said(err) != c.err {
			t.Errorf("%q: %v, %v", c.raw, loose, err)
		}
	}
}

func said(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
