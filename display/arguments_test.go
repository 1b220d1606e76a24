package display

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestArguments(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []Item
	}{
		{`{}`, []Item{{"", Object, "{}", 2, 1, nil}}},
		{`null`, []Item{{"", Null, "null", 4, 1, nil}}},
		{`{"a":[],"b":{},"c":"","d":"null","e":-1.5e+30,"f":true,"g":false,"h":[1,[{"x":null}]]}`, []Item{
			{"/a", Array, "[]", 2, 1, nil},
			{"/b", Object, "{}", 2, 1, nil},
			{"/c", String, "", 0, 1, nil},
			{"/d", String, "null", 4, 1, nil},
			{"/e", Number, "-1.5e+30", 8, 1, nil},
			{"/f", Boolean, "true", 4, 1, nil},
			{"/g", Boolean, "false", 5, 1, nil},
			{"/h[0]", Number, "1", 1, 1, nil},
			{"/h[1][0]/x", Null, "null", 4, 1, nil},
		}},
		{`{"":1,"a/b~c":2}`, []Item{{"/", Number, "1", 1, 1, nil}, {"/a~1b~0c", Number, "2", 1, 1, nil}}},
		{`{"a":["x"]}`, []Item{{"/a[0]", String, "x", 1, 1, nil}}},
		{`{"a":{"0":"x"}}`, []Item{{"/a/0", String, "x", 1, 1, nil}}},
		{`{"a[0]":"x"}`, []Item{{"/a~20]", String, "x", 1, 1, nil}}},
		{`{"a":{"[0]":"x"}}`, []Item{{"/a/~20]", String, "x", 1, 1, nil}}},
		{`{"s":"a\n\t\"\\b\"\b\f\u001f/"}`, []Item{
			{"/s", String, "a\n\t\"\\b\"<U+0008><U+000C><U+001F>/", 11, 2, []string{
				"3 hidden characters, spelled out: <U+0008> (control), <U+000C> (control), <U+001F> (control)"}},
		}},
		{"{\"k\u202e\\n\":\"v\"}", []Item{
			{"/k<U+202E><U+000A>", String, "v", 1, 1, []string{
				"key: 2 hidden characters, spelled out: <U+202E> (reorders text), <U+000A> (control)"}},
		}},
		{"{\"раy\":\"gοogle\"}", []Item{
			{"/раy", String, "gοogle", 7, 1, []string{
				`key: "раy" mixes Cyrillic and Latin letters`, `"gοogle" mixes Greek and Latin letters`}},
		}},
	} {
		got, err := Arguments([]byte(c.in))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v\n got %+v\nwant %+v", c.in, err, got, c.want)
		}
	}
}

func TestArgumentsRefuse(t *testing.T) {
	for _, in := range []string{
		"", " ", "{", "{}{}", "tru", `{"a":1,}`, "[01]", `"\x"`, "\"\n\"",
		" {}", "{} ", "{ }", "[ ]", `{"a": 1}`, `{"a" :1}`, `{ "a":1}`, `{"a":1 }`, `{"a":1, "b":2}`, "[1 ]", "[ 1]", "[1,\n2]", "1 ",
		`{"a":1,"a":2}`, `{"a":1,"b":1,"a":2}`,
		`"\ud800"`, `"\ud83d\ude00"`, `"\u0041"`, `"\/"`, `"\u202e"`, "\"\xff\"", "\"\xed\xa0\x80\"",
		strings.Repeat("[", 20000) + strings.Repeat("]", 20000),
	} {
		if got, err := Arguments([]byte(in)); err != errNotCanonical || got != nil {
			t.Errorf("%.40q: %v, %v", in, got, err)
		}
	}
}

func TestLongKeysAboveManyValues(t *testing.T) {
	const want = "the keys of the arguments are too long to be shown with each value (more than 16,777,216 bytes); reject the call"
	key := strings.Repeat("k", 1<<20)
	values := func(n int) []byte { return []byte(`{"` + key + `":[` + strings.Repeat("0,", n-1) + `0]}`) }
	if got, err := Arguments(values(100_000)); err == nil || err.Error() != want || got != nil {
		t.Errorf("%d items, %v", len(got), err)
	}
	if got, err := Arguments(values(15)); err != nil || len(got) != 15 {
		t.Errorf("%d items, %v", len(got), err)
	}
}

func many(n int, one func(int) string) []string {
	var out []string
	for i := range n {
		out = append(out, one(i))
	}
	return out
}

func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		what, in string
		want     []string
	}{
		{"plain", "echo hello\n\tindented\n", nil},
		{"counted", "a\u202eb\u202ec\u200b", []string{"3 hidden characters, spelled out: <U+202E> (reorders text) 2 times, <U+200B> (invisible)"}},
		{"one", "a\u00a0b", []string{"1 hidden character, spelled out: <U+00A0> (unusual space)"}},
		{"many kinds", "\x01\u2028\ue000\u0301\xff\U000e0041\u2800", []string{
			"7 hidden characters, spelled out: <U+0001> (control), <U+2028> (line break), <U+E000> (private use), <U+0301> (mark without its letter, or one too many on it), <0xFF> (not UTF-8), 2 other kinds"}},
		{"imitation", "<U+202E>", []string{`1 place written like a spelled-out character but plain text, shown with <U+003C> for "<"`}},
		{"trailing", "a\nb  \nc\t\nd", []string{"line 2 and 1 more line: spaces at the end"}},
		{"trailing before CR", "a \r\nb", []string{"1 hidden character, spelled out: <U+000D> (control)", "line 1: spaces at the end"}},
		{"long", "a\n" + strings.Repeat("é", 501), []string{"line 2: more than 500 characters long"}},
		{"not long", strings.Repeat("é", 500), nil},
		{"gap", "true" + strings.Repeat(" ", 40) + "; rm -rf ~", []string{"line 1: text after 40 spaces or more"}},
		{"gap of tabs", "true\t\t\t\t\t; rm -rf ~", []string{"line 1: text after 40 spaces or more"}},
		{"no gap", "true" + strings.Repeat(" ", 39) + "# nothing", nil},
		{"far below", "true" + strings.Repeat("\n", 11) + "rm -rf ~", []string{"line 12: text after 10 empty lines or more"}},
		{"empty end", "true" + strings.Repeat("\n", 30), nil},
		{"two directions", "rm /tmp/שלום/etc", []string{"line 1: right-to-left letters beside others: the order shown may not be the order in the text"}},
		{"one direction", "שלום עולם\nhello", nil},
		{"more words than are told apart", strings.Join(many(1500, func(n int) string { return fmt.Sprint("аa", n) }), " "), []string{
			`"аa0" mixes Cyrillic and Latin letters`, `"аa1" mixes Cyrillic and Latin letters`, `"аa2" mixes Cyrillic and Latin letters`,
			"more than 1,000 more words with letters of several scripts", "line 1: more than 500 characters long"}},
		{"more kinds than are listed", strings.Join(many(20, func(n int) string { return string(rune(0xE000 + n%10)) }), ""), []string{
			"20 hidden characters, spelled out: <U+E000> (private use) 2 times, <U+E001> (private use) 2 times, <U+E002> (private use) 2 times, <U+E003> (private use) 2 times, <U+E004> (private use) 2 times, 5 other kinds"}},
	} {
		if got := textWarnings(c.in); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s\n got %q\nwant %q", c.what, got, c.want)
		}
	}
}
