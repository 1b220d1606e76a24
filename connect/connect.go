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

// StateVariable is the environment variable that says where writ's state is, where its
// configuration does not. Clients do not pass theirs on.
const StateVariable = "XDG_STATE_HOME"

// Server is how a client reaches writ: a command that it starts, or a URL with the
// token of TokenVariable. The zero value reaches nothing and is refused.
type Server struct {
	Command string
	Args    []string
	State   string // StateVariable of the command; "": it is not set
	URL     string
}

func (s Server) check() error {
	if (s.Command == "") == (s.URL == "") {
		return fmt.Errorf("a server is a command or a URL")
	}
	if s.URL != "" && s.State != "" {
		return fmt.Errorf("a URL has no environment")
	}
	for _, text := range append([]string{s.Command, s.URL, s.State}, s.Args...) {
		if !utf8.ValidString(text) {
			return fmt.Errorf("%q is not UTF-8, and a configuration cannot name it; move it to a path that is", text)
		}
		if strings.Contains(text, "${") {
			return fmt.Errorf("%q has \"${\", which clients replace; move it to a path without", text)
		}
	}
	return nil
}

// env is the environment that a client gives the command beside its own.
func (s Server) env() map[string]string {
	if s.State == "" {
		return map[string]string{}
	}
	return map[string]string{StateVariable: s.State}
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
	return f.ours() && f.Command == s.Command && f.URL == s.URL && f.State == s.State && slices.Equal(f.Args, s.Args)
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
