package display

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

var seeds = []string{
	"", "plain text", "a\nb\tc\r\n", "\x1b[2J", "exe.\u202egnp", "<U+202E><0x41>", "<U+003C>U+202E>", "<<U+<0x", "\xff\xc3(\xed\xa0\x80", "e\u0301\u0302\u0303\u0304\u0305x",
	"\u0338", "日本語 नमस्ते 😀👍🏽", "раypal.com∕x", "\u1100\u1161\u11ab", "ခ\u103b\u103b\u103b\u103b\u103b\u103b\u103b\u103b\u103b\u103b\u103b\u103b\u103b\u103b", "… (3 bytes)", "\U000e0041\u2800",
}

var escapes = regexp.MustCompile(`<U\+([0-9A-F]{4,6})>|<0x([0-9A-F]{2})>`)

// unshow is the text that was made safe.
func unshow(safe string) string {
	return escapes.ReplaceAllStringFunc(safe, func(e string) string {
		m := escapes.FindStringSubmatch(e)
		n, err := strconv.ParseUint(m[1]+m[2], 16, 32)
		if err != nil {
			panic(err)
		}
		if m[2] != "" {
			return string([]byte{byte(n)})
		}
		return string(rune(n))
	})
}

func checkShown(t *testing.T, s string) {
	t.Helper()
	for _, safe := range []string{Visible(s), Line(s)} {
		if !utf8.ValidString(safe) {
			t.Fatalf("%q is shown as %q, which is not UTF-8", s, safe)
		}
		if i := strings.IndexFunc(safe, hidden); i >= 0 {
			t.Fatalf("%q is shown as %q, with a hidden character at %d", s, safe, i)
		}
		if got := unshow(safe); got != s {
			t.Fatalf("%q is shown as %q, which reads as %q", s, safe, got)
		}
	}
	if strings.ContainsAny(Line(s), "\n\t") {
		t.Fatalf("%q is on more than one line: %q", s, Line(s))
	}
}

func FuzzVisible(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, 20)
	}
	f.Fuzz(func(t *testing.T, s string, most int) {
		checkShown(t, s)
		for _, w := range textWarnings(s) {
			if strings.IndexFunc(w, hidden) >= 0 || strings.ContainsAny(w, "\n\t") || !utf8.ValidString(w) {
				t.Fatalf("the warning %q is not safe", w)
			}
		}
		most = min(max(most, 0), 1000)
		checkPreview(t, s, most)
	})
}

func checkPreview(t *testing.T, s string, most int) {
	t.Helper()
	p := Preview(s, most)
	if plain := strings.Replace(p, "…", "..", 1); isASCII(plain) && len(plain) > most && !strings.HasPrefix(p, "…") {
		t.Fatalf("the preview %q is wider than %d", p, most)
	}
	if p == Line(s) || unshow(p) == s {
		return
	}
	head, ok := strings.CutSuffix(p, "… ("+counted(len(s), "byte")+")")
	if !ok || !strings.HasPrefix(Line(s), head) || !strings.HasPrefix(s, unshow(head)) {
		t.Fatalf("the preview of %q in %d columns is %q", s, most, p)
	}
}

// TestRandomTexts is for every run what the fuzz targets are for long ones.
func TestRandomTexts(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	pieces := append([]string{"<", "U+", "0x", "202E", ">", "41", " ", "\n", "\t", "a", "é", "\u0301", "\u202e", "\u200b", "\xf0", "\x9f", "…", "│ ", "↪ ", "日"}, seeds...)
	shown := map[string]string{}
	for range 4_000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(pieces[rng.IntN(len(pieces))])
		}
		s := b.String()
		checkShown(t, s)
		if other, ok := shown[Visible(s)]; ok && other != s {
			t.Fatalf("%q and %q look the same", s, other)
		}
		shown[Visible(s)] = s
		checkPreview(t, s, rng.IntN(60))
		checkPages(t, Visible(s), 1+rng.IntN(5), rng.IntN(60))
		checkPages(t, s, 1+rng.IntN(5), rng.IntN(60))
		checkSheets(t, s, 1+rng.IntN(5), rng.IntN(60))
	}
}

// checkSheets holds what is shown of a value page by page, without making all of it safe,
// against the same made safe whole.
func checkSheets(t *testing.T, s string, rows, width int) {
	t.Helper()
	v := Value{Pointer: "/a", Kind: String, key: "/a", text: s}
	safe := Visible(s)
	p := Paginate(safe, rows, width)
	want := Sheet{Item: v.item(safe, textWarnings(s)), Page: 1, Pages: 1}
	for n := range p.Count() + 2 {
		if want.Lines > rows || len(safe) > rows*width/4 {
			want.Page, want.Pages = min(max(n, 1), p.Count()), p.Count()
			want.Text, want.Title = p.Page(want.Page), p.Title(want.Page)
		}
		got, err := v.Sheet(t.Context(), n, rows, width)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%q in %d rows of %d, page %d: %v\n got %+v\nwant %+v", s, rows, width, n, err, got, want)
		}
	}
}

