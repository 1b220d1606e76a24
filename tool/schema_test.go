package tool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/writ-run/writ"
)

const everything = `{"type":"object","additionalProperties":false,"required":["name"],"properties":{
	"name":{"type":"string","minLength":2,"maxLength":5,"pattern":"^[a-z]+$"},
	"count":{"type":"integer","minimum":1,"maximum":10},
	"ratio":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1},
	"flag":{"type":"boolean"},
	"mode":{"type":"string","enum":["fast","slow"]},
	"level":{"type":"integer","enum":[1,2]},
	"list":{"type":"array","minItems":1,"maxItems":2,"uniqueItems":true,"items":{"type":"integer"}},
	"flags":{"type":"array","items":{"type":"object","additionalProperties":false,"required":["on"],"properties":{"on":{"type":"boolean"},"at":{"type":"string"}}}},
	"options":{"type":"object","additionalProperties":false,"required":["depth"],"properties":{"depth":{"type":"integer"},"label":{"type":"string"}}},
	"maybe":{"type":["integer","null"]},
	"either":{"type":["integer","string"]},
	"step":{"type":"integer","multipleOf":5},
	"fixed":{"const":"x"},
	"any":{},
	"one":{"anyOf":[{"type":"integer"},{"type":"boolean"}]}}}`

func made(t testing.TB, schema string) *Tool {
	t.Helper()
	tl, err := New(Definition{Name: "t", Schema: json.RawMessage(schema)}, func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil })
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

func TestArgs(t *testing.T) {
	tl := made(t, everything)
	for _, row := range []struct{ args, want string }{
		{`{"name":"ab"}`, `{"name":"ab"}`},
		{`{ "name" : "ab", "count" : 1.0 }`, `{"count":1,"name":"ab"}`},
		// Strings are decoded where the schema excludes strings, at any depth.
		{`{"name":"ab","count":"5"}`, `{"count":5,"name":"ab"}`},
		{`{"name":"ab","count":" 5 "}`, `{"count":5,"name":"ab"}`},
		{`{"name":"ab","flag":"true"}`, `{"flag":true,"name":"ab"}`},
		{`{"name":"ab","list":"[1]"}`, `{"list":[1],"name":"ab"}`},
		{`{"name":"ab","list":["1",2]}`, `{"list":[1,2],"name":"ab"}`},
		{`{"name":"ab","list":"[\"1\"]"}`, `{"list":[1],"name":"ab"}`},
		{`{"name":"ab","options":"{\"depth\":\"3\"}"}`, `{"name":"ab","options":{"depth":3}}`},
		{`{"name":"ab","options":{"depth":"3","label":"3"}}`, `{"name":"ab","options":{"depth":3,"label":"3"}}`},
		{`{"name":"ab","flags":[{"on":"false","at":"true"}]}`, `{"flags":[{"at":"true","on":false}],"name":"ab"}`},
		{`{"name":"ab","maybe":"null"}`, `{"maybe":null,"name":"ab"}`},
		{`{"name":"ab","ratio":"5e-1"}`, `{"name":"ab","ratio":0.5}`},
		// And nowhere else.
		{`{"name":"null"}`, `{"name":"null"}`},
		{`{"name":"true"}`, `{"name":"true"}`},
		{`{"name":"ab","either":"5"}`, `{"either":"5","name":"ab"}`},
		{`{"name":"ab","any":"5"}`, `{"any":"5","name":"ab"}`},
		{`{"name":"ab","any":["5",{"count":"5"}]}`, `{"any":["5",{"count":"5"}],"name":"ab"}`},
	} {
		canonical, value, err := tl.Args([]byte(row.args))
		if err != nil || canonical != row.want {
			t.Errorf("%s: %s, %v", row.args, canonical, err)
			continue
		}
		again, _ := json.Marshal(value)
		if string(again) != row.want {
			t.Errorf("%s: the value is %s", row.args, again)
		}
	}
	if got, _, err := made(t, `{"type":"object"}`).Args(nil); got != "{}" || err != nil {
		t.Errorf("no bytes: %s, %v", got, err)
	}
}

