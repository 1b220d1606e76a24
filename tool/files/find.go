package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/policy"
)

const (
	listLimit  = 1000
	matchLimit = 1000
	lineLimit  = 500
	visitLimit = 200_000 // entries looked at by one call
	maxDepth   = 128     // directories entered below one another, each an open descriptor
)

type listArgs struct {
	Path      string `json:"path"`
	Pattern   string `json:"pattern"`
	Recursive bool   `json:"recursive"`
}

func listDirectory(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a listArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	if err := relativeGlob("pattern", a.Pattern); err != nil {
		return result("", nil, err)
	}
	var b strings.Builder
	count, more := 0, false
	k := &walker{w: w, recursive: a.Recursive, visit: func(dir *os.Root, name string, e fs.DirEntry) error {
		if a.Pattern != "" && !globMatch(a.Pattern, name) {
			return nil
		}
		if count == listLimit {
			more = true
			return fs.SkipAll
		}
		count++
		b.WriteString(entryLine(dir, name, e))
		return nil
	}}
	if err := k.walk(ctx); err != nil {
		return result("", nil, err)
	}
	if count == 0 {
		b.WriteString("(nothing)\n")
	}
	if more {
		fmt.Fprintf(&b, "[cut: the first %d entries; narrow it with path or pattern]\n", listLimit)
	}
	b.WriteString(k.notes())
	return result(b.String(), map[string]any{"entries": count, "cut": more}, nil)
}

func entryLine(dir *os.Root, name string, e fs.DirEntry) string {
	info, err := dir.Lstat(e.Name())
	switch {
	case err != nil:
		return "ERROR    " + shown(name) + "\n"
	case info.IsDir():
		return "DIR      " + shown(name) + "/\n"
	case !info.Mode().IsRegular():
		return fmt.Sprintf("%-8s %s\n", strings.ToUpper(kind(info)), shown(name))
	}
	return fmt.Sprintf("FILE     %s (%d bytes)\n", shown(name), info.Size())
}

// walker visits what lies below the directory of a call, in the order of names.
// It goes down by descriptor, one checked step at a time, and not by path: a
// directory that becomes a symlink meanwhile could lead, inside the same root, to
// what is hidden or secret under another name.
type walker struct {
	w         writ.Writ
	recursive bool
	// visit is told the open directory and the name below the start. SkipDir
	// keeps the walk out of a directory, SkipAll ends it.
	visit func(dir *os.Root, name string, e fs.DirEntry) error

	seen         int
	unread, deep int // directories that were not entered
}

func (k *walker) walk(ctx context.Context) error {
	p, err := at(k.w, "/path", k.w.Confinement().Read)
	if err != nil {
		return err
	}
	defer p.close()
	dir := p.dir
	if p.name != "." {
		if dir, err = step(p.dir, p.name); err != nil {
			if err == errMoved {
				return failf("%q is not a directory", p.path)
			}
			return cannot("list", p.path, err)
		}
		defer dir.Close()
	}
	entries, err := k.entries(dir)
	if err == nil {
		err = k.each(ctx, dir, entries, p.full, "", 1)
	}
	var f failure
	if err == nil || err == fs.SkipAll {
		return nil
	}
	if errors.As(err, &f) || ctx.Err() != nil {
		return err
	}
	return cannot("list", p.path, err)
}

func (k *walker) each(ctx context.Context, dir *os.Root, entries []fs.DirEntry, full, below string, depth int) error {
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		name, whole := path.Join(below, e.Name()), path.Join(full, e.Name())
		if hidden(k.w, whole) {
			continue
		}
		err := k.visit(dir, name, e)
		if err == fs.SkipDir || err == nil && (!e.IsDir() || !k.recursive) {
			continue
		}
		if err != nil {
			return err
		}
		if depth == maxDepth {
			k.deep++
			continue
		}
		if err := k.enter(ctx, dir, e.Name(), whole, name, depth); err != nil {
			return err
		}
	}
	return nil
}

// enter goes into one directory. One that cannot be read does not hide the others.
func (k *walker) enter(ctx context.Context, dir *os.Root, name, full, below string, depth int) error {
	next, err := step(dir, name)
	if err != nil {
		k.unread++
		return nil
	}
	defer next.Close()
	entries, err := k.entries(next)
	var f failure
	if errors.As(err, &f) {
		return err
	}
	if err != nil {
		k.unread++
		return nil
	}
	return k.each(ctx, next, entries, full, below, depth+1)
}

