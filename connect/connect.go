// Package connect edits the configuration of MCP clients, so that they start writ as
// the server "writ". The editing takes bytes and gives bytes: an entry is spliced in or
// out, and everything else in the file stays as it was, byte for byte. What cannot be
// edited so is refused with its line. The file part shows nothing and asks nothing: it
// backs up, replaces atomically, and refuses a file that changed since it was read.
package connect

import (
	"bytes"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// Name is what the server is called in every client.
const Name = "writ"

// TokenVariable is the environment variable that holds an agent's token.
const TokenVariable = "WRIT_TOKEN"

// Server is how a client reaches writ: a command that it starts, or a URL with the
// token of TokenVariable. The zero value reaches nothing and is refused.
type Server struct {
	Command string
	Args    []string
	URL     string
}

func (s Server) check() error {
	if (s.Command == "") == (s.URL == "") {
		return fmt.Errorf("a server is a command or a URL")
	}
	for _, text := range append([]string{s.Command, s.URL}, s.Args...) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is not UTF-8, and a configuration cannot name it; move it to a path that is", text)
		}
		if strings.Contains(text, "${") {
			return fmt.Errorf("%q has \"${\", which clients replace; move it to a path without", text)
		}
	}
	return nil
}

// Found is the entry that a file has under Name.
type Found struct {
	Server
	Token string   // where an entry with a URL takes its token from, as it is written
	Text  string   // the entry as it stands in the file
	Also  []string // keys of it that are not ours: kept by an update, worth a look
	Line  int

	fields map[string]span // of Server's values, where each is written once
	at     any             // the editor's own
}

// ours tells an entry that connect wrote, perhaps for another agent or from another
// directory, from one that happens to have our name. It only decides whether replacing
// it takes a word more: everything is shown either way.
func (f *Found) ours() bool {
	if f.URL != "" {
		return strings.HasSuffix(f.URL, "/mcp") && strings.Contains(f.Token, TokenVariable)
	}
	base := path.Base(strings.ReplaceAll(f.Command, `\`, "/"))
	return strings.TrimSuffix(base, ".exe") == "writ" && len(f.Args) > 0 && f.Args[0] == "mcp"
}

func (f *Found) is(s Server) bool {
	return f.ours() && f.Command == s.Command && f.URL == s.URL && slices.Equal(f.Args, s.Args)
}

// span is part of a file: from the byte at start to before the one at end.
type span struct{ start, end int }

func (s span) of(data []byte) string { return string(data[s.start:s.end]) }

// Language is that of a configuration file, with the place of the entry in it.
type Language interface {
	// find is the entry, or nil. It refuses what the others cannot edit.
	find(data []byte) (*Found, error)
	// add puts an entry where there is none; nil data is no file yet.
	add(data []byte, s Server) ([]byte, error)
	// instead is a string or a list as it is written in the place of an old value.
	instead(data []byte, old span, v any) string
	// swap replaces the whole entry.
	swap(data []byte, f *Found, s Server) ([]byte, error)
	// cut takes the entry out.
	cut(data []byte, f *Found) ([]byte, error)
}

// What is done to a file.
const (
	Added     = "added"
	Replaced  = "replaced"
	Unchanged = "unchanged"
	Removed   = "removed"
)

// Change is what is to be done to a file, and what it comes to. After is nil where the
// file is to be removed.
type Change struct {
	Action string
	After  []byte
	Was    *Found // the entry before; nil if there was none
}

// Foreign is an entry under our name that connect did not write.
type Foreign struct{ *Found }

func (e *Foreign) Error() string {
	return fmt.Sprintf("line %d has an entry %q that is not of this program", e.Line, Name)
}

// Connect says what makes data name s. An entry of ours keeps the keys that somebody
// added to it; a foreign one is a *Foreign error unless it is to be replaced.
func Connect(l Language, data []byte, s Server, replace bool) (Change, error) {
	if err := s.check(); err != nil {
		return Change{}, err
	}
	f, err := find(l, data)
	switch {
	case err != nil:
		return Change{}, err
	case f == nil:
		after, err := l.add(data, s)
		return Change{Added, after, nil}, err
	case f.is(s):
		return Change{Unchanged, data, f}, nil
	case f.ours() && f.URL == "" && s.URL == "":
		return Change{Replaced, update(l, data, f, map[string]any{"command": s.Command, "args": s.Args}), f}, nil
	case f.ours() && f.URL != "" && s.URL != "":
		return Change{Replaced, update(l, data, f, map[string]any{"url": s.URL}), f}, nil
	case !f.ours() && !replace:
		return Change{}, &Foreign{f}
	}
	after, err := l.swap(data, f, s)
	return Change{Replaced, after, f}, err
}

// update replaces values of an entry in place, the last first so that spans stay good.
func update(l Language, data []byte, f *Found, values map[string]any) []byte {
	keys := make([]string, 0, len(values))
	for k := range values {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b string) int { return f.fields[b].start - f.fields[a].start })
	for _, k := range keys {
		data = splice(data, f.fields[k], l.instead(data, f.fields[k], values[k]))
	}
	return data
}

// Disconnect says what takes the entry out. earlier are backups of the file: one that
// becomes data when the entry is added to it is exactly what was there before. Where
// each has an entry of ours, a file that holds nothing else was made by Connect, and goes.
func Disconnect(l Language, data []byte, earlier [][]byte, force bool) (Change, error) {
	f, err := find(l, data)
	switch {
	case err != nil:
		return Change{}, err
	case f == nil:
		return Change{Unchanged, data, nil}, nil
	case !f.ours() && !force:
		return Change{}, &Foreign{f}
	}
	if len(f.Also) == 0 {
		existed := false
		for _, before := range earlier {
			there, err := find(l, before)
			if err == nil && there != nil && there.ours() {
				continue // as it was under an earlier Connect
			}
			existed = true
			if err != nil || there != nil {
				continue
			}
			if again, err := l.add(before, f.Server); err == nil && bytes.Equal(again, data) {
				return Change{Removed, before, f}, nil
			}
		}
		if fresh, err := l.add(nil, f.Server); err == nil && bytes.Equal(fresh, data) && !existed {
			return Change{Removed, nil, f}, nil
		}
	}
	after, err := l.cut(data, f)
	return Change{Removed, after, f}, err
}

func find(l Language, data []byte) (*Found, error) {
	if data == nil {
		return nil, nil
	}
	if !utf8.Valid(data) {
		return nil, lineError(data, firstInvalid(data), "is not UTF-8; correct it, then run this again")
	}
	return l.find(data)
}

func firstInvalid(data []byte) int {
	for i := 0; i < len(data); {
		r, n := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return len(data)
}

// BadLine is a place of a file that cannot be edited, and why.
type BadLine struct {
	Line int
	Why  string
}

func (e *BadLine) Error() string { return fmt.Sprintf("line %d %s", e.Line, e.Why) }

func lineError(data []byte, offset int, format string, args ...any) error {
	return &BadLine{lineOf(data, offset), fmt.Sprintf(format, args...)}
}

func lineOf(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(max(offset, 0), len(data))], []byte("\n"))
}

func splice(data []byte, s span, with string) []byte {
	out := make([]byte, 0, len(data)+len(with))
	return append(append(append(out, data[:s.start]...), with...), data[s.end:]...)
}

// lineEnd is how the file ends its lines.
func lineEnd(data []byte) string {
	if i := bytes.IndexByte(data, '\n'); i > 0 && data[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

var bom = []byte("\xef\xbb\xbf")
