package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Names that other programs read as configuration and run: inside a workspace
// they can be read but not changed, whether they exist yet or not.
var protectedNames = []string{
	".gitmodules", ".gitattributes", ".mcp.json", ".envrc",
	".claude", ".codex", ".gemini", ".copilot", ".vscode", ".idea",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".cshrc", ".tcshrc",
}

// The same, but of a home alone, and seldom missing there where they matter: nothing keeps
// them from being made in a box, and what was made is found afterwards.
var homeNames = []string{".gitconfig", ".bash_aliases", ".zlogout", ".login", ".logout", ".xprofile"}

// Below .git these are run or obeyed by git itself.
var protectedGit = []string{"hooks", "config", "config.worktree", "info", "modules", "worktrees", "commondir", "gitdir"}

// Of the names that hold secrets, those that programs obey as well, such as .ssh/config.
var obeyedSecrets = []string{".ssh", ".aws", ".gnupg", ".kube", ".netrc", ".pgpass", ".azure", ".git-credentials"}

// Names that hold secrets: they cannot be read either.
var secretNames = []string{
	".env", ".ssh", ".aws", ".gnupg", ".kube", ".netrc", ".pgpass", ".azure", ".password-store",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials.json", ".git-credentials",
}

// WriteProtected returns the protected name that a path passes through, or "".
// Names compare as a case-insensitive, normalising filesystem would, so that
// .GIT and a .git with a zero-width character inside do not pass.
func WriteProtected(p string) string { return protectedBeyond("", p) }

// protectedBeyond is WriteProtected of a path at or below root, for whoever may write root.
func protectedBeyond(root, p string) string {
	inGit := fold(path.Base(root)) == ".git"
	rest := p[len(root):]
	for part := range strings.SplitSeq(rest, "/") {
		part = fold(part)
		if part == "" {
			continue
		}
		if slices.Contains(protectedNames, part) || slices.Contains(homeNames, part) {
			return part
		}
		if inGit && slices.Contains(protectedGit, part) {
			return ".git/" + part
		}
		inGit = part == ".git"
	}
	if inGit && rest != "" { // .git itself: a file of that name points git elsewhere
		return ".git"
	}
	return Secret(p)
}

// Names reports whether one of the roots that a tool declares to write is, or lies in,
// something that is protected only from being changed: then its policy names it, and
// path, which is protected, is not from this tool. What holds secrets stays protected.
func Names(roots []string, path string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return Below(path, root) && WriteProtected(root) != "" && protectedBeyond(root, path) == ""
	})
}

// Secret returns the name on the path that marks it as a secret, or "".
func Secret(p string) string {
	for part := range strings.SplitSeq(p, "/") {
		part = fold(part)
		if slices.Contains(secretNames, part) || secretEnv(part) || secretKey(part) {
			return part
		}
	}
	return ""
}

func secretEnv(name string) bool {
	kind, ok := strings.CutPrefix(name, ".env.")
	return ok && kind != "example" && kind != "sample" && kind != "template"
}

func secretKey(name string) bool {
	switch path.Ext(name) {
	case ".pem", ".key", ".p12", ".pfx", ".keystore", ".jks":
		return true
	}
	return false
}

// fold gives a name as the most obliging filesystem compares it: ext4 and APFS
// ignore case and what cannot be seen, NTFS and FAT dots and spaces at the end,
// streams after a colon, and take GIT~1 for .git.
func fold(name string) string {
	if unfolded(name) {
		return name
	}
	name, _, _ = strings.Cut(strings.Map(visible, name), ":")
	return longName(strings.TrimRight(strings.Map(foldRune, ligatures.Replace(name)), ". "))
}

// unfolded reports whether folding leaves a name as it is; nearly all names are, and
// this runs on every call.
func unfolded(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' || c == ':' || c == '~' {
			return false
		}
	}
	return !strings.HasSuffix(name, ".") && !strings.HasSuffix(name, " ")
}

// visible drops characters that some filesystems ignore when they compare names.
func visible(r rune) rune {
	if r >= utf8.RuneSelf && unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return -1
	}
	return r
}

// ligatures are the characters that fold to more than one ASCII letter.
var ligatures = strings.NewReplacer("\u00df", "ss", "\u1e9e", "ss", "\ufb00", "ff", "\ufb01", "fi", "\ufb02", "fl",
	"\ufb03", "ffi", "\ufb04", "ffl", "\ufb05", "st", "\ufb06", "st")

// foldRune folds case; of the characters that fold alike, such as K and the
// Kelvin sign, the ASCII one stands for all.
func foldRune(r rune) rune {
	for f := unicode.SimpleFold(r); r >= utf8.RuneSelf && f != r; f = unicode.SimpleFold(f) {
		if f < utf8.RuneSelf {
			r = f
		}
	}
	return unicode.ToLower(r)
}

// longName gives the protected name that a short name of DOS stands for, or the
// name itself.
func longName(part string) string {
	stem, rest, ok := strings.Cut(part, "~")
	if !ok || rest == "" || rest[0] < '0' || rest[0] > '9' {
		return part
	}
	for _, names := range [][]string{{".git"}, protectedNames, homeNames, protectedGit, secretNames} {
		for _, name := range names {
			base := strings.TrimLeft(name, ".")
			base = strings.TrimSuffix(base, path.Ext(base))
			if stem == base[:min(6, len(base))] {
				return name
			}
		}
	}
	return part
}
