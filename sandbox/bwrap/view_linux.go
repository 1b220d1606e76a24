package bwrap

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/sandbox/reach"
	"github.com/writ-run/writ/sandbox/restrict"
	"github.com/writ-run/writ/sandbox/wrapped"
)

// A view is what one box sees, as options of bubblewrap, which does them in their order.
type view struct {
	plan    *reach.Plan
	args    []string
	files   []*os.File     // what the options name by descriptor
	opened  map[int]string // the paths of those that are of the confinement
	staged  []*os.File     // the same, where the user of the box can get to them
	bound   []string       // directories of the system that are shown whole
	shown   []string       // what was put in besides
	linked  []string       // symlinks that were made
	hidden  []wrapped.File // what is covered
	bounded []string       // temporary directories
	noExec  []string       // mounts that are to be without programs
	exec    []string       // mounts below those, of single programs
}

func (v *view) add(args ...string) { v.args = append(v.args, args...) }

func (v *view) close() {
	for _, f := range slices.Concat(v.files, v.staged) {
		f.Close()
	}
}

// build is the whole of it. What cannot be shown whole is an error.
func (v *view) build() error {
	v.system()
	if err := v.showAll(); err != nil {
		return err
	}
	v.links()
	if err := v.hide(); err != nil {
		return err
	}
	v.add("--remount-ro", "/")
	return nil
}

type item struct {
	path     string
	writable bool
	noExec   bool
	program  bool
}

// items are what the plan names, what is around before what is in it.
func (v *view) items() []item {
	var out []item
	for _, p := range v.plan.Write {
		out = append(out, item{path: p, writable: true, noExec: v.plan.Listed})
	}
	for _, p := range v.plan.Read {
		if _, err := os.Lstat(p); err == nil { // else nothing is there to be read
			out = append(out, item{path: p, noExec: v.plan.Listed && !ofSystem(p)})
		}
	}
	for _, p := range reach.RealAll(v.plan.Programs) { // this program itself, for a probe, is not there and not needed
		out = append(out, item{path: p, program: true})
	}
	slices.SortStableFunc(out, func(a, b item) int { return len(a.path) - len(b.path) })
	return out
}

// ofSystem reports whether a path holds, or is in, what programs are made of.
func ofSystem(p string) bool {
	return slices.ContainsFunc(reach.RealAll(reach.SystemDirs), func(s string) bool { return reach.Within(p, s) || reach.Within(s, p) })
}

func (v *view) showAll() error {
	for _, it := range v.items() {
		if slices.Contains(v.shown, it.path) || !it.writable && !it.noExec && reach.InAny(it.path, v.bound) {
			continue // a part of the system
		}
		fd, err := v.open(it.path)
		if err != nil {
			return fmt.Errorf("show %s: %w; each root must exist and be reached without symlinks", it.path, err)
		}
		at := inside(it.path)
		if it.writable {
			v.add("--bind-fd", fd, at)
		} else {
			v.add("--ro-bind-fd", fd, at)
		}
		if it.program && reach.InAny(at, v.noExec) {
			v.exec = append(v.exec, at)
		}
		if it.noExec {
			v.noExec = append(v.noExec, at)
		}
		v.shown = append(v.shown, it.path)
	}
	if reach.InAny("/var/tmp", v.shown) {
		v.temporary("/var/tmp")
	}
	return nil
}

// open opens a path of the confinement for the box, and gives the number that it has
// there.
func (v *view) open(path string) (string, error) {
	fd, err := restrict.OpenNoSymlinks(path)
	if err != nil {
		return "", err
	}
	if v.opened == nil {
		v.opened = map[int]string{}
	}
	v.opened[len(v.files)] = path
	return v.pass(os.NewFile(uintptr(fd), path)), nil
}

func (v *view) pass(f *os.File) string {
	v.files = append(v.files, f)
	return fmt.Sprint(wrapped.FirstFile + len(v.files) - 1)
}

// links puts in the symlinks that the names of programs are, where they are not shown.
func (v *view) links() {
	for _, p := range v.plan.Programs {
		for range 8 {
			dir, err := filepath.EvalSymlinks(filepath.Dir(p))
			if err != nil {
				break
			}
			p = filepath.Join(dir, filepath.Base(p))
			to, err := os.Readlink(p)
			if err != nil {
				break
			}
			if !v.visible(p) {
				v.symlink(to, p)
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(dir, to)
			}
			p = to
		}
	}
}

func (v *view) symlink(to, at string) {
	if !slices.Contains(v.linked, at) {
		v.add("--symlink", to, at)
		v.linked = append(v.linked, at)
	}
}

func (v *view) visible(path string) bool {
	return reach.InAny(path, v.shown) || reach.InAny(path, v.bound)
}

// hide covers what is out of reach whatever else was shown. That it is still where it was
// covered is looked at once all is mounted: bubblewrap makes a place for a cover where
// there is none.
func (v *view) hide() (err error) {
	visible := slices.DeleteFunc(slices.Clone(v.plan.Hide), func(path string) bool { return !v.visible(path) })
	v.hidden, err = wrapped.ToHide(v.plan, visible)
	for _, f := range v.hidden {
		if at := inside(f.Path); f.Mode.IsDir() {
			v.add("--perms", "0755", "--size", "4096", "--tmpfs", at, "--remount-ro", at)
		} else {
			v.add("--ro-bind", "/dev/null", at) // as a device it cannot be opened there
		}
	}
	return err
}

// inside is where the box has a host path: all its temporary directories are one.
func inside(path string) string {
	for _, dir := range reach.PrivateDirs[1:] {
		if rest, ok := strings.CutPrefix(path, dir+"/"); ok {
			return reach.PrivateTmp + "/" + rest
		}
	}
	return path
}
