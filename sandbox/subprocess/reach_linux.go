package subprocess

import (
	"os"
	"path/filepath"
	"slices"

	"github.com/writ-run/writ"
)

// A reach is what a box may touch, worked out from a confinement: roots without
// the parts that no box gets, and programs.
type reach struct {
	read, write []string
	list        bool     // the whole tree may be listed
	system      []string // besides read: what every box can read
	programs    []string // executable, one by one
	listed      bool
}

// never are cut out of wider roots: processes, the kernel's knobs and devices.
var never = []string{"/proc", "/sys", "/dev"}

// reachOf works out what c and a command at path come to. A root that is wider
// than a cut is replaced by what lies below it.
func reachOf(c writ.Confinement, path string, prefixes []string) reach {
	r := reach{listed: c.Exec.Mode != writ.ExecAny, list: slices.Contains(c.Read, "/")}
	// Devices too: a terminal of this user can be read, and with it a passphrase.
	hidden := never
	if r.listed {
		hidden = slices.Concat(hidden, realAll(slices.Concat(programDirs, prefixes)))
	}
	roots := c.Read
	if !r.listed {
		roots = slices.Concat(roots, realAll(prefixes)) // the operator calls them safe
	}
	for _, root := range roots {
		r.read = append(r.read, without(root, hidden)...)
	}
	fixed := slices.Concat(never, realAll(systemDirs))
	for _, root := range c.Write {
		if root == "/" {
			r.write = append(r.write, without(root, fixed)...)
		} else {
			r.write = append(r.write, root)
		}
	}
	r.write = outermost(r.write)
	r.read = slices.DeleteFunc(outermost(r.read), func(p string) bool { return covered(p, r.write) })
	if !r.listed {
		r.system = systemDirs
		return r
	}
	r.system = systemLibraries
	r.programs = append(r.programs, path)
	if !inAny(path, r.write) {
		// In a script that a box could have written, the #! line is a choice of
		// program that nobody listed.
		r.programs = append(r.programs, interpreters(path)...)
	}
	if c.Exec.Mode == writ.ExecListed {
		r.programs = append(r.programs, c.Exec.Files...)
	}
	return r
}

// mounts shows the writable roots, the readable ones that a private directory
// would cover, and with a list of programs also those that must not hold any.
func (r reach) mounts() []mount {
	var out []mount
	for _, p := range r.write {
		out = append(out, mount{From: p, At: p, NoExec: r.listed})
	}
	for _, p := range r.read {
		noexec := r.listed && !slices.ContainsFunc(realAll(systemDirs), func(s string) bool { return within(p, s) || within(s, p) })
		if _, err := os.Lstat(p); err == nil && (noexec || privateParent(p) != "") {
			out = append(out, mount{From: p, At: p, ReadOnly: true, NoExec: noexec})
		}
	}
	// A program in a root that is mounted noexec is shown once more, read-only.
	for _, p := range r.programs {
		real, err := filepath.EvalSymlinks(p)
		at := func(m mount) bool { return m.At == real }
		if err == nil && (inAny(real, r.write) || inAny(real, r.read) || privateParent(real) != "") && !slices.ContainsFunc(out, at) {
			out = append(out, mount{From: real, At: real, ReadOnly: true})
		}
	}
	return out
}

// grants are the Landlock rules for it.
func (r reach) grants() []grant {
	var out []grant
	for _, p := range globAll(systemFiles) {
		out = append(out, grant{Path: p, Read: true})
	}
	for _, p := range systemDevices {
		out = append(out, grant{Path: p, Device: true})
	}
	for _, p := range r.system {
		out = append(out, grant{Path: p, Read: true, Exec: !r.listed})
	}
	for _, p := range privateDirs {
		out = append(out, grant{Path: p, Write: true, Exec: !r.listed})
	}
	for _, p := range r.read {
		out = append(out, grant{Path: p, Read: true, Exec: !r.listed, Strict: true})
	}
	for _, p := range r.write {
		out = append(out, grant{Path: p, Write: true, Exec: !r.listed, Strict: true})
	}
	if r.list {
		out = append(out, grant{Path: "/", List: true})
	}
	for _, p := range r.programs {
		out = append(out, grant{Path: p, Read: true, Exec: true})
	}
	if r.listed {
		for _, p := range globAll(loaders) {
			out = append(out, grant{Path: p, Read: true, Exec: true})
		}
	}
	return out
}

// showGrants are the rules for what the driver itself puts into a box.
func showGrants(show []mount) []grant {
	var out []grant
	for _, m := range show {
		out = append(out, grant{Path: m.At, Read: true, Exec: true})
	}
	return out
}

func inAny(p string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return within(p, root) })
}

// outermost leaves out roots that others cover, and private directories, which
// every box has anyway.
func outermost(roots []string) []string {
	var out []string
	slices.Sort(roots)
	for _, p := range slices.Compact(roots) {
		if !covered(p, out) && !slices.Contains(privateDirs, p) {
			out = append(out, p)
		}
	}
	return out
}

// covered reports whether p is shown by one of roots. What lies in a private
// directory is not shown by a root around that directory.
func covered(p string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return within(p, root) && privateParent(p) == privateParent(root) })
}

// realAll resolves the symlinks of those paths that exist.
func realAll(paths []string) []string {
	var out []string
	for _, p := range paths {
		if real, err := filepath.EvalSymlinks(p); err == nil && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}