func TestArgsRefuses(t *testing.T) {
	tl := made(t, everything)
	for args, want := range map[string]string{
		`{}`:                                             `t: argument "name" is missing; it takes any, count, either, fixed, flag, flags, level, list, maybe, mode, name, one, options, ratio, step`,
		`{"nme":"ab"}`:                                   `t: unknown argument "nme"; did you mean name?`,
		`{"name":"ab","zzzz":1}`:                         `t: unknown argument "zzzz"; it takes any, count, either, fixed, flag, flags, level, list, maybe, mode, name, one, options, ratio, step`,
		`{"name":"ab","Count":1}`:                        `t: unknown argument "Count"; did you mean count?`,
		`{"name":5}`:                                     `t: argument "name": want a string, not a number`,
		`{"name":null}`:                                  `t: argument "name": want a string, not null`,
		`{"name":["ab"]}`:                                `t: argument "name": want a string, not an array`,
		`{"name":{"a":"b"}}`:                             `t: argument "name": want a string, not an object`,
		`{"name":true}`:                                  `t: argument "name": want a string, not a boolean`,
		`{"name":"a"}`:                                   `t: argument "name": it has 1 characters; at least 2 are needed`,
		`{"name":"abcdef"}`:                              `t: argument "name": it has 6 characters; at most 5 are taken`,
		`{"name":"AB"}`:                                  `t: argument "name": it does not match ^[a-z]+$`,
		`{"name":"ab","count":0}`:                        `t: argument "count": it must be at least 1`,
		`{"name":"ab","count":"0"}`:                      `t: argument "count": it must be at least 1`,
		`{"name":"ab","count":11}`:                       `t: argument "count": it must be at most 10`,
		`{"name":"ab","count":1.5}`:                      `t: argument "count": want an integer, not a fraction`,
		`{"name":"ab","count":"1.5"}`:                    `t: argument "count": want an integer, not a fraction`,
		`{"name":"ab","count":""}`:                       `t: argument "count": want an integer, not a string`,
		`{"name":"ab","count":"five"}`:                   `t: argument "count": want an integer, not a string`,
		`{"name":"ab","count":"0x5"}`:                    `t: argument "count": want an integer, not a string`,
		`{"name":"ab","count":"5 6"}`:                    `t: argument "count": want an integer, not a string`,
		`{"name":"ab","count":"\"5\""}`:                  `t: argument "count": want an integer, not a string`,
		`{"name":"ab","count":"null"}`:                   `t: argument "count": want an integer, not a string`,
		`{"name":"ab","count":true}`:                     `t: argument "count": want an integer, not a boolean`,
		`{"name":"ab","ratio":0}`:                        `t: argument "ratio": it must be more than 0`,
		`{"name":"ab","ratio":1}`:                        `t: argument "ratio": it must be less than 1`,
		`{"name":"ab","flag":"yes"}`:                     `t: argument "flag": want a boolean, not a string`,
		`{"name":"ab","flag":"True"}`:                    `t: argument "flag": want a boolean, not a string`,
		`{"name":"ab","flag":1}`:                         `t: argument "flag": want a boolean, not a number`,
		`{"name":"ab","mode":"fats"}`:                    `t: argument "mode": it must be one of "fast", "slow"; did you mean fast?`,
		`{"name":"ab","mode":""}`:                        `t: argument "mode": it must be one of "fast", "slow"`,
		`{"name":"ab","level":3}`:                        `t: argument "level": it must be one of 1, 2`,
		`{"name":"ab","list":[]}`:                        `t: argument "list": it has 0 items; at least 1 are needed`,
		`{"name":"ab","list":[1,2,3]}`:                   `t: argument "list": it has 3 items; at most 2 are taken`,
		`{"name":"ab","list":[1,1]}`:                     `t: argument "list": an item is there twice`,
		`{"name":"ab","list":[1,"x"]}`:                   `t: argument "list[1]": want an integer, not a string`,
		`{"name":"ab","list":{"0":1}}`:                   `t: argument "list": want an array, not an object`,
		`{"name":"ab","list":"[1"}`:                      `t: argument "list": want an array, not a string`,
		`{"name":"ab","list":5}`:                         `t: argument "list": want an array, not a number`,
		`{"name":"ab","flags":[{"on":true},{"on":"x"}]}`: `t: argument "flags[1].on": want a boolean, not a string`,
		`{"name":"ab","flags":[{"onn":true}]}`:           `t: unknown argument "flags[0].onn"; did you mean on?`,
		`{"name":"ab","flags":[{}]}`:                     `t: argument "flags[0].on" is missing; it takes at, on`,
		`{"name":"ab","flags":["x"]}`:                    `t: argument "flags[0]": want an object, not a string`,
		`{"name":"ab","options":{}}`:                     `t: argument "options.depth" is missing; it takes depth, label`,
		`{"name":"ab","options":{"depth":1,"dept":1}}`:   `t: unknown argument "options.dept"; did you mean depth?`,
		`{"name":"ab","options":"x"}`:                    `t: argument "options": want an object, not a string`,
		`{"name":"ab","maybe":true}`:                     `t: argument "maybe": want an integer or null, not a boolean`,
		`{"name":"ab","either":null}`:                    `t: argument "either": want an integer or a string, not null`,
		`{"name":"ab","step":7}`:                         `t: argument "step": it must be a multiple of 5`,
		`{"name":"ab","fixed":"y"}`:                      `t: argument "fixed": it must be "x"`,
		`{"name":"ab","one":"x"}`:                        `t: argument "one" does not fit the tool's schema`,
		`{"name":"ab","name":"cd"}`:                      `JSON: `,
		`[]`:                                             `JSON: `,
		`"x"`:                                            `JSON: `,
		`{"name":"ab"}x`:                                 `JSON: `,
		`{"name":"ab","count":12345678901234567890}`:     `JSON: `,
		`nonsense`:                                       `JSON: `,
	} {
		_, _, err := tl.Args([]byte(args))
		var e *writ.Error
		if !errors.As(err, &e) || e.Kind != writ.Invalid {
			t.Errorf("%s: %v", args, err)
			continue
		}
		if e.Msg != want && (want != "JSON: " || !strings.HasPrefix(e.Msg, want)) {
			t.Errorf("%s:\n  got  %s\n  want %s", args, e.Msg, want)
		}
	}
}

