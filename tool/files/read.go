package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/writ-run/writ"
)

const (
	readLimit  = 1 << 20  // bytes shown of a file
	writeLimit = 10 << 20 // bytes written to a file, and the largest file edited
)

type readArgs struct {
	Path  string `json:"path"`
	Start int    `json:"start_line"`
	End   int    `json:"end_line"`
}

func readFile(_ context.Context, w writ.Writ) (writ.Result, error) {
	var a readArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	if a.End != 0 && a.Start > a.End {
		return result("", nil, failf("start_line %d is after end_line %d", a.Start, a.End))
	}
	p, err := at(w, "/path", w.Confinement().Read)
	if err != nil {
		return result("", nil, err)
	}
	defer p.close()
	f, info, err := p.regular()
	if err != nil {
		return result("", nil, cannot("read", p.path, err))
	}
	defer f.Close()
	text, note, err := readText(f, info.Size(), a)
	if err != nil {
		return result("", nil, cannot("read", p.path, err))
	}
	return result(text+note, map[string]any{"bytes": info.Size(), "cut": note != ""}, nil)
}

// readText gives the file, or the lines asked for, up to the limit.
func readText(f io.Reader, size int64, a readArgs) (text, note string, err error) {
	if a.Start == 0 && a.End == 0 {
		b, err := io.ReadAll(io.LimitReader(f, readLimit+1))
		if err != nil {
			return "", "", err
		}
		if len(b) > readLimit {
			b = cutRune(b[:readLimit])
			note = fmt.Sprintf("\n[cut: the first %d of %d bytes; read the rest with start_line and end_line]", len(b), size)
		}
		return string(b), note, isText(b)
	}
	return readLines(f, max(a.Start, 1), a.End)
}

// scanLimit bounds how far a range is looked for.
const scanLimit = 256 << 20

func readLines(f io.Reader, start, end int) (text, note string, err error) {
	var out bytes.Buffer
	buf := make([]byte, 64<<10)
	line, seen := 1, 0
	whole := true // the last line read had its end
	for {
		n, err := f.Read(buf)
		chunk := buf[:n]
		seen += n
		for len(chunk) > 0 && (end == 0 || line <= end) {
			i := bytes.IndexByte(chunk, '\n') + 1
			if i == 0 {
				i = len(chunk)
			}
			if line >= start {
				out.Write(chunk[:i])
			}
			if whole = chunk[i-1] == '\n'; whole {
				line++
			}
			chunk = chunk[i:]
			if out.Len() > readLimit {
				b := cutRune(out.Bytes()[:readLimit])
				return string(b), fmt.Sprintf("\n[cut: %d bytes shown, up to line %d; ask for fewer lines]", len(b), line), isText(b)
			}
		}
		if err == io.EOF || end != 0 && line > end {
			break
		}
		if err != nil {
			return "", "", err
		}
		if seen > scanLimit {
			return "", "", fmt.Errorf("line %d was not reached within %d bytes", start, scanLimit)
		}
	}
	if whole {
		line-- // nothing came after the last end of line
	}
	if line < start && start > 1 {
		return "", "", fmt.Errorf("it has %d lines, so there is no line %d", line, start)
	}
	return out.String(), "", isText(out.Bytes())
}

// cutRune drops a character that the cut left half.
func cutRune(b []byte) []byte {
	for i := 0; i < utf8.UTFMax && len(b) > 0; i++ {
		if r, n := utf8.DecodeLastRune(b); r != utf8.RuneError || n > 1 {
			return b
		}
		b = b[:len(b)-1]
	}
	return b
}

func isText(b []byte) error {
	if bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 {
		return fmt.Errorf("it is a binary file")
	}
	if !utf8.Valid(b) {
		return fmt.Errorf("it is not UTF-8 text")
	}
	return nil
}

func stat(_ context.Context, w writ.Writ) (writ.Result, error) {
	p, err := at(w, "/path", w.Confinement().Read)
	if err != nil {
		return result("", nil, err)
	}
	defer p.close()
	info, err := p.dir.Lstat(p.name)
	if err != nil {
		return result("", nil, cannot("stat", p.path, err))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "type: %s\nsize: %d\nmode: %04o\nmodified: %s\n", kind(info), info.Size(), info.Mode().Perm(), info.ModTime().UTC().Format(time.RFC3339))
	return result(b.String(), nil, nil)
}
