// Package files is the file_system family: tools that read and change files in
// the daemon's own process. They hold a file by its directory's descriptor
// (os.Root), never by comparing strings, and go exactly where the call was
// resolved to: a symlink that appeared since is refused, not followed.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/policy"
)

// place is a file by the open directory that holds it.
type place struct {
	dir  *os.Root
	name string // one element; "." for the directory itself
	full string // where that is, resolved
	path string // as the caller wrote it, for messages
}

func (p place) close() { p.dir.Close() }

// at opens the place that an argument was resolved to. roots are those of the
// writ's confinement that the operation may use.
func at(w writ.Writ, pointer string, roots []string) (place, error) {
	t, root, err := reach(w, pointer, roots)
	if err != nil {
		return place{}, err
	}
	dir, err := openRoot(root)
	if err != nil {
		return place{}, cannot("open", t.Value, err)
	}
	parts := between(root, t.Path)
	for _, part := range parts[:len(parts)-1] {
		next, err := step(dir, part)
		dir.Close()
		if err != nil {
			return place{}, cannot("open", t.Value, err)
		}
		dir = next
	}
	if err := ordinary(dir); err != nil {
		dir.Close()
		return place{}, cannot("open", t.Value, err)
	}
	return place{dir, parts[len(parts)-1], t.Path, t.Value}, nil
}

// reach finds the target of an argument and the root to walk to it from. An
// optional argument that was left out means the working directory. What is not
// resolved, not below a root, or hidden is denied here whatever was decided.
func reach(w writ.Writ, pointer string, roots []string) (writ.Target, string, error) {
	t := writ.Target{Value: ".", Path: w.Call().Dir}
	for _, named := range w.Call().Targets {
		if named.Pointer == pointer && named.Kind == writ.TargetPath {
			t = named
			break
		}
	}
	root := ""
	if t.Problem == "" && filepath.IsAbs(t.Path) && filepath.Clean(t.Path) == t.Path && !hidden(w, t.Path) {
		root = holding(t.Path, roots)
	}
	if root == "" {
		return t, "", writ.Fail(writ.Denied, fmt.Sprintf("%q is outside what this call may reach", t.Value), nil)
	}
	return t, root, nil
}

// holding is the longest root that path lies below, or "". A root that is not a
// directory (one file, or one not there yet) is held by its directory.
func holding(path string, roots []string) string {
	best := ""
	for _, r := range roots {
		if policy.Below(path, r) && len(r) > len(best) {
			best = r
		}
	}
	if best != path || best == "" {
		return best
	}
	if info, err := os.Lstat(best); err != nil || !info.IsDir() {
		return filepath.Dir(best)
	}
	return best
}

// between is the way from a root down to a path below it; "." for the root itself.
func between(root, path string) []string {
	if root == path {
		return []string{"."}
	}
	return strings.Split(strings.TrimPrefix(strings.TrimPrefix(path, root), "/"), "/")
}

// openRoot opens a root of the confinement. Roots have no symlinks; one that has
// come into the way since would lead to a place that nobody decided about, so
// what was opened is held against what is reached without following any.
func openRoot(path string) (*os.Root, error) {
	dir, err := os.OpenRoot(path)
	if err != nil {
		return nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil {
		var straight fs.FileInfo
		if straight, err = direct(path); err == nil && !os.SameFile(opened, straight) {
			err = errMoved
		}
	}
	if err != nil {
		dir.Close()
		return nil, err
	}
	return dir, nil
}

// ordinary refuses the kernel's own filesystems: in /proc the daemon's environment
// and memory are files (I7), and some files of the kernel never end.
func ordinary(dir *os.Root) error {
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	if kernelOwned(d) {
		return errKernel
	}
	return nil
}

var errKernel = errors.New("it is the kernel's and not a file")

// hidden reports whether a path is out of reach whatever the roots say, as writ's
// own state is: walking must not reach what naming it would not.
func hidden(w writ.Writ, full string) bool {
	return slices.ContainsFunc(w.Confinement().Hide, func(h string) bool { return policy.Below(full, h) })
}

// holdsHidden reports whether something hidden lies below a path and would move
// with it.
func holdsHidden(w writ.Writ, full string) bool {
	return slices.ContainsFunc(w.Confinement().Hide, func(h string) bool { return policy.Below(h, full) })
}

// step opens a subdirectory that is one: if a symlink took its place between
// looking and opening, what was opened is not what was looked at.
func step(dir *os.Root, name string) (*os.Root, error) {
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !before.IsDir() {
		return nil, errMoved
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	after, err := next.Stat(".")
	if err != nil || !os.SameFile(before, after) {
		next.Close()
		return nil, errMoved
	}
	return next, nil
}

var errMoved = errors.New("a directory on the way changed while the call was made")

// regular opens a regular file for reading, without waiting for whoever writes
// into a pipe and without following a symlink that took its place.
func (p place) regular() (*os.File, fs.FileInfo, error) {
	before, err := p.dir.Lstat(p.name)
	if err != nil {
		return nil, nil, err
	}
	if before.IsDir() {
		return nil, nil, errors.New("it is a directory; use list_directory")
	}
	if !before.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("it is not a regular file (%s)", kind(before))
	}
	f, err := p.dir.OpenFile(p.name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, err
	}
	after, err := f.Stat()
	if err != nil || !os.SameFile(before, after) {
		f.Close()
		return nil, nil, errMoved
	}
	return f, after, nil
}

func kind(info fs.FileInfo) string {
	switch m := info.Mode(); {
	case m.IsDir():
		return "directory"
	case m.IsRegular():
		return "file"
	case m&fs.ModeSymlink != 0:
		return "symlink"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return "other"
}

// cannot is an error of the filesystem as the model may read it: what, and why,
// without the directories above the workspace.
func cannot(what, shown string, err error) error {
	var denied *writ.Error
	if errors.As(err, &denied) {
		return denied // which says so itself
	}
	why := err
	var pe *fs.PathError
	if errors.As(err, &pe) {
		why = pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		why = le.Err
	}
	return failure{fmt.Sprintf("cannot %s %q: %v", what, shown, why)}
}

// shown is a name as it stands in a list: one that could break the line, hide in
// it or pass for another is quoted.
func shown(name string) string {
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if strings.ContainsFunc(name, odd) || !utf8.ValidString(name) || strings.TrimSpace(name) != name || strings.HasPrefix(name, `"`) {
		return strconv.Quote(name)
	}
	return name
}

// failure is an error the model can act on: a result, not an error of the gate.
type failure struct{ text string }

func (f failure) Error() string { return f.text }

func failf(format string, args ...any) error { return failure{fmt.Sprintf(format, args...)} }

// result turns what a tool returned into its result.
func result(text string, meta map[string]any, err error) (writ.Result, error) {
	var f failure
	if errors.As(err, &f) {
		return writ.Result{Content: f.text, IsError: true}, nil
	}
	if err != nil {
		return writ.Result{}, err
	}
	return writ.Result{Content: text, Metadata: meta}, nil
}
