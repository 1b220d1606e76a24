package files

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/policy"
)

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
		if policy.PartOfRepository(part) || slices.Contains(policy.GitNames(), policy.Fold(part)) {
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
