package files

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/policy"
)

const (
	listLimit  = 1000
	matchLimit = 1000
	lineLimit  = 500
	visitLimit = 200_000 // entries looked at by one call
	maxDepth   = 128
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
	shown, more := 0, false
	err := walk(ctx, w, a.Recursive, func(_ fs.FS, name string, e fs.DirEntry) error {
		if a.Pattern != "" && !globMatch(a.Pattern, name) {
			return nil
		}
		if shown == listLimit {
			more = true
			return fs.SkipAll
		}
		shown++
		b.WriteString(entryLine(name, e))
		return nil
	})
	if err != nil {
		return result("", nil, err)
	}
	if shown == 0 {
		b.WriteString("(nothing)\n")
	}
	if more {
		fmt.Fprintf(&b, "[cut: the first %d entries; narrow it with path or pattern]\n", listLimit)
	}
	return result(b.String(), map[string]any{"entries": shown, "cut": more}, nil)
}

func entryLine(name string, e fs.DirEntry) string {
	info, err := e.Info()
	switch {
	case err != nil:
		return "ERROR    " + name + "\n"
	case e.IsDir():
		return "DIR      " + name + "/\n"
	case info.Mode()&fs.ModeSymlink != 0:
		return "SYMLINK  " + name + "\n"
	case !info.Mode().IsRegular():
		return fmt.Sprintf("%-8s %s\n", strings.ToUpper(kind(info)), name)
	}
	return fmt.Sprintf("FILE     %s (%d bytes)\n", name, info.Size())
}

// walk visits what lies below the directory of the call, in order, through no
// symlink.
func walk(ctx context.Context, w writ.Writ, recursive bool, visit func(fs.FS, string, fs.DirEntry) error) error {
	p, err := at(w, "/path", w.Confinement().Read)
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
	seen := 0
	tree := dir.FS()
	err = fs.WalkDir(tree, ".", func(name string, e fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if name == "." {
			return err
		}
		if err != nil {
			return nil // one unreadable directory does not hide the others
		}
		if seen++; seen > visitLimit {
			return failf("there are more than %d entries; narrow it with path", visitLimit)
		}
		if hidden(w, path.Join(p.full, name)) {
			return fs.SkipDir
		}
		if err := visit(tree, name, e); err != nil {
			return err
		}
		if e.IsDir() && !recursive {
			return fs.SkipDir
		}
		return nil
	})
	if _, ok := err.(failure); ok || err == nil || ctx.Err() != nil {
		return err
	}
	return cannot("list", p.path, err)
}

// hidden reports whether an entry met on the way is writ's own state: walking
// must not reach what naming it would not.
func hidden(w writ.Writ, full string) bool {
	return slices.ContainsFunc(w.Confinement().Hide, func(h string) bool { return policy.Below(full, h) })
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
	err = walk(ctx, w, true, func(tree fs.FS, name string, e fs.DirEntry) error {
		if e.IsDir() {
			if e.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		if !e.Type().IsRegular() || policy.Secret(name) != "" || a.Glob != "" && !globMatch(a.Glob, name) {
			return nil
		}
		return s.file(tree, name)
	})
	if err != nil {
		return result("", nil, err)
	}
	return result(s.text(), map[string]any{"matches": s.count, "files": s.files, "cut": s.cut}, nil)
}

type search struct {
	re           *regexp.Regexp
	out          strings.Builder
	count, files int
	cut          bool
}

func (s *search) file(tree fs.FS, name string) error {
	f, err := tree.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > writeLimit {
		return nil
	}
	s.files++
	r := bufio.NewReaderSize(f, 64<<10)
	if head, _ := r.Peek(8000); bytes.IndexByte(head, 0) >= 0 {
		return nil
	}
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 1<<20)
	for n := 1; scan.Scan(); n++ {
		if !s.re.Match(scan.Bytes()) {
			continue
		}
		if s.count == matchLimit || s.out.Len() > readLimit {
			s.cut = true
			return fs.SkipAll
		}
		s.count++
		fmt.Fprintf(&s.out, "%s:%d: %s\n", name, n, clip(scan.Text()))
	}
	return nil
}

func clip(line string) string {
	if len(line) <= lineLimit {
		return strings.ToValidUTF8(line, "\uFFFD")
	}
	return strings.ToValidUTF8(line[:lineLimit], "\uFFFD") + fmt.Sprintf(" [cut: %d bytes]", len(line))
}

func (s *search) text() string {
	if s.count == 0 {
		return fmt.Sprintf("(no match in %d files)\n", s.files)
	}
	if s.cut {
		fmt.Fprintf(&s.out, "[cut: the first %d matches; narrow it with path, glob or pattern]\n", s.count)
	}
	return s.out.String()
}

func relativeGlob(what, g string) error {
	if g == "" {
		return nil
	}
	if !doublestar.ValidatePattern(g) {
		return failf("%s %q is malformed", what, g)
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
