package subprocess

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
)

// plan works out a box: what the writ allows and the spec asks for, as mounts,
// grants, limits and an environment. show are mounts besides those of the writ.
func (d *Driver) plan(w writ.Writ, spec sandbox.Spec, show []mount) (job, error) {
	c := w.Confinement()
	if err := checkRoots(c); err != nil {
		return job{}, err
	}
	hostMnt, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return job{}, writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: /proc is not mounted; mount it", err)
	}
	j := job{
		Launcher: d.opts.Launcher,
		HostMnt:  hostMnt,
		Argv:     spec.Argv,
		Env:      filterEnv(os.Environ(), c.Env, spec.Env, d.opts),
		Hide:     c.Hide,
		Listed:   c.Exec.Mode != writ.ExecAny,
		Grace:    orDefault(c.Limits.Grace, defaultGrace),
	}
	if j.Dir, err = d.workDir(c, w.Call().Dir, spec.Dir); err != nil {
		return job{}, err
	}
	if j.UID, j.GID, j.Root, err = identity(c, j.Dir); err != nil {
		return job{}, err
	}
	if j.Path, err = lookProgram(spec.Argv, j.Dir, j.Env, show); err != nil {
		return job{}, err
	}
	reach := reachOf(c, j.Path, d.opts.PathPrefixes)
	j.Mounts = append(reach.mounts(), show...)
	j.Grants = append(reach.grants(), showGrants(show)...)
	j.Writable = reach.write
	j.Limits = limitsOf(c.Limits, j.Root, j.UID)
	return j, nil
}

// checkRoots refuses paths that are not what Confinement promises, and those
// that would undo another part of it.
func checkRoots(c writ.Confinement) error {
	for _, p := range slices.Concat(c.Read, c.Write, c.Hide, c.Exec.Files) {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || strings.ContainsRune(p, 0) {
			return writ.Fail(writ.Invalid, fmt.Sprintf("the confinement names %q, which is not an absolute clean path", p), nil)
		}
	}
	for _, p := range slices.Concat(c.Read, c.Write) {
		if within(p, "/proc") {
			return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: driver subprocess cannot allow "+p+" without showing other processes; use driver native", nil)
		}
	}
	for _, p := range slices.Concat(c.Read, c.Write) {
		if within(p, "/sys") || within(p, "/dev") && !within(p, "/dev/shm") {
			return writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+p+" is a part of the machine and cannot be opened to a box; leave it out", nil)
		}
	}
	for _, p := range c.Write {
		for _, h := range c.Hide {
			if within(p, h) {
				return writ.Fail(writ.Invalid, p+" is to be writable but lies in "+h+", which is hidden; move the workspace", nil)
			}
		}
	}
	return nil
}

// workDir is where the command starts: the spec's directory, which has to lie in
// the workspace; else the call's, where it lies there; else the first directory the
// call may use; else, for one that uses no files, the private home.
func (d *Driver) workDir(c writ.Confinement, call, spec string) (string, error) {
	// The workspace is what the call may write; a call that writes nothing starts
	// in what it may read.
	roots := c.Write
	if len(roots) == 0 {
		roots = c.Read
	}
	inside := func(p string) bool {
		return slices.ContainsFunc(roots, func(root string) bool { return within(p, root) })
	}
	dir := spec
	if dir == "" {
		if real, err := filepath.EvalSymlinks(call); call != "" && (err != nil || inside(real) || d.opts.UnsafeAnyDir && len(roots) > 0) {
			dir = call
		} else if len(roots) > 0 {
			dir = roots[0]
			if info, err := os.Stat(dir); err == nil && !info.IsDir() {
				dir = filepath.Dir(dir)
			}
			roots = append(slices.Clip(roots), dir)
		}
	}
	if dir == "" {
		return privateHome, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(dir) {
		return "", writ.Fail(writ.Invalid, "the working directory "+dir+" cannot be used; name an existing one by its absolute path", err)
	}
	if !inside(real) && !d.opts.UnsafeAnyDir {
		return "", writ.Fail(writ.Denied, "denied: the working directory "+dir+" is outside the workspace; start inside it", nil)
	}
	return real, nil
}

// lookProgram finds the file to execute: an absolute path as it is, a path with
// a slash from the working directory, a name in the box's PATH.
func lookProgram(argv []string, dir string, env []string, show []mount) (string, error) {
	if len(argv) == 0 || argv[0] == "" {
		return "", writ.Fail(writ.Invalid, "there is no command to run", nil)
	}
	name := argv[0]
	for _, m := range show {
		if m.At == name {
			return name, nil
		}
	}
	tries := []string{name}
	switch {
	case filepath.IsAbs(name):
	case strings.Contains(name, "/"):
		tries = []string{filepath.Join(dir, name)}
	default:
		tries = nil
		for _, kv := range env {
			if list, ok := strings.CutPrefix(kv, "PATH="); ok {
				for _, p := range filepath.SplitList(list) {
					if filepath.IsAbs(p) {
						tries = append(tries, filepath.Join(p, name))
					}
				}
			}
		}
	}
	for _, path := range tries {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", writ.Fail(writ.NotFound, fmt.Sprintf("the program %q was not found in the box's PATH, or is not executable; install it, or name it by its absolute path", name), nil)
}