// A message holds no value (it may be a secret, I7), no type of Go, no second
// line, and little of what the caller sent.
func TestArgsMessagesAreShortAndBlind(t *testing.T) {
	tl := made(t, everything)
	secret := "hunter2" + strings.Repeat("x", 100_000)
	for _, args := range []any{
		map[string]any{"name": map[string]any{"k": secret}},
		map[string]any{"name": []any{secret}},
		map[string]any{"name": secret},
		map[string]any{"name": "ab", "count": secret},
		map[string]any{"name": "ab", "mode": secret},
		map[string]any{"name": "ab", "list": []any{secret}},
		map[string]any{"name": "ab", "fixed": secret},
		map[string]any{"name": "ab", "one": secret},
		map[string]any{"name": "ab", strings.Repeat("k", 100_000): 1},
		map[string]any{"name": "ab", "a\nb\x1b": 1},
		map[string]any{"name": "ab", "options": map[string]any{"depth": 1, strings.Repeat("k\n", 100_000): 1}},
	} {
		raw, err := json.Marshal(args)
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = tl.Args(raw)
		if err == nil {
			t.Errorf("%.60s was taken", raw)
			continue
		}
		for _, bad := range []string{"hunter2", "map[", "interface", "reflect", "\n", "\x1b", "validating", "<nil>"} {
			if strings.Contains(err.Error(), bad) {
				t.Errorf("%.60s: %.300q holds %q", raw, err, bad)
			}
		}
		if len(err.Error()) > 500 {
			t.Errorf("%.60s: %d bytes of message", raw, len(err.Error()))
		}
	}
}

// What a string holds is decoded once, so that a decoded value is bounded as the
// arguments are.
func TestArgsDecodingIsBounded(t *testing.T) {
	tl := made(t, `{"type":"object","properties":{"o":{"type":"object"}}}`)
	deep := strings.Repeat(`{"a":`, 64) + `1` + strings.Repeat(`}`, 64)
	if _, _, err := tl.Args([]byte(`{"o":` + quoted(deep) + `}`)); err == nil {
		t.Error("65 levels were taken")
	}
	shallow := strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60)
	if _, _, err := tl.Args([]byte(`{"o":` + quoted(shallow) + `}`)); err != nil {
		t.Errorf("control: %v", err)
	}
	if _, _, err := tl.Args([]byte(`{"o":` + quoted(`{"a":1,"a":2}`) + `}`)); err == nil {
		t.Error("a duplicate key inside a string was taken")
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestNewRefuses(t *testing.T) {
	run := func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil }
	for _, row := range []struct {
		d    Definition
		run  Func
		want string
	}{
		{Definition{Name: "", Schema: json.RawMessage(`{"type":"object"}`)}, run, "tool name"},
		{Definition{Name: "a b", Schema: json.RawMessage(`{"type":"object"}`)}, run, "tool name"},
		{Definition{Name: "ä", Schema: json.RawMessage(`{"type":"object"}`)}, run, "tool name"},
		{Definition{Name: strings.Repeat("a", 65), Schema: json.RawMessage(`{"type":"object"}`)}, run, "tool name"},
		{Definition{Name: "a", Schema: json.RawMessage(`{"type":"object"}`)}, nil, "nothing to run"},
		{Definition{Name: "a", Schema: json.RawMessage(`{}`)}, run, "must have"},
		{Definition{Name: "a", Schema: json.RawMessage(`[]`)}, run, "parameters"},
		{Definition{Name: "a", Schema: json.RawMessage(`{"type":"object","type":"object"}`)}, run, "parameters"},
		{Definition{Name: "a", Schema: json.RawMessage(`{"type":"object","properties":{"p":{"$ref":"http://x/y"}}}`)}, run, "parameters"},
		{Definition{Name: "a", Schema: json.RawMessage(`{"type":"object","properties":{"p":{"x-writ-path":"x"}}}`)}, run, "unknown annotation"},
		{Definition{Name: "a", Schema: json.RawMessage(`{"type":"object","properties":{"p":{"anyOf":[{"x-writ-path":"read"}]}}}`)}, run, "anyOf"},
	} {
		if _, err := New(row.d, row.run); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s %s: %v", row.d.Name, row.d.Schema, err)
		}
	}
}

