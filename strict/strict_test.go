package strict

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// choice is a word or a list.
type choice struct {
	word string
	list []string
}

func (c *choice) Shape(k Kind) (any, string) {
	switch k {
	case Text:
		return &c.word, ""
	case List:
		return &c.list, ""
	}
	return nil, "a word or a list"
}

type sample struct {
	Name   string            `yaml:"name"`
	Count  int               `yaml:"count"`
	On     *bool             `yaml:"on"`
	Long   Block             `yaml:"long"`
	Data   JSON              `yaml:"data"`
	Either choice            `yaml:"either"`
	Words  map[string]string `yaml:"words"`
	Inner  struct {
		Deep []choice `yaml:"deep"`
	} `yaml:"inner"`
}

func file() *File {
	return &File{Name: "f", What: "a sample", Empty: "write something", NotBuilt: map[string]string{"inner.later": "what comes later"}}
}

func TestRead(t *testing.T) {
	for _, row := range []struct{ text, want string }{ // want is the error, empty: it holds
		{"name: x\ncount: 3\non: true\n", ""},
		{"long: |\n  a\n  b\n", ""},
		{"long: plain\n", ""},
		{"either: x\n", ""},
		{"either: [x, y]\n", ""},
		{"inner: {deep: [x, [y]]}\n", ""},
		{"", "f: the file is empty; write something"},
		{"nam: x\n", "f:1: nam: unknown key; did you mean name?"},
		{"inner:\n  later: x\n", "f:2: inner.later: what comes later is not built into this version of writ; remove the key"},
		{"name: |\n  a\n", "f:1: name: must be text, not a block of text; write it on one line"},
		{"long: [a]\n", "f:1: long: must be text, not a list"},
		{"long: \"\"\n", "f:1: long: is empty; give a value or remove it"},
		{"either: {a: b}\n", "f:1: either: must be a word or a list, not a mapping"},
		{"either:\n", "f:1: either: has no value; give one or remove it"},
		{"either: &a x\n", "f:1: either: " + noAnchors},
		{"inner:\n  deep:\n    - x\n    - 5\n", "f:4: inner.deep[1]: must be a word or a list, not a number"},
		{"words: {a: b, a: c}\nname: 1\ncount: 010\n", "f:1: words.a: is given twice; the first is on line 1\nf:2: name: must be text, not a number; quote it\nf:3: count: must be a whole number in plain decimal digits, not 010"},
		{"a: b\n" + strings.Repeat("#\n", MaxLines), "f: the file has 10001 lines; at most 10000 are read"},
		{strings.Repeat("#", MaxBytes+1), "f: the file has 262145 bytes; at most 262144 are read"},
		{"words: {" + strings.Repeat("a: b, ", maxTokens/4) + "}", "f:1: not valid YAML: more than 50000 words and signs; a sample has less"},
	} {
		f := file()
		var s sample
		holds := f.Read([]byte(row.text), &s)
		got := ""
		if err := f.Err(); err != nil {
			got = err.Error()
		}
		if got != row.want || holds && row.want == "f: the file is empty; write something" {
			t.Errorf("%.100q: %q, want %q", row.text, got, row.want)
		}
	}
}

func TestValues(t *testing.T) {
	f := file()
	var s sample
	if !f.Read([]byte("long: |\n  a\n  b\neither: x\ninner:\n  deep:\n    - y\n    - [z]\ndata: {b: 1}\n"), &s) || f.Err() != nil {
		t.Fatal(f.Err())
	}
	if s.Long != "a\nb\n" || s.Either.word != "x" || s.Inner.Deep[0].word != "y" || s.Inner.Deep[1].list[0] != "z" {
		t.Errorf("%+v", s)
	}
	want := map[string]int{"": 1, "long": 1, "either": 4, "inner": 5, "inner.deep": 6, "inner.deep[0]": 7, "inner.deep[1]": 8, "inner.deep[1][0]": 8, "data": 9, "data.b": 9}
	if diff := cmp.Diff(want, f.Lines()); diff != "" {
		t.Error(diff)
	}
	if f.Line("inner.deep[1].none") != 8 || f.Line("none") != 0 {
		t.Error("a key that is missing is not where its parent is")
	}
}

