package policy

import "slices"

// Class is what one name on a path is protected as. WriteProtected and Secret say the
// same of whole paths.
type Class uint8

const (
	Unprotected Class = iota
	Config            // other programs read it as configuration: it can be read and not changed
	Repository        // .git: what git obeys below it is Config, a file of this name points git elsewhere
	SecretName        // it can be neither read nor changed
)

// ClassOf classes one name of a path; inGit says that it lies directly in a .git.
func ClassOf(name string, inGit bool) Class {
	name = fold(name)
	switch {
	case slices.Contains(protectedNames, name), slices.Contains(homeNames, name), inGit && slices.Contains(protectedGit, name):
		return Config
	case name == ".git":
		return Repository
	case slices.Contains(secretNames, name) || secretEnv(name) || secretKey(name):
		return SecretName
	}
	return Unprotected
}

// ConfigNames lists the names that are Config wherever they lie, and are to be kept from being
// made.
func ConfigNames() []string { return slices.Clone(protectedNames) }

// HomeNames lists those that are Config, too, and are found when they were made.
func HomeNames() []string { return slices.Clone(homeNames) }

// ObeyedSecret reports whether a name that holds secrets is one that programs obey.
func ObeyedSecret(name string) bool { return slices.Contains(obeyedSecrets, fold(name)) }

// GitNames lists the names that are Config directly in a .git.
func GitNames() []string { return slices.Clone(protectedGit) }

// Fold gives a name as the most obliging filesystem compares it.
func Fold(name string) string { return fold(name) }
