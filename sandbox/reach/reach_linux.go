package reach

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ"
)

// never are cut out of wider roots: processes, the kernel's knobs and devices.
var never = []string{"/proc", "/sys", "/dev"}

// roots works out what c and a command at p.Path come to. A root that is wider than a
// cut is replaced by what lies below it.
func (p *Plan) roots(c writ.Confinement, prefixes []string) {
	p.Listed, p.List = c.Exec.Mode != writ.ExecAny, slices.Contains(c.Read, "/")
	// Devices too: a terminal of this user can be read, and with it a passphrase.
	hidden := never
	if p.Listed {
		hidden = slices.Concat(hidden, RealAll(slices.Concat(ProgramDirs, prefixes)))
	}
	roots := c.Read
	if !p.Listed {
		roots = slices.Concat(roots, RealAll(prefixes)) // the operator calls them safe
	}
	for _, root := range roots {
		p.Read = append(p.Read, Without(root, hidden)...)
	}
	for _, root := range c.Write {
		if root == "/" {
			p.Write = append(p.Write, Without(root, slices.Concat(never, RealAll(SystemDirs)))...)
		} else {
			p.Write = append(p.Write, root)
		}
	}
	p.Write = outermost(p.Write)
	p.Named = slices.DeleteFunc(slices.Clone(c.Named), func(path string) bool { return !covered(path, p.Write) })
	p.Read = slices.DeleteFunc(outermost(p.Read), func(r string) bool { return covered(r, p.Write) })
	if !p.Listed {
		p.System = SystemDirs
		return
	}
	p.System = SystemLibraries
	p.Programs = append(p.Programs, p.Path)
	if !InAny(p.Path, p.Write) {
		// In a script that a box could have written, the #! line is a choice of
		// program that nobody listed.
		p.Programs = append(p.Programs, Interpreters(p.Path)...)
	}
	if c.Exec.Mode == writ.ExecListed {
		p.Programs = append(p.Programs, c.Exec.Files...)
	}
}

// InAny reports whether p is one of roots or lies below one.
func InAny(p string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return Within(p, root) })
}

// outermost leaves out roots that others cover, and private directories, which
// every box has anyway.
func outermost(roots []string) []string {
	var out []string
	slices.Sort(roots)
	for _, p := range slices.Compact(roots) {
		if !covered(p, out) && !slices.Contains(PrivateDirs, p) {
			out = append(out, p)
		}
	}
	return out
}

// covered reports whether p is shown by one of roots. What lies in a private
// directory is not shown by a root around that directory.
func covered(p string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return Within(p, root) && PrivateParent(p) == PrivateParent(root) })
}

// RealAll resolves the symlinks of those paths that exist.
func RealAll(paths []string) []string {
	var out []string
	for _, p := range paths {
		if real, err := filepath.EvalSymlinks(p); err == nil && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}

// PrivateDirs belong to the box alone: empty at its start, gone at its end.
var PrivateDirs = []string{"/tmp", "/var/tmp", "/dev/shm"}

// PrivateParent is the private directory that path lies below; empty: none.
func PrivateParent(path string) string {
	for _, dir := range PrivateDirs {
		if strings.HasPrefix(path, dir+"/") {
			return dir
		}
	}
	return ""
}
