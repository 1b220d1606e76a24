package protect

import (
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/writ-run/writ/policy"
	"golang.org/x/sys/unix"
)

// Bounds of what is read of what a run has left.
const (
	maxText  = 1 << 20
	maxInGit = 10_000 // entries below .git/modules and .git/worktrees
)

// A finding is something that must not stay.
type finding struct{ rel, why string }

// judge says what of a protected name that appeared must not stay.
func (x *index) judge(rel string, e entry) []finding {
	name := policy.Fold(path.Base(rel))
	switch {
	case e.class == policy.SecretName && (!policy.ObeyedSecret(name) || e.kind == unix.S_IFDIR && x.empty(rel)):
		return nil // the run's own text; from now on it is out of reach
	case e.class == policy.SecretName:
		return []finding{{rel, name + " is obeyed by other programs"}}
	case e.class == policy.Repository:
		return x.judgeRepository(rel, e)
	case e.where == inGit:
		return x.judgeGit(rel, name, e.kind, e.was)
	case e.kind == unix.S_IFDIR && x.empty(rel):
		return nil
	case name == ".gitattributes" && x.plain(rel, plainAttributes):
		return nil
	case name == ".gitmodules" && x.plain(rel, func(s string) bool { return len(risky(s)) == 0 }):
		return nil
	}
	return []finding{{rel, name + " is read as configuration by other programs"}}
}

// judgeRepository: a directory is judged by what is in it. A file points git elsewhere; in
// a submodule or a worktree it points at a part of a repository that is judged as well.
func (x *index) judgeRepository(rel string, e entry) []finding {
	if e.kind == unix.S_IFDIR {
		return nil
	}
	fine := x.plain(rel, func(text string) bool {
		to, ok := strings.CutPrefix(strings.TrimSpace(text), "gitdir: ")
		if !ok {
			return false
		}
		if path.IsAbs(to) {
			if to, ok = strings.CutPrefix(to, x.root+"/"); !ok {
				return false
			}
		} else {
			to = parent(rel) + "/" + to
		}
		// Without symlinks on the way it is the directory that its name says.
		fd, err := openDir(x.top, strings.TrimPrefix(to, "/"), unix.O_PATH)
		if err != nil {
			return false
		}
		unix.Close(fd)
		return x.judged(strings.TrimPrefix(path.Clean(to), "/"))
	})
	if fine {
		return nil
	}
	return []finding{{rel, ".git points git at another place"}}
}

// judged reports whether a directory is below modules or worktrees of a repository that is
// known, and nowhere that is passed over there.
func (x *index) judged(rel string) bool {
	repository, below, ok := strings.Cut("/"+rel, "/.git/")
	e := x.names[strings.TrimPrefix(repository+"/.git", "/")]
	parts := strings.Split(below, "/")
	return ok && e.class == policy.Repository && e.kind == unix.S_IFDIR && (parts[0] == "modules" || parts[0] == "worktrees") &&
		!slices.ContainsFunc(parts, func(p string) bool { return p == ".git" || slices.Contains(passedOver, policy.Fold(p)) })
}

// passedOver are directories of a repository in which there is nothing that git obeys, and
// too much to look at.
var passedOver = []string{"objects", "refs", "logs"}

// judgeGit judges a name that git obeys: in a .git, or in what is like one below modules
// and worktrees.
func (x *index) judgeGit(rel, name string, kind uint16, was []string) []finding {
	switch {
	case name == "config" || name == "config.worktree":
		fine := func(setting string) bool { return slices.Contains(was, setting) || ofSubmodule(rel, setting) }
		if x.plain(rel, func(s string) bool { return len(slices.DeleteFunc(risky(s), fine)) == 0 }) {
			return nil
		}
		return []finding{{rel, "it has settings by which git runs, loads or follows something"}}
	case kind != unix.S_IFDIR:
		if name == "commondir" && path.Base(path.Dir(parent(rel))) == "worktrees" && x.plain(rel, func(s string) bool { return strings.TrimSpace(s) == "../.." }) {
			return nil
		}
		if name == "gitdir" && path.Base(path.Dir(parent(rel))) == "worktrees" {
			return nil
		}
		return []finding{{rel, "git obeys it"}}
	}
	var out []finding
	for _, f := range x.entriesOf(rel) {
		at := path.Join(rel, f.name)
		switch {
		case name == "hooks" && !(f.kind == unix.S_IFREG && strings.HasSuffix(f.name, ".sample")):
			out = append(out, finding{at, "git runs it"})
		case name == "info" && f.name == "attributes" && !x.plain(at, plainAttributes):
			out = append(out, finding{at, "it asks for filters or drivers"})
		}
	}
	if name == "modules" || name == "worktrees" {
		left := maxInGit
		out = append(out, x.judgeBelow(rel, &left)...)
	}
	return out
}

