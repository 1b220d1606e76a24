package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/policy"
)

// turns keeps a change of what git could obey from every other change: of two that each do no
// harm, one after the other would be refused.
var turns sync.RWMutex

// inTurn begins a change of the paths that a call names, and gives what ends it.
func inTurn(w writ.Writ) (over func()) {
	if namesGit(w) {
		turns.Lock()
		return turns.Unlock
	}
	turns.RLock()
	return turns.RUnlock
}

// namesGit reports whether a call names something that could be a part of a repository.
func namesGit(w writ.Writ) bool {
	return slices.ContainsFunc(w.Call().Targets, func(t writ.Target) bool {
		return slices.ContainsFunc(strings.Split(t.Path, "/"), partOfGit)
	})
}

// partOfGit reports whether a name means something to git in what it takes for a repository.
func partOfGit(name string) bool {
	return policy.PartOfRepository(name) || slices.Contains(policy.GitNames(), policy.Fold(name))
}

// obeyed refuses a path by which git, run by whoever looks at the workspace, would come to run
// or obey something: anybody can make a directory look like a repository, whatever it is
// called, with a configuration in it that names programs. In a box the same is kept from
// commands, or undone.
func obeyed(w writ.Writ, pointer string, roots []string, dir bool) error {
	return beside(w, pointer, roots, func(names map[string]bool, part string, last bool) bool {
		return policy.ObeyedByGit(names, part, dir || !last)
	})
}

// held refuses to take away what git needs or obeys of a repository.
func held(w writ.Writ, pointer string, roots []string) error {
	return beside(w, pointer, roots, func(names map[string]bool, part string, _ bool) bool {
		return policy.HeldForGit(names, part)
	})
}

// beside asks, of each part of a path that means something to git, about the names in its
// directory.
func beside(w writ.Writ, pointer string, roots []string, refuses func(names map[string]bool, part string, last bool) bool) error {
	t, root, err := reach(w, pointer, roots)
	if err != nil {
		return err
	}
	at, err := openRoot(root)
	if err != nil {
		return cannot("open", t.Value, err)
	}
	defer func() { at.Close() }()
	parts := between(root, t.Path)
	for i, part := range parts {
		last := i == len(parts)-1
		if partOfGit(part) {
			names, err := namesIn(at, ".")
			if err != nil {
				return cannot("look at what is beside", t.Value, err)
			}
			if refuses(names, part, last) {
				return writ.Fail(writ.Denied, fmt.Sprintf("%q is protected and cannot be changed: git takes its directory for a repository, and would obey it", t.Value), nil)
			}
		}
		if last {
			return nil
		}
		next, err := step(at, part)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // what is made in there is alone
		}
		if err != nil {
			return cannot("open", t.Value, err)
		}
		at.Close()
		at = next
	}
	return nil
}

func namesIn(dir *os.Root, rel string) (map[string]bool, error) {
	entries, err := fs.ReadDir(dir.FS(), rel)
	names := make(map[string]bool, len(entries))
	for _, e := range entries {
		names[e.Name()] = e.IsDir()
	}
	return names, err
}

// mostMoved bounds what is looked at of a directory that is to be moved.
const mostMoved = 100_000

// carries refuses to move a directory with something in it that is protected where it is, or
// would not be where it goes: what is never looked at for such names, as node_modules is, and
// what always is, lie in one workspace.
func (p place) carries() error {
	dir, err := step(p.dir, p.name)
	if err != nil {
		return cannot("look at", p.path, err)
	}
	defer dir.Close()
	seen := 0
	for queue := []string{"."}; len(queue) > 0; queue = queue[1:] {
		names, err := namesIn(dir, queue[0])
		if errors.Is(err, fs.ErrNotExist) {
			continue // it was removed just now
		}
		if err != nil {
			return cannot("look at what is in", p.path, err)
		}
		if seen += len(names); seen > mostMoved {
			return failf("cannot move %q: there is more in it than can be looked at (%d names)", p.path, mostMoved)
		}
		if policy.TakenForRepository(names) && policy.ObeysSome(names) {
			return p.holds(queue[0], "git takes that for a repository and would obey it")
		}
		for name, isDir := range names {
			rel := path.Join(queue[0], name)
			if policy.WriteProtected(rel) != "" {
				return p.holds(rel, "which is protected")
			}
			if isDir {
				queue = append(queue, rel)
			}
		}
	}
	return nil
}

func (p place) holds(rel, why string) error {
	return writ.Fail(writ.Denied, fmt.Sprintf("%q cannot be moved: it holds %q, %s; move what is beside that", p.path, rel, why), nil)
}
