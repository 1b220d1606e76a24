package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"
)

// longestLine is how long a line may be that is parsed.
const longestLine = 64 << 10

// Lines are JSON objects that something wrote, one a line.
type Lines struct {
	Parsed    []json.RawMessage // without the space between tokens
	Malformed int               // lines that are no object, or too long; skipped
	Left      int               // objects that came after there was no more room; skipped
}

// ReadLines reads lines until the end, and keeps at most so many bytes of them. Whatever
// happens it returns what it has read: a reader that fails in the middle of a line has one
// malformed line more, unless it fails at once.
func ReadLines(r io.Reader, most int64) (Lines, error) {
	var l Lines
	in := bufio.NewReaderSize(r, longestLine)
	for {
		line, err := in.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			l.Malformed++
			err = rest(in)
		} else if line = bytes.TrimSpace(line); len(line) > 0 {
			most = l.take(line, most)
		}
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err != nil {
			return l, err
		}
	}
}

// rest leaves out what is left of a line.
func rest(in *bufio.Reader) error {
	for {
		if _, err := in.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// take keeps a line that is an object, and returns how many bytes are left.
func (l *Lines) take(line []byte, most int64) int64 {
	var b bytes.Buffer
	if line[0] != '{' || !utf8.Valid(line) || json.Compact(&b, line) != nil {
		l.Malformed++
		return most
	}
	if int64(b.Len()) > most {
		l.Left++
		return 0
	}
	l.Parsed = append(l.Parsed, b.Bytes())
	return most - int64(b.Len())
}