// Whatever changes what a call means changes the digest (I8).
func TestDigestPinsTheDefinition(t *testing.T) {
	base := Definition{Name: "a", Title: "t", Schema: json.RawMessage(`{"type":"object"}`)}
	run := func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil }
	first, err := New(base, run)
	if err != nil {
		t.Fatal(err)
	}
	spaced := base
	spaced.Schema = json.RawMessage(`{ "type" : "object" }`)
	if same, _ := New(spaced, run); same.Digest != first.Digest {
		t.Error("control: white space changed the digest")
	}
	for name, change := range map[string]func(*Definition){
		"name": func(d *Definition) { d.Name = "b" }, "title": func(d *Definition) { d.Title = "" }, "description": func(d *Definition) { d.Description = "x" },
		"class": func(d *Definition) { d.Class = writ.ClassNone }, "schema": func(d *Definition) { d.Schema = json.RawMessage(`{"type":"object","minProperties":1}`) },
		"untrusted": func(d *Definition) { d.Untrusted = true }, "runs": func(d *Definition) { d.Runs = InBox }, "exec": func(d *Definition) { d.Policy.Exec = 3 },
		"failures": func(d *Definition) { d.Failures = []string{"x"} },
	} {
		d := base
		change(&d)
		if other, err := New(d, run); err != nil || other.Digest == first.Digest {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCatalog(t *testing.T) {
	run := func(context.Context, writ.Writ) (writ.Result, error) { return writ.Result{}, nil }
	mk := func(name string) *Tool {
		tl, err := New(Definition{Name: name, Schema: json.RawMessage(`{"type":"object"}`)}, run)
		if err != nil {
			t.Fatal(err)
		}
		return tl
	}
	c, err := NewCatalog(mk("b"), mk("a"))
	if err != nil || c.All()[0].Name != "a" {
		t.Fatal(err)
	}
	if _, ok := c.Lookup("A"); ok {
		t.Error("names are exact")
	}
	if _, err := NewCatalog(mk("read"), mk("Read")); err == nil {
		t.Error("two names that differ by case were taken")
	}
	if err := Missing("raed", []string{"read"}); !strings.Contains(err.Error(), "did you mean read?") {
		t.Error(err)
	}
	if err := Missing("raed", nil); strings.Contains(err.Error(), "mean") {
		t.Error("a tool that is not visible was suggested:", err)
	}
	if err := Missing(strings.Repeat("é", 100), nil); len(err.Error()) > 200 || strings.Contains(err.Error(), `\x`) {
		t.Error(err)
	}
}

// The validator of a built-in tool is made when it is first needed; one that cannot be
// made takes no call. Everybody else's is made at once.
func TestValidatorIsMadeWhenNeeded(t *testing.T) {
	ran := false
	run := func(context.Context, writ.Writ) (writ.Result, error) {
		ran = true
		return writ.Result{Content: `{"x":1}`}, nil
	}
	broken, fine := json.RawMessage(`{"type":"object","properties":{"x":{"type":"integer","pattern":"("}}}`), json.RawMessage(`{"type":"object"}`)
	for _, d := range []Definition{{Name: "of_args", Schema: broken}, {Name: "of_output", Schema: fine, Output: broken}} {
		if _, err := New(d, run); err == nil {
			t.Errorf("%s: a schema that does not resolve was taken", d.Name)
		}
		d.Runner.Kind = Builtin
		own, err := New(d, run)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // it is no better the second time
			_, _, err = own.Args([]byte(`{"x":1}`))
			if refused := err != nil; refused != (d.Output == nil) {
				t.Errorf("%s: arguments: %v", d.Name, err)
			}
			if d.Output == nil {
				continue
			}
			if res, err := own.Run(t.Context(), writ.Writ{}); err != nil || !res.IsError || !ran || res.Metadata["structured"] != nil {
				t.Errorf("%s: output: %+v %v", d.Name, res, err)
			}
		}
	}
}
