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
	if !TakenForRepository(all) {
		return false
	}
	if obeyed(added) {
		return true
	}
	return PartOfRepository(added) && !TakenForRepository(names) && ObeysSome(names)
}

func obeyed(name string) bool { return slices.Contains(protectedGit, Fold(name)) }

// ObeysSome reports whether git would run or obey some of these names, if it took their
// directory for a repository.
func ObeysSome(names map[string]bool) bool {
	for name := range names {
		if obeyed(name) {
			return true
		}
	}
	return false
}

// HeldForGit reports whether git, which takes a directory with these names for a repository,
// needs or obeys one of them: without it, what the others say could be changed.
func HeldForGit(names map[string]bool, name string) bool {
	return TakenForRepository(names) && (PartOfRepository(name) || obeyed(name))
}
