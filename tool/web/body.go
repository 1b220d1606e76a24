package web

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/writ-run/writ/display"
)

// mostBody is how many bytes of an answer are read, unpacked: what is compressed is
// counted by what it comes to.
const mostBody = 1 << 20

// body is what was read of an answer.
type body struct {
	bytes []byte
	cut   bool   // there was more
	kind  string // its media type, lower case; empty: it says none
	whole string // the header that says it
	coded string // how it is compressed, where that was not undone
}

func bodyOf(resp *http.Response) (body, error) {
	b := body{whole: resp.Header.Get("Content-Type"), coded: strings.ToLower(resp.Header.Get("Content-Encoding"))}
	b.kind, _, _ = mime.ParseMediaType(b.whole)
	if b.coded == "identity" {
		b.coded = ""
	}
	var err error
	b.bytes, err = io.ReadAll(io.LimitReader(resp.Body, mostBody+1))
	if len(b.bytes) > mostBody {
		b.bytes, b.cut = b.bytes[:mostBody], true
	}
	return b, err
}

// says is what a body is said to be.
func (b body) says() string {
	if b.kind == "" {
		return "of no stated type"
	}
	return display.Preview(b.kind, 100)
}

// text is the body as UTF-8; false where it is none.
func (b body) text() (string, bool) {
	if b.coded != "" || !b.isText() {
		return "", false
	}
	out := b.kept()
	// What says nothing for certain and is UTF-8 is UTF-8.
	if enc, _, certain := charset.DetermineEncoding(out[:min(len(out), 1024)], b.whole); certain || !utf8.Valid(out) {
		decoded, err := enc.NewDecoder().Bytes(out)
		if err != nil {
			return "", false
		}
		out = decoded
	}
	out = bytes.TrimPrefix(out, []byte("\ufeff"))
	return strings.ReplaceAll(strings.ToValidUTF8(string(out), "\ufffd"), "\r\n", "\n"), true
}

// kept is the bytes without a character that the cut left half.
func (b body) kept() []byte {
	if b.cut {
		return trimRune(b.bytes)
	}
	return b.bytes
}

// isText goes by the type, and where that says nothing by what is there.
func (b body) isText() bool {
	switch major, minor, _ := strings.Cut(b.kind, "/"); {
	case major == "text":
		return !b.odd()
	case major == "application" && textual(minor), strings.HasSuffix(minor, "+json"), strings.HasSuffix(minor, "+xml"):
		return !b.odd()
	case b.kind == "", b.kind == "application/octet-stream":
		return bytes.IndexByte(b.bytes, 0) < 0 && utf8.Valid(b.kept())
	}
	return false
}

func textual(minor string) bool {
	switch minor {
	case "json", "xml", "javascript", "ecmascript", "x-javascript", "yaml", "x-yaml", "toml", "graphql", "sql", "x-www-form-urlencoded", "x-ndjson", "jsonl", "ld+json":
		return true
	}
	return false
}

// odd reports what no text of a stated text type has: NUL bytes, but in UTF-16, which
// says so at its beginning or in the type.
func (b body) odd() bool {
	wide := bytes.HasPrefix(b.bytes, []byte{0xff, 0xfe}) || bytes.HasPrefix(b.bytes, []byte{0xfe, 0xff}) || strings.Contains(strings.ToLower(b.whole), "utf-16")
	return !wide && bytes.IndexByte(b.bytes[:min(len(b.bytes), 8000)], 0) >= 0
}

// trimRune drops a character that a cut left half.
func trimRune(b []byte) []byte {
	for i := 1; i <= utf8.UTFMax && i <= len(b); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}

// notText says what came instead of text.
func (b body) notText() string {
	more := ""
	if b.cut {
		more = "more than "
	}
	if b.coded != "" {
		return fmt.Sprintf("[%s%d bytes, compressed as %s, which was not asked for and is not unpacked; not shown]", more, len(b.bytes), display.Preview(b.coded, 40))
	}
	return fmt.Sprintf("[binary: %s%d bytes, %s; not shown. shell_command with hosts can fetch a file into the workspace]", more, len(b.bytes), b.says())
}

// cutNotice is what is said where more was there than is read.
const cutNotice = "[cut: the first 1048576 bytes; ask for less at a time]"
