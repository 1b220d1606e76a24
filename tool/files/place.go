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
	"strings"

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
	for _, t := range w.Call().Targets {
		if t.Pointer == pointer && t.Kind == writ.TargetPath {
			return open(t.Path, t.Value, roots)
		}
	}
	// An optional argument that was left out means the working directory.
	return open(w.Call().Dir, ".", roots)
}

// open walks from the smallest root that holds path down to its directory.
func open(path, shown string, roots []string) (place, error) {
	root, err := holding(path, roots)
	if err != nil {
		return place{}, err
	}
	dir, err := os.OpenRoot(root)
	if err != nil {
		return place{}, cannot("open", shown, err)
	}
	rel, err := filepath.Rel(root, path)
	if err != nil || !filepath.IsLocal(rel) && rel != "." {
		dir.Close()
		return place{}, writ.Fail(writ.Denied, fmt.Sprintf("%q is outside what this call may reach", shown), err)
	}
	parts := strings.Split(rel, string(filepath.Separator))
	for _, part := range parts[:len(parts)-1] {
		next, err := step(dir, part)
		dir.Close()
		if err != nil {
			return place{}, cannot("open", shown, err)
		}
		dir = next
	}
	return place{dir, parts[len(parts)-1], path, shown}, nil
}

// holding is the longest root that path lies below. A root that is not a
// directory (one file, or one not there yet) is held by its directory.
func holding(path string, roots []string) (string, error) {
	best := ""
	for _, r := range roots {
		if policy.Below(path, r) && len(r) > len(best) {
			best = r
		}
	}
	if best == "" {
		return "", writ.Fail(writ.Denied, "the path is outside what this call may reach", nil)
	}
	if info, err := os.Lstat(best); best == path && (err != nil || !info.IsDir()) {
		return filepath.Dir(best), nil
	}
	return best, nil
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
		return nil, nil, errors.New("is a directory; use list_directory")
	}
	if !before.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("is not a regular file (%s)", kind(before))
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
