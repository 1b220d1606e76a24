package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/host"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/tool"
)

// maxTargets bounds what one call may name: each target costs look-ups and is held
// against every rule.
const maxTargets = 1024

// targets resolves every path and host that the arguments name. It never fails:
// what cannot be resolved is a target with a problem, and is denied.
func targets(found []policy.Candidate, dir, home string) []writ.Target {
	out := make([]writ.Target, 0, min(len(found), maxTargets+1))
	for i, c := range found {
		if i == maxTargets {
			why := fmt.Sprintf("the call names %d paths and hosts, and may name %d; make several calls", len(found), maxTargets)
			return append(out, writ.Target{Pointer: c.Pointer, Value: c.Value, Kind: c.Kind, Side: c.Side, Problem: why})
		}
		t := writ.Target{Pointer: c.Pointer, Value: c.Value, Kind: c.Kind, Side: c.Side}
		var err error
		switch {
		case c.Kind == writ.TargetPath:
			t.Path, t.Via, err = resolvePath(c, dir, home)
		case c.Kind == writ.TargetMethod, c.Kind == writ.TargetConnection: // see connect
		case c.Git:
			t.Host, err = gitEndpoint(c.Value)
		case c.URL:
			t.Host, err = endpoint(host.ParseURL(c.Value))
		default:
			t.Host, err = endpoint(host.ParseEndpoint(c.Value))
		}
		if err != nil {
			t.Problem = err.Error()
		}
		out = append(out, t)
	}
	return out
}

func endpoint(e host.Endpoint, err error) (string, error) {
	if err != nil {
		return "", err
	}
	return e.String(), nil
}

func resolvePath(c policy.Candidate, dir, home string) (at string, via []string, err error) {
	p, err := policy.FilePath(c.Value, dir, home)
	if err != nil {
		return "", nil, err
	}
	named := filepath.Clean(p)
	// Deleting a symlink must not delete what it points at.
	if parent, name := filepath.Split(p); c.Link && name != "" && name != "." && name != ".." {
		if at, via, err = trace(parent, os.Lstat, os.Readlink); err != nil {
			return "", nil, err
		}
		at = filepath.Join(at, name)
	} else if at, via, err = trace(p, os.Lstat, os.Readlink); err != nil {
		return "", nil, err
	}
	if at != named {
		via = append([]string{named}, via...)
	}
	return at, via, nil
}

// maxLinks is how many symlinks are followed, as in the kernel.
const maxLinks = 40

var (
	errLoop    = errors.New("too many symlinks on the way")
	errMissing = errors.New("it goes up with .. from something that does not exist; write the path without going up")
)

// follow gives the path that the kernel would arrive at: element by element, a
// symlink replaced by what it points at, ".." meaning the parent of where one has
// got to. What does not exist yet stays as written, a dangling symlink becomes
// its target. Where the kernel would arrive nowhere whatever is made there, as
// beyond a file, there is no path. Nor is there one up from what does not exist:
// a symlink made there before the call runs would turn it elsewhere.
func follow(p string, lstat func(string) (fs.FileInfo, error), readlink func(string) (string, error)) (string, error) {
	at, _, err := trace(p, lstat, readlink)
	return at, err
}

// trace is follow, and tells of the symlinks on the way.
func trace(p string, lstat func(string) (fs.FileInfo, error), readlink func(string) (string, error)) (at string, stops []string, err error) {
	at = "/"
	rest := strings.Split(p, "/")
	missing, file := false, false // what at is, if not a directory
	for links := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		switch {
		case file:
			return "", nil, errors.New("it cannot be looked up: not a directory")
		case part == "" || part == ".":
			continue
		case part == ".." && missing:
			return "", nil, errMissing
		case part == "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		if !missing {
			info, err := lstat(next)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				missing = true
			case err != nil:
				return "", nil, errors.New("it cannot be looked up: " + cause(err))
			case info.Mode()&fs.ModeSymlink != 0:
				if links++; links > maxLinks {
					return "", nil, errLoop
				}
				to, err := readlink(next)
				if err != nil {
					return "", nil, errors.New("it cannot be looked up: " + cause(err))
				}
				stops = append(stops, next)
				if strings.HasPrefix(to, "/") {
					at = "/"
				}
				if rest = slices.Concat(strings.Split(to, "/"), rest); len(rest) > 4096 {
					return "", nil, errLoop
				}
				continue
			default:
				file = !info.IsDir()
			}
		}
		at = next
	}
	return at, stops, nil
}

// cause is the operating system's word without the path, which the caller knows.
func cause(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return "error"
}

// companions are directories of programs that a program runs itself.
var companions = map[string][]string{
	"git": {"/usr/lib/git-core", "/usr/libexec/git-core"},
	"go":  {"/usr/local/go/pkg/tool", "/usr/lib/go/pkg/tool"},
}

// findPrograms gives the files behind program names, the names themselves where they are
// symlinks, by which a box finds them, and what they run themselves. Programs that are not
// installed are left out: they cannot run.
func findPrograms(names, prefixes []string) []string {
	var out []string
	add := func(path string, want func(fs.FileInfo) bool) bool {
		real, err := filepath.EvalSymlinks(path)
		if err != nil {
			return false
		}
		info, err := os.Stat(real)
		if err != nil || !want(info) {
			return false
		}
		if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil {
			out = append(out, filepath.Join(dir, filepath.Base(path)))
		}
		out = append(out, real)
		return true
	}
	program := func(i fs.FileInfo) bool { return i.Mode().IsRegular() && i.Mode().Perm()&0o111 != 0 }
	for _, name := range names {
		found := false
		for _, dir := range slices.Concat(config.SystemPath, prefixes) {
			found = add(filepath.Join(dir, name), program) || found
		}
		if found {
			for _, dir := range companions[name] {
				add(dir, fs.FileInfo.IsDir)
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// led is why a definition cannot be used as it was accepted: a path it declares leads
// through a symlink, and whoever can change that decides what the tool reaches. A
// definition names what is really there.
func led(t *tool.Tool) string {
	for _, root := range slices.Concat(t.Policy.Files.Read.Roots(), t.Policy.Files.Write.Roots()) {
		if to, err := follow(root, os.Lstat, os.Readlink); err != nil || to != root {
			return fmt.Sprintf("tool %s is suspended: %s in its policy leads through a symlink; write in the definition where it leads, and accept that", t.Name, root)
		}
	}
	return ""
}