// checkPages puts a text together again from its pages.
func checkPages(t *testing.T, text string, rows, width int) {
	t.Helper()
	p := Paginate(text, rows, width)
	var b strings.Builder
	whole, line := 0, 0
	for n := 1; n <= p.Count(); n++ {
		page := strings.Split(strings.TrimSuffix(p.Page(n), "\n"), "\n")
		if len(page) > p.rows || p.Title(n) == "" {
			t.Fatalf("%q: page %d has %d rows, the title %q", text, n, len(page), p.Title(n))
		}
		for _, row := range page {
			if numbered, is := strings.CutPrefix(row[p.digits:], " │ "); is {
				if line++; strings.TrimLeft(row[:p.digits], " ") != strconv.Itoa(line) {
					t.Fatalf("%q: row %q is line %d", text, row, line)
				}
				if line > 1 {
					b.WriteByte('\n')
				}
				row = numbered
			} else {
				row = strings.TrimPrefix(row[p.digits:], " ↪ ")
			}
			b.WriteString(row)
			whole += len(escapes.FindAllString(row, -1))
			if n := width - p.digits - marginColumns; isASCII(row) && len(row) > max(n, leastText) {
				t.Fatalf("%q: row %q is wider than %d", text, row, width)
			}
		}
	}
	if b.String() != text || line != p.lines {
		t.Fatalf("%q\n became %q, %d lines", text, b.String(), line)
	}
	if all := len(escapes.FindAllString(text, -1)); whole < all {
		t.Fatalf("%q: %d of %d escapes are whole", text, whole, all)
	}
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || r == '\t' }) < 0
}

func FuzzPages(f *testing.F) {
	for _, s := range seeds {
		f.Add(s, 2, 30)
	}
	f.Fuzz(func(t *testing.T, s string, rows, width int) {
		rows, width = min(max(rows, 1), 100), min(max(width, 0), 300)
		safe := Visible(s)
		checkPages(t, safe, rows, width)
		checkPages(t, s, rows, width)
		checkSheets(t, s, rows, width)
		if p := Paginate(safe, rows, width); p.bytes != len(s) {
			t.Fatalf("%q has %d bytes, the title says %d", s, len(s), p.bytes)
		}
	})
}

// leaves is every value of JSON in order, by encoding/json alone.
func leaves(t *testing.T, raw []byte) []any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var out []any
	type open struct {
		object bool
		n      int // tokens directly inside so far
	}
	var stack []open
	for dec.More() || len(stack) > 0 {
		tok, err := dec.Token()
		if err != nil {
			t.Fatal(err)
		}
		delim, isDelim := tok.(json.Delim)
		if isDelim && (delim == '}' || delim == ']') {
			if stack[len(stack)-1].n == 0 {
				out = append(out, delim)
			}
			stack = stack[:len(stack)-1]
			continue
		}
		isKey := false
		if len(stack) > 0 {
			top := &stack[len(stack)-1]
			isKey = top.object && top.n%2 == 0
			top.n++
		}
		if isDelim {
			stack = append(stack, open{object: delim == '{'})
		} else if !isKey {
			out = append(out, tok)
		}
	}
	return out
}

// TestDifferentArgumentsLookDifferent: no two of many small arguments are listed the same.
func TestDifferentArgumentsLookDifferent(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	keys := []string{"", "0", "1", "a", "a/0", "a[0]", "[0]", "~2", "a~20]", "[", "0]", "a~1"}
	var grow func(depth int) any
	grow = func(depth int) any {
		switch n := rng.IntN(3); {
		case depth == 0 || rng.IntN(4) == 0:
			return []any{"x", "[]", nil, "null", []any{}, map[string]any{}}[rng.IntN(6)]
		case n == 0:
			return []any{grow(depth - 1)}
		case n == 1:
			return []any{grow(depth - 1), grow(depth - 1)}
		}
		out := map[string]any{}
		for range 1 + rng.IntN(2) {
			out[keys[rng.IntN(len(keys))]] = grow(depth - 1)
		}
		return out
	}
	shown := map[string]string{}
	for range 20_000 {
		raw, err := json.Marshal(grow(3))
		if err != nil {
			t.Fatal(err)
		}
		items, err := Arguments(raw)
		if err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		looks := fmt.Sprint(items)
		if other, ok := shown[looks]; ok && other != string(raw) {
			t.Fatalf("%s and %s look the same: %s", raw, other, looks)
		}
		shown[looks] = string(raw)
	}
	if len(shown) < 5_000 {
		t.Errorf("only %d different ones", len(shown))
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{}`, `[]`, `{"a":[1,{"b":null}],"c":"x\n\u0001"}`, `"\ud800"`, `{"a":1,"a":2}`, "{\"k\u202e\":\"<U+202E>\"}", ` {"a" : 1 } `, `[[],{},"",0,-1.5e+30,true,false,null]`, `{"":{"":""}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		items, err := Arguments(raw)
		if err != nil {
			if items != nil {
				t.Fatalf("%q: items with the error %v", raw, err)
			}
			return
		}
		want := leaves(t, raw)
		if len(items) != len(want) {
			t.Fatalf("%q: %d items of %d", raw, len(items), len(want))
		}
		for i, item := range items {
			checkItem(t, raw, item, want[i])
		}
	})
}

func checkItem(t *testing.T, raw []byte, item Item, want any) {
	t.Helper()
	text, ok := unshow(item.Text), false
	switch v := want.(type) {
	case string:
		ok = item.Kind == String && text == v
	case json.Number:
		ok = item.Kind == Number && text == v.String()
	case bool:
		ok = item.Kind == Boolean && text == strconv.FormatBool(v)
	case nil:
		ok = item.Kind == Null && text == "null"
	case json.Delim:
		ok = v == '}' && item.Kind == Object && text == "{}" || v == ']' && item.Kind == Array && text == "[]"
	}
	if !ok || item.Bytes != len(text) || item.Lines != strings.Count(text, "\n")+1 {
		t.Fatalf("%q: %+v is not %v", raw, item, want)
	}
	for _, s := range append([]string{item.Pointer, strings.NewReplacer("\n", "", "\t", "").Replace(item.Text)}, item.Warnings...) {
		if strings.IndexFunc(s, hidden) >= 0 || strings.ContainsAny(s, "\n\t") || !utf8.ValidString(s) {
			t.Fatalf("%q: %q is not safe", raw, s)
		}
	}
}
