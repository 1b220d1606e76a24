// Package strict reads YAML that people write and programs obey: every key must
// be a field, every value of its field's type, no key may come twice, and nothing
// may look different from how it is read. Anchors, aliases, merges and tags are not
// taken. All errors of a file come at once, each with its line and the nearest valid
// spelling; the line of each key is kept, so that a decision can point at what it
// rests on. It does no I/O.
package strict

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/spell"
)

// File is one file being read, and what is said about it.
type File struct {
	Name string // of the file, for errors
	// What is a file of this kind, as in "a configuration".
	What string
	// Empty is what to do about a file without content.
	Empty string
	// NotBuilt names keys of the product that this version refuses, so that nobody
	// believes them to be in force.
	NotBuilt map[string]string

	lines   map[string]int // by dotted path
	errs    []problem
	decoded int // how many of errs are from before the values were checked
}

// problem is one thing wrong with the file. Line 0 is the file as a whole.
type problem struct {
	line       int
	path, text string
}

// Lines is the line of each key that was read, and of those still to be read: the
// map is the file's own.
func (f *File) Lines() map[string]int {
	if f.lines == nil {
		f.lines = map[string]int{}
	}
	return f.lines
}

// RejectAt adds an error about a line, which may have no key.
func (f *File) RejectAt(line int, key, format string, args ...any) {
	f.errs = append(f.errs, problem{line, key, fmt.Sprintf(format, args...)})
}

// Reject adds an error about a value that was read but does not hold. It is silent
// where reading the value failed already: what was checked is then not what was
// written. The key "" is the file as a whole.
func (f *File) Reject(key, format string, args ...any) {
	for _, e := range f.errs[:f.decoded] {
		if e.path != "" && Within(key, e.path) {
			return
		}
	}
	f.RejectAt(f.Line(key), key, format, args...)
}

// Unread reports whether something at or below a key could not be read.
func (f *File) Unread(key string) bool {
	return slices.ContainsFunc(f.errs[:f.decoded], func(e problem) bool { return Within(e.path, key) })
}

// Within reports whether a key is another or lies below it.
func Within(key, above string) bool {
	rest, ok := strings.CutPrefix(key, above)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// Line is where a key stands, or what it is missing from; 0 for the file.
func (f *File) Line(key string) int {
	for key != "" {
		if n, ok := f.lines[key]; ok {
			return n
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
	return 0
}

// Err is every error, one a line, in the order of the file; nil when there is none.
func (f *File) Err() error {
	slices.SortStableFunc(f.errs, func(a, b problem) int { return a.line - b.line })
	var out []error
	for _, e := range f.errs {
		where := f.Name
		if e.line > 0 {
			where += ":" + strconv.Itoa(e.line)
		}
		if e.path != "" {
			where += ": " + e.path
		}
		out = append(out, fmt.Errorf("%s: %s", where, e.text))
	}
	return errors.Join(out...)
}

// Member is the key of a name below another key. A name that could be read as
// several, or that would not show as it is, stands in quotes: agents."a.b".level is
// not the level of b.
func Member(key, name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-:", r)
	}
	if name == "" || strings.TrimFunc(name, plain) != "" {
		name = strconv.QuoteToASCII(name)
	}
	if key == "" {
		return name
	}
	return key + "." + name
}

// Hint is the nearest of the known words, or all of them.
func Hint(got string, known []string) string {
	if h := spell.Hint(got, known); h != "" {
		return h
	}
	if len(known) == 0 {
		return "; there are none"
	}
	return "; there are " + strings.Join(known, ", ")
}

// Describe adds the nearest valid spelling to an error about an unknown word.
func Describe(err error) string {
	var u *action.UnknownError
	if !errors.As(err, &u) {
		return err.Error()
	}
	if h := spell.Hint(u.Got, u.Known); h != "" {
		return u.Error() + h
	}
	if u.Form != "" {
		return u.Error() + "; write " + u.Form
	}
	return u.Error() + "; there are " + strings.Join(u.Known, ", ")
}
