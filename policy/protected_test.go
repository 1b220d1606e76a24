package policy

import "testing"

func TestWriteProtected(t *testing.T) {
	for p, want := range map[string]string{
		"/ws/.git":                           ".git", // a worktree's file as well as a repository
		"/ws/.git/hooks":                     ".git/hooks",
		"/ws/.git/hooks/pre-commit":          ".git/hooks",
		"/ws/.git/config":                    ".git/config",
		"/ws/.git/config.worktree":           ".git/config.worktree",
		"/ws/.git/info/attributes":           ".git/info",
		"/ws/.git/modules/x/config":          ".git/modules",
		"/ws/.git/worktrees/x/gitdir":        ".git/worktrees",
		"/ws/.git/commondir":                 ".git/commondir",
		"/ws/vendor/nested/.git/hooks/x":     ".git/hooks", // a nested repository
		"/ws/vendor/nested/.git":             ".git",
		"/ws/.gitmodules":                    ".gitmodules",
		"/ws/sub/.gitattributes":             ".gitattributes",
		"/ws/.claude/settings.json":          ".claude",
		"/ws/.codex":                         ".codex",
		"/ws/.gemini/x":                      ".gemini",
		"/ws/.copilot/x":                     ".copilot",
		"/ws/.mcp.json":                      ".mcp.json",
		"/ws/.vscode/tasks.json":             ".vscode",
		"/ws/.idea/x":                        ".idea",
		"/ws/.envrc":                         ".envrc",
		"/ws/.bashrc":                        ".bashrc",
		"/ws/.zshenv":                        ".zshenv",
		"/ws/.profile":                       ".profile",
		"/ws/.env":                           ".env", // what cannot be read cannot be changed
		"/ws/.GIT/Hooks/x":                   ".git/hooks",
		"/ws/.Git/CONFIG":                    ".git/config",
		"/ws/.g\u200cit/hooks/x":             ".git/hooks",
		"/ws/.git\u200c":                     ".git",
		"/ws/.g\ufe0fit":                     ".git",
		"/ws/.g\u034fit/config":              ".git/config", // ignored by casefolding ext4, and not a format character
		"/ws/.g\u115fit":                     ".git",
		"/ws/.g\u3164it":                     ".git",
		"/ws/.git./hooks/x":                  ".git/hooks",
		"/ws/.git /hooks/x":                  ".git/hooks",
		"/ws/.git. . /hooks":                 ".git/hooks",
		"/ws/.git/hooks./x":                  ".git/hooks",
		"/ws/.git/con\ufb01g":                ".git/config", // U+FB01 folds to "fi"
		"/ws/.pro\ufb01le":                   ".profile",
		"/ws/.v\u017fcode/tasks.json":        ".vscode", // U+017F folds to s
		"/ws/.git/hoo\u212as/x":              ".git/hooks",
		"/ws/.\u00dfh/config":                ".ssh", // U+00DF folds to "ss"
		"/ws/GIT~1/hooks/x":                  ".git/hooks",
		"/ws/git~1":                          ".git",
		"/ws/GITMOD~1":                       ".gitmodules",
		"/ws/.git::$INDEX_ALLOCATION/config": ".git/config",
		"/ws/.git/config:stream":             ".git/config",
		"/ws/.git/objects/ab/cd":             "",
		"/ws/.git/HEAD":                      "",
		"/ws/.git/refs/heads/x":              "",
		"/ws/.github/workflows/ci.yml":       "",
		"/ws/.gitignore":                     "",
		"/ws/git/hooks/x":                    "",
		"/ws/hooks/x":                        "",
		"/ws/config":                         "",
		"/ws/a.git/x":                        "",
		"/ws/profile":                        "",
		"/ws/claude":                         "",
		"/ws/...":                            "",
		"/ws/backup~1":                       "",
		"/":                                  "",
		"":                                   "",
	} {
		if got := WriteProtected(p); got != want {
			t.Errorf("%+q: %q, want %q", p, got, want)
		}
	}
}

func TestSecret(t *testing.T) {
	for p, want := range map[string]string{
		"/ws/.env":                  ".env",
		"/ws/sub/dir/.env":          ".env",
		"/ws/.env.local":            ".env.local",
		"/ws/.env.production":       ".env.production",
		"/ws/.env.example.local":    ".env.example.local",
		"/ws/.ENV":                  ".env",
		"/ws/.env.":                 ".env",
		"/ws/.env ":                 ".env",
		"/ws/.e\u200bnv":            ".env",
		"/ws/.e\u034fnv":            ".env",
		"/ws/.env:x":                ".env",
		"/ws/ENV~1":                 ".env",
		"/home/me/.ssh/config":      ".ssh",
		"/home/me/.SSH/config":      ".ssh",
		"/home/me/.aws/credentials": ".aws",
		"/home/me/.kube/config":     ".kube",
		"/home/me/.gnupg/x":         ".gnupg",
		"/home/me/.netrc":           ".netrc",
		"/home/me/.git-credentials": ".git-credentials",
		"/ws/id_rsa":                "id_rsa",
		"/ws/id_ed25519":            "id_ed25519",
		"/ws/ID_RSA":                "id_rsa",
		"/ws/server.key":            "server.key",
		"/ws/server.KEY":            "server.key",
		"/ws/cert.pem":              "cert.pem",
		"/ws/store.p12":             "store.p12",
		"/ws/.env.example":          "",
		"/ws/.env.sample":           "",
		"/ws/.env.template":         "",
		"/ws/.ENV.Example":          "",
		"/ws/env":                   "",
		"/ws/.environment":          "",
		"/ws/id_rsa.pub":            "",
		"/ws/key.go":                "",
		"/ws/monkey":                "",
		"/ws/.git/config":           "",
		"/ws/.envrc":                "",
		"/":                         "",
	} {
		if got := Secret(p); got != want {
			t.Errorf("%+q: %q, want %q", p, got, want)
		}
	}
}

// A tool's policy names what is protected by a root at it or in it, and nothing else by it.
func TestNames(t *testing.T) {
	for _, tc := range []struct {
		root, path string
		want       bool
	}{
		{"/ws/.vscode", "/ws/.vscode/tasks.json", true},
		{"/ws/.vscode", "/ws/.vscode", true},
		{"/ws/.vscode/tasks.json", "/ws/.vscode/tasks.json", true},
		{"/ws/.git/hooks", "/ws/.git/hooks/pre-commit", true},
		{"/ws/.VSCode", "/ws/.VSCode/x", true},
		{"/ws/.git", "/ws/.git", true},
		{"/ws", "/ws/.vscode/tasks.json", false},
		{"/", "/ws/.vscode/tasks.json", false},
		{"/ws/.vscode", "/ws/.vscode2/x", false},
		{"/ws/.vscode/tasks.json", "/ws/.vscode/settings.json", false},
		{"/ws/.vscode", "/ws/.claude/x", false},
		{"/ws/.vscode", "/ws/.vscode/.git/hooks/x", false},
		{"/ws/.git", "/ws/.git/hooks/x", false},
		{"/ws/.git", "/ws/.git/config", false},
		{"/ws/.vscode", "/ws/.vscode/.env", false},
		{"/ws/.env", "/ws/.env", false},
		{"/ws/.ssh", "/ws/.ssh/config", false},
	} {
		if got := Names([]string{"/elsewhere", tc.root}, tc.path); got != tc.want {
			t.Errorf("%s, %s: %v", tc.root, tc.path, got)
		}
	}
}