func TestJSON(t *testing.T) {
	for _, row := range []struct{ yaml, json, err string }{
		{"{a: x, b: [1, -2.5, true, null, \"\"], c: {}}", `{"a":"x","b":[1,-2.5,true,null,""],"c":{}}`, ""},
		{"\n  a: |\n    two\n    lines\n", `{"a":"two\nlines\n"}`, ""},
		{"{z: 1, a: 2}", `{"z":1,"a":2}`, ""},
		{"x", `"x"`, ""},
		{"\"\\u2028<\"", `"\u2028\u003c"`, ""},
		{"9007199254740992", "9007199254740992", ""},
		{"9007199254740993", "", "f:1: data: 9007199254740993 is beyond what JSON keeps exactly; write at most 9007199254740992"},
		{"{a: 0x10}", "", "f:1: data.a: must be a number as in JSON, not 0x10"},
		{"[010]", "", "f:1: data[0]: must be a number as in JSON, not 010"},
		{"[1_000]", "", "f:1: data[0]: must be a number as in JSON, not 1_000"},
		{"[.nan]", "", "f:1: data[0]: has no spelling in JSON; write another value"},
		{"{a: 1, a: 2}", "", "f:1: data.a: is given twice; the first is on line 1"},
		{"{1: a}", "", `f:1: data.1: a key must be text, not a number; quote it`},
		{"{a: &x 1}", "", "f:1: data.a: " + noAnchors},
		{"{a: !!int 1}", "", "f:1: data.a: " + noAnchors},
		{"\n" + nested(70), "", "f:67: data" + strings.Repeat(".a", 65) + ": is nested more than 64 deep"},
	} {
		f := file()
		var s sample
		f.Read([]byte("data: "+row.yaml+"\n"), &s)
		got := ""
		if err := f.Err(); err != nil {
			got = err.Error()
		}
		if got != row.err || row.err == "" && string(s.Data) != row.json {
			t.Errorf("%q: %s, %q", row.yaml, s.Data, got)
		}
	}
}

// nested is a block of mappings, each in the one before.
func nested(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.Repeat(" ", i+1) + "a:\n")
	}
	return b.String()
}

// What could not be read is not checked as well; what was read is.
func TestReject(t *testing.T) {
	f := file()
	var s sample
	f.Read([]byte("name: 1\ncount: 2\ninner:\n  deep: x\n"), &s)
	if !f.Unread("inner") || !f.Unread("name") || f.Unread("count") || f.Unread("in") {
		t.Error("Unread is wrong")
	}
	f.Reject("name", "is not said")
	f.Reject("inner.deep[0]", "is not said")
	f.Reject("count", "must be %d", 3)
	f.Reject("", "the file")
	f.RejectAt(9, "", "a line")
	want := "f: the file\nf:1: name: must be text, not a number; quote it\nf:2: count: must be 3\nf:4: inner.deep: must be a list, not text\nf:9: a line"
	if got := f.Err().Error(); got != want {
		t.Errorf("%s", got)
	}
}

func TestSplit(t *testing.T) {
	for _, row := range []struct {
		text, front, body string
		line              int
		err               string
	}{
		{"---\nname: x\n---\nbody\n---\n", "\nname: x\n", "body\n---\n", 4, ""},
		{"---\r\nname: x\r\n---\r\nbody", "\nname: x\r\n", "body", 4, ""},
		{"---\n---", "\n", "", 3, ""},
		{"---\n--- \n---\n", "\n--- \n", "", 4, ""},
		{"", "", "", 0, "f:1: there is no front matter; begin the file with a line of ---, then the keys, then a line of ---"},
		{"----\na: b\n----\n", "", "", 0, "f:1: there is no front matter; begin the file with a line of ---, then the keys, then a line of ---"},
		{"---\na: b\n", "", "", 0, "f:1: the front matter has no end; close it with a line of ---"},
		{"---\n---\na\u202e\n", "", "", 0, "f:3: character U+202E does not show; remove it"},
	} {
		f := file()
		front, body, line, ok := f.Split([]byte(row.text))
		got := ""
		if err := f.Err(); err != nil {
			got = err.Error()
		}
		if string(front) != row.front || body != row.body || line != row.line || got != row.err || ok != (row.err == "") {
			t.Errorf("%q: %q, %q, %d, %q", row.text, front, body, line, got)
		}
	}
}

func TestWords(t *testing.T) {
	for name, want := range map[string]string{"ada": "ada", "7": `"7"`, "null": `"null"`, "a: b": `"a: b"`, "": `""`, "true": `"true"`} {
		if got := Word(name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
	for name, want := range map[string]string{"b": "a.b", "b.c": `a."b.c"`, "": `a.""`, "é": `a."\u00e9"`} {
		if got := Member("a", name); got != want {
			t.Errorf("%q: %s", name, got)
		}
	}
}
