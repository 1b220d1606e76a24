package strict

import (
	"bytes"
	"strings"
)

// Split separates the front matter of a Markdown file, which stands between its
// first line and the next line of ---, from the body. Line n of front is line n of
// the file; bodyLine is the line of the body's first. Reading front is the caller's;
// that there is any, and that the whole file shows as it is read, is checked here.
func (f *File) Split(text []byte) (front []byte, body string, bodyLine int, ok bool) {
	if !f.readable(text) {
		return nil, "", 0, false
	}
	lines := strings.SplitAfter(string(text), "\n")
	if !isFence(lines[0]) {
		f.RejectAt(1, "", "there is no front matter; begin the file with a line of ---, then the keys, then a line of ---")
		return nil, "", 0, false
	}
	for i, line := range lines[1:] {
		if isFence(line) {
			front := strings.Join(lines[1:i+1], "")
			return []byte("\n" + front), strings.Join(lines[i+2:], ""), i + 3, true
		}
	}
	f.RejectAt(1, "", "the front matter has no end; close it with a line of ---")
	return nil, "", 0, false
}

func isFence(line string) bool { return strings.TrimRight(line, "\r\n") == "---" }

// readable refuses a text that is too large, or that would look different from how
// it is read.
func (f *File) readable(text []byte) bool {
	if len(text) > MaxBytes {
		f.RejectAt(0, "", "the file has %d bytes; at most %d are read", len(text), MaxBytes)
		return false
	}
	if n := bytes.Count(text, []byte("\n")); n > MaxLines {
		f.RejectAt(0, "", "the file has %d lines; at most %d are read", n, MaxLines)
		return false
	}
	line, what := badText(text)
	if what != "" {
		f.RejectAt(line, "", "%s", what)
	}
	return what == ""
}
