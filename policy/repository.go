package policy

import "slices"

// repositoryParts are what makes a directory a repository to git, whatever it is called.
var repositoryParts = []string{"head", "objects", "refs", "commondir"}

// PartOfRepository reports whether a name is one of those that make a directory a repository
// to git.
func PartOfRepository(name string) bool { return slices.Contains(repositoryParts, Fold(name)) }

// TakenForRepository reports whether git could take a directory for a repository, by the names
// in it and whether each is a directory. Git does not mind what is there by these names, if it
// gets through it.
func TakenForRepository(names map[string]bool) bool {
	has := map[string]bool{}
	for name, dir := range names {
		if name = Fold(name); PartOfRepository(name) {
			has[name] = has[name] || name != "head" || !dir
		}
	}
	return has["head"] && (has["commondir"] || has["objects"] && has["refs"])
}

// ObeyedByGit reports whether git, which could take a directory with these names for a
// repository, would run or obey one that is new in it, or one beside it because of that.
func ObeyedByGit(names map[string]bool, added string, dir bool) bool {
	all := map[string]bool{added: dir}
	for name, is := range names {
		all[name] = is
	}
	obeyed := func(name string) bool { return slices.Contains(protectedGit, Fold(name)) }
	if !TakenForRepository(all) {
		return false
	}
	if obeyed(added) {
		return true
	}
	if !PartOfRepository(added) || TakenForRepository(names) {
		return false
	}
	for name := range names {
		if obeyed(name) {
			return true
		}
	}
	return false
}
