package policy

import (
	"path"
	"slices"
	"strings"
	"unicode"
)

// Names that other programs read as configuration and run: inside a workspace
// they can be read but not changed, whether they exist yet or not.
var protectedNames = []string{
	".gitmodules", ".gitattributes", ".mcp.json", ".envrc",
	".claude", ".codex", ".gemini", ".copilot", ".vscode", ".idea",
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".kshrc", ".cshrc", ".tcshrc",
}

// Below .git these are run or obeyed by git itself.
var protectedGit = []string{"hooks", "config", "config.worktree", "info", "modules", "worktrees", "commondir", "gitdir"}

// Names that hold secrets: they cannot be read either.
var secretNames = []string{
	".env", ".ssh", ".aws", ".gnupg", ".kube", ".netrc", ".pgpass", ".azure", ".password-store",
	"id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "credentials.json", ".git-credentials",
}

// WriteProtected returns the protected name that a path passes through, or "".
// Names compare as a case-insensitive, normalising filesystem would, so that
// .GIT and a .git with a zero-width character inside do not pass.
func WriteProtected(p string) string {
	parts := foldPath(p)
	for i, part := range parts {
		if slices.Contains(protectedNames, part) {
			return part
		}
		if part == ".git" {
			if i+1 == len(parts) {
				return ".git"
			}
			if slices.Contains(protectedGit, parts[i+1]) {
				return ".git/" + parts[i+1]
			}
		}
	}
	return Secret(p)
}

// Secret returns the name on the path that marks it as a secret, or "".
func Secret(p string) string {
	for _, part := range foldPath(p) {
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

func foldPath(p string) []string {
	parts := strings.Split(p, "/")
	for i, part := range parts {
		parts[i] = strings.TrimRight(strings.ToLower(strings.Map(visible, part)), ". ")
	}
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}

// visible drops characters that some filesystems ignore when they compare names.
func visible(r rune) rune {
	if unicode.In(r, unicode.Cf, unicode.Variation_Selector) {
		return -1
	}
	return r
}
