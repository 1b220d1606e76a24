package upstream

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/writ-run/writ/display"
	"github.com/writ-run/writ/tool"
	"github.com/writ-run/writ/wire"
)

// Whatever a stream of lines holds: no line is longer than the bound, none is empty,
// and together they are what was sent. What wire takes, the scanner takes; what the
// scanner takes, every reader takes.
func FuzzLines(f *testing.F) {
	f.Add([]byte("{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n{}\n"), 64)
	f.Add([]byte("{\"a\":\"\\ud83d\\ude00\",\"b\":[1,-0.5e+3,true,null]}\n"), 100)
	f.Add([]byte("{\"a\":{\"b\":1,\"\\u0062\":2}}\n{\"a\":\"\xff\"}\n"), 100)
	f.Add([]byte("\r\n  \r\n{\"a\":01}\n"), 16)
	f.Fuzz(func(t *testing.T, stream []byte, most int) {
		most = max(1, min(most, 1<<16))
		l := lineReader{r: bufio.NewReaderSize(bytes.NewReader(stream), 16), most: most}
		var want [][]byte
		for line := range bytes.SplitSeq(stream[:bytes.LastIndexByte(stream, '\n')+1], []byte("\n")) {
			if line = bytes.TrimSpace(line); len(line) > 0 {
				want = append(want, line)
			}
		}
		for n := 0; ; n++ {
			line, err := l.next()
			if err != nil {
				if errors.Is(err, io.EOF) && n != len(want) {
					t.Fatalf("%d lines of %d", n, len(want))
				}
				return
			}
			if len(line) == 0 || len(line) > most || !bytes.Equal(line, want[n]) {
				t.Fatalf("line %d is %q, want %q", n, line, want[n])
			}
			scanned(t, line)
		}
	})
}

func scanned(t *testing.T, raw []byte) {
	seen := map[string]json.RawMessage{}
	loose, err := members(raw, func(key, value []byte) { seen[string(key)] = value })
	strict := wire.Check(raw)
	object := bytes.HasPrefix(bytes.TrimSpace(raw), []byte("{"))
	if strict == nil && object && (err != nil || loose != nil) {
		t.Fatalf("%q: wire takes it, and %v, %v", raw, loose, err)
	}
	if err != nil {
		return
	}
	if !json.Valid(raw) {
		t.Fatalf("%q is not JSON", raw)
	}
	if loose == nil && !utf8.Valid(raw) {
		t.Fatalf("%q is not UTF-8", raw)
	}
	var reread map[string]json.RawMessage
	if err := json.Unmarshal(raw, &reread); err != nil {
		t.Fatal(err)
	}
	if loose == nil {
		if len(reread) != len(seen) {
			t.Fatalf("%q has %d members, and %d were seen", raw, len(reread), len(seen))
		}
		for key, value := range reread {
			if !bytes.Equal(seen[key], value) {
				t.Fatalf("%q: member %q is %q and %q", raw, key, seen[key], value)
			}
		}
	}
	m, err := parse(raw)
	if err == nil && m.fail != nil {
		e := serverError(m.fail)
		if len(e.Message) > 20*mostErrorText || strings.ContainsAny(e.Message, "\x1b\n\r\x00") {
			t.Fatalf("%q", e.Message)
		}
	}
	if dressed, err := withMeta(raw, metaMember{key: "k", value: []byte("1")}); err == nil {
		if string(field(field(dressed, "_meta"), "k")) != "1" {
			t.Fatalf("%q has no _meta.k", dressed)
		}
		for key, value := range seen {
			if key != "_meta" && !bytes.Equal(field(dressed, key), value) {
				t.Fatalf("%q has another %q than %q", dressed, key, raw)
			}
		}
	}
}

// No stream makes the reader hold more than the bound, and the same events come out
// whichever line ends are used.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("data: a\ndata: b\n\n: c\n\nevent: other\ndata: x\n\nid: 7\nretry: 10\ndata: {}\n\n"), 64)
	f.Add([]byte("data\n\ndata:\n\n"), 8)
	f.Add([]byte("data: a\r\r\ndata: b\n"), 8)
	f.Fuzz(func(t *testing.T, stream []byte, most int) {
		most = max(1, min(most, 1<<16))
		all := func(s []byte) (out []string) {
			e := newEventReader(bytes.NewReader(s), most)
			for {
				data, err := e.next()
				if err != nil {
					return out
				}
				if len(data) > most {
					t.Fatalf("%d bytes, and %d are taken", len(data), most)
				}
				out = append(out, string(data))
			}
		}
		got := all(stream)
		if bytes.IndexByte(stream, '\r') < 0 {
			crlf := all(bytes.ReplaceAll(stream, []byte("\n"), []byte("\r\n")))
			if len(crlf) <= len(got) { // a line may be over the bound by its longer end
				for i := range crlf {
					if crlf[i] != got[i] {
						t.Fatalf("event %d is %q, and with CRLF %q", i, got[i], crlf[i])
					}
				}
			} else {
				t.Fatalf("%d events, and with CRLF %d", len(got), len(crlf))
			}
		}
	})
}

// A definition of any bytes is refused, or is one that a catalog takes, with nothing
// hidden in it and no annotation of writ's.
func FuzzDefinition(f *testing.F) {
	f.Add([]byte(`{"name":"a.b","title":"t","description":"d\u200b","inputSchema":{"type":"object","properties":{"p":{"type":"string","x-writ-text":true,"$ref":"#/$defs/a"}},"$defs":{"a":{}}},"outputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"destructiveHint":false}}`))
	f.Add([]byte(`{"name":"x","inputSchema":{"type":"object","additionalProperties":false,"required":["a"],"properties":{"a":{"enum":["\u202e"]}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var o Offer
		o.tools([]json.RawMessage{raw})
		if len(o.Tools)+len(o.Refused) != 1 {
			t.Fatalf("%d tools, %d refused", len(o.Tools), len(o.Refused))
		}
		for _, r := range o.Refused {
			if strings.ContainsAny(r.Name+r.Why, "\x1b\n\u200b\u202e") {
				t.Fatalf("%q", r)
			}
		}
		for _, got := range o.Tools {
			d, err := Definition("srv", got, DefinitionOptions{})
			if err != nil {
				t.Fatal(err)
			}
			made, err := tool.New(d, nowhere)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(made.Canonical(), `"x-writ-`) || strings.ContainsAny(made.Canonical(), "\x1b\u200b\u202e\U000E0041") {
				t.Fatalf("%s", made.Canonical())
			}
			if d.Name != display.Line(d.Name) || !tool.ValidName(d.Name) {
				t.Fatalf("%q", d.Name)
			}
		}
	})
}
