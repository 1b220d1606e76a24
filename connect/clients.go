package connect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Target is a file of a client's, and how the entry is written in it.
type Target struct {
	File     string
	Language Language
	Within   string      // a link may lead no further than this directory; "" is anywhere
	Mode     os.FileMode // of a new file
	Own      bool        // its directory is the client's alone, and made where there is none
}

// madeMode is that of a directory which connect makes.
const madeMode = 0o700

// Tidy removes the directory of a file that was removed, where connect may have made it
// and nothing is left in it. Whether it did is not written down anywhere: an empty one
// that is for its owner alone is not worth more than one that the client makes again.
func (t Target) Tidy() error {
	dir := filepath.Dir(t.File)
	info, err := os.Lstat(dir)
	if !t.Own || err != nil || info.Mode() != os.ModeDir|madeMode {
		return nil
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		return nil
	}
	return os.Remove(dir)
}

// Scopes are Claude Code's, as it names them.
var Scopes = []string{"user", "project", "local"}

// ClaudeCode is the file that Claude Code reads for a scope, started in dir.
func ClaudeCode(scope, dir string) (Target, error) {
	if scope == "project" {
		return Target{filepath.Join(dir, ".mcp.json"), JSON{[]string{"mcpServers"}}, dir, 0o644, false}, nil
	}
	file, err := claudeFile()
	if err != nil {
		return Target{}, err
	}
	own := os.Getenv("CLAUDE_CONFIG_DIR") != ""
	switch scope {
	case "user":
		return Target{file, JSON{[]string{"mcpServers"}}, "", 0o600, own}, nil
	case "local":
		project, err := claudeProject(dir)
		return Target{file, JSON{[]string{"projects", project, "mcpServers"}}, "", 0o600, own}, err
	}
	return Target{}, fmt.Errorf("there is no scope %q", scope)
}

// claudeFile follows Claude Code: an old file in its directory wins where there is one.
func claudeFile() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	own, parent := filepath.Join(home, ".claude"), home
	if dir := os.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		own, parent = dir, dir
	}
	if old := filepath.Join(own, ".config.json"); exists(old) {
		return filepath.Abs(old)
	}
	return filepath.Abs(filepath.Join(parent, ".claude.json"))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// claudeProject is the name that Claude Code has for the project of a directory: the
// root of its repository, that of the main one for a work tree, or the directory.
func claudeProject(dir string) (string, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", err
	}
	for root := dir; ; root = filepath.Dir(root) {
		if git := filepath.Join(root, ".git"); exists(git) {
			return filepath.ToSlash(mainTree(root, git)), nil
		}
		if root == filepath.Dir(root) {
			return filepath.ToSlash(dir), nil
		}
	}
}

// mainTree is the repository that a work tree belongs to, where both say so.
func mainTree(root, git string) string {
	text, err := os.ReadFile(git) // a directory, in a repository that is no work tree
	own, ok := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
	if err != nil || !ok {
		return root
	}
	if !filepath.IsAbs(own) {
		own = filepath.Join(root, own)
	}
	back, err1 := os.ReadFile(filepath.Join(own, "gitdir"))
	common, err2 := os.ReadFile(filepath.Join(own, "commondir"))
	if err1 != nil || err2 != nil || filepath.Clean(strings.TrimSpace(string(back))) != git {
		return root
	}
	shared := filepath.Join(own, strings.TrimSpace(string(common)))
	if filepath.Base(shared) != ".git" || filepath.Dir(own) != filepath.Join(shared, "worktrees") {
		return root
	}
	return filepath.Dir(shared)
}

// Codex is the file that Codex reads.
func Codex() (Target, error) {
	if dir := os.Getenv("CODEX_HOME"); dir != "" {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return Target{}, fmt.Errorf("CODEX_HOME is %s, which is not a directory, and Codex does not start with it; make it, or unset CODEX_HOME", dir)
		}
		file, err := filepath.Abs(filepath.Join(dir, "config.toml"))
		return Target{file, TOML{}, "", 0o600, false}, err // without the directory Codex does not start
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return Target{}, errors.Join(err, errors.New("set HOME, or CODEX_HOME"))
	}
	return Target{filepath.Join(home, ".codex", "config.toml"), TOML{}, "", 0o600, true}, nil
}
