package files

import (
	"errors"
	"fmt"
	"io/fs"
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
	for _, t := range w.Call().Targets {
		if slices.ContainsFunc(strings.Split(t.Path, "/"), partOfGit) {
			turns.Lock()
			return turns.Unlock
		}
	}
	turns.RLock()
	return turns.RUnlock
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
			entries, err := fs.ReadDir(at.FS(), ".")
			if err != nil {
				return cannot("look at what is beside", t.Value, err)
			}
			beside := map[string]bool{}
			for _, e := range entries {
				beside[e.Name()] = e.IsDir()
			}
			if policy.ObeyedByGit(beside, part, dir || !last) {
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