// entries reads a directory, in order, and no more of it than may be visited.
func (k *walker) entries(dir *os.Root) ([]fs.DirEntry, error) {
	d, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer d.Close()
	if kernelOwned(d) {
		return nil, errKernel
	}
	var out []fs.DirEntry
	for {
		some, err := d.ReadDir(4096)
		out = append(out, some...)
		if k.seen+len(out) > visitLimit {
			return nil, failf("there are more than %d entries; narrow it with path", visitLimit)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	k.seen += len(out)
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// notes says what was left out: silence would read as "there is nothing".
func (k *walker) notes() string {
	var b strings.Builder
	if k.unread > 0 {
		fmt.Fprintf(&b, "[not entered: %d directories that cannot be read]\n", k.unread)
	}
	if k.deep > 0 {
		fmt.Fprintf(&b, "[not entered: %d directories deeper than %d levels]\n", k.deep, maxDepth)
	}
	return b.String()
}

type searchArgs struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Glob    string `json:"glob"`
	Ignore  bool   `json:"ignore_case"`
}

func searchFiles(ctx context.Context, w writ.Writ) (writ.Result, error) {
	var a searchArgs
	if err := decode(w, &a); err != nil {
		return writ.Result{}, err
	}
	expr := a.Pattern
	if a.Ignore {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return result("", nil, failf("pattern is not a regular expression (RE2): %v", err))
	}
	if err := relativeGlob("glob", a.Glob); err != nil {
		return result("", nil, err)
	}
	s := &search{re: re}
	k := &walker{w: w, recursive: true}
	k.visit = func(dir *os.Root, name string, e fs.DirEntry) error {
		if e.IsDir() {
			if e.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() || policy.Secret(name) != "" || a.Glob != "" && !globMatch(a.Glob, name) {
			return nil
		}
		return s.file(place{dir: dir, name: e.Name()}, name)
	}
	if err := k.walk(ctx); err != nil {
		return result("", nil, err)
	}
	return result(s.text()+k.notes(), map[string]any{"matches": s.count, "files": s.files, "cut": s.cut}, nil)
}

type search struct {
	re            *regexp.Regexp
	out           strings.Builder
	count, files  int
	large, unread int // files that were not searched
	cut           bool
}

func (s *search) file(p place, name string) error {
	f, info, err := p.regular()
	if err != nil {
		s.unread++
		return nil
	}
	defer f.Close()
	if info.Size() > writeLimit {
		s.large++
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, writeLimit))
	if err != nil {
		s.unread++
		return nil
	}
	if bytes.IndexByte(text[:min(len(text), 8000)], 0) >= 0 {
		return nil
	}
	s.files++
	shown := shown(name)
	if strings.Contains(name, ":") && shown == name {
		shown = strconv.Quote(name) // or it could pass for a match in another file
	}
	n := 0
	for line := range bytes.Lines(text) {
		n++
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
		if !s.re.Match(line) {
			continue
		}
		if s.count == matchLimit || s.out.Len() > readLimit {
			s.cut = true
			return fs.SkipAll
		}
		s.count++
		fmt.Fprintf(&s.out, "%s:%d: %s\n", shown, n, clip(line))
	}
	return nil
}

// clip is a line as it stands among others: not too long, and with nothing in it
// that could pass for the end of one.
func clip(line []byte) string {
	cut := ""
	if len(line) > lineLimit {
		cut = fmt.Sprintf(" [cut: %d bytes]", len(line))
		line = line[:lineLimit]
	}
	return strings.Map(oneLine, strings.ToValidUTF8(string(line), "\uFFFD")) + cut
}

func oneLine(r rune) rune {
	if r != '\t' && unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
		return '\uFFFD'
	}
	return r
}

func (s *search) text() string {
	if s.count == 0 {
		fmt.Fprintf(&s.out, "(no match in %d files)\n", s.files)
	}
	if s.cut {
		fmt.Fprintf(&s.out, "[cut: the first %d matches; narrow it with path, glob or pattern]\n", s.count)
	}
	if s.large > 0 {
		fmt.Fprintf(&s.out, "[not searched: %d files larger than %d bytes]\n", s.large, writeLimit)
	}
	if s.unread > 0 {
		fmt.Fprintf(&s.out, "[not searched: %d files that cannot be read]\n", s.unread)
	}
	return s.out.String()
}

func relativeGlob(what, g string) error {
	if g == "" {
		return nil
	}
	if err := policy.CheckGlob(g); err != nil {
		return failf("%s %q: %v", what, g, err)
	}
	if strings.HasPrefix(g, "/") || strings.Contains("/"+g+"/", "/../") {
		return failf("%s %q must be relative to path and stay below it", what, g)
	}
	return nil
}

// globMatch matches the whole name, or its last element when the glob has no slash.
func globMatch(glob, name string) bool {
	if !strings.Contains(glob, "/") {
		name = path.Base(name)
	}
	ok, _ := doublestar.Match(glob, name)
	return ok
}