// judgeBelow judges the repositories that lie in modules and worktrees. More than can be
// looked at must not stay at all.
func (x *index) judgeBelow(rel string, left *int) []finding {
	var out []finding
	for _, f := range x.entriesOf(rel) {
		at, name := path.Join(rel, f.name), policy.Fold(f.name)
		if *left--; *left < 0 {
			return []finding{{rel, "it holds more than can be looked at"}}
		}
		switch {
		case slices.Contains(policy.GitNames(), name):
			out = append(out, x.judgeGit(at, name, f.kind, nil)...)
		case f.kind == 0 && name != "head":
			out = append(out, finding{at, "it may lead git elsewhere"})
		case f.kind == unix.S_IFDIR && !slices.Contains(passedOver, name):
			out = append(out, x.judgeBelow(at, left)...)
		}
	}
	return out
}

// ofSubmodule: the configuration of a submodule, below modules, says where its files are,
// which is fine within the workspace.
func ofSubmodule(rel, setting string) bool {
	to, ok := strings.CutPrefix(setting, "core.worktree=")
	at := path.Join(parent(rel), to)
	return ok && strings.Contains(rel, "/modules/") && !path.IsAbs(to) && at != ".." && !strings.HasPrefix(at, "../") &&
		!slices.Contains(strings.Split(at, "/"), ".git") && !strings.ContainsAny(to, `"\#;`)
}

// settings lists what is not harmless in a configuration of git, and says whether it asks
// for one of each worktree. What cannot be read is not harmless.
func (x *index) settings(rel string) (notHarmless []string, perTree bool) {
	text, err := x.text(rel)
	if err != nil {
		return []string{err.Error()}, true
	}
	return risky(text), strings.Contains(strings.ToLower(text), "worktreeconfig")
}

// plain reports whether a file has a text that passes, and is nothing but that file: by
// another name for it a later run could change it past all mounts.
func (x *index) plain(rel string, pass func(string) bool) bool {
	text, err := x.text(rel)
	return err == nil && pass(text)
}

var errNotPlain = errors.New("it is not a plain file with one name")

// text reads a small file that has no other name.
func (x *index) text(rel string) (string, error) {
	var b []byte
	err := in(x.top, rel, func(dir int, name string) error {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		f := os.NewFile(uintptr(fd), name)
		defer f.Close()
		is, err := statFD(fd)
		if err != nil || !is.is(unix.S_IFREG) || is.links != 1 || is.size > maxText {
			return errors.Join(errNotPlain, err)
		}
		b, err = io.ReadAll(io.LimitReader(f, maxText))
		return err
	})
	return string(b), err
}

// A child is a name in a directory.
type child struct {
	name string
	kind uint16
}

// entriesOf lists a directory; one that cannot be read has a child that nothing passes.
func (x *index) entriesOf(rel string) []child {
	var out []child
	err := readable(x.top, rel, func(fd int) error {
		entries, err := list(fd, -1)
		for _, e := range entries {
			kind := uint16(0)
			switch {
			case e.IsDir():
				kind = unix.S_IFDIR
			case e.Type().IsRegular():
				kind = unix.S_IFREG
			}
			out = append(out, child{e.Name(), kind})
		}
		return err
	})
	if err != nil && err != unix.ENOENT {
		return []child{{".", 0}}
	}
	slices.SortFunc(out, func(a, b child) int { return strings.Compare(a.name, b.name) })
	return out
}

func (x *index) empty(rel string) bool { return len(x.entriesOf(rel)) == 0 }
