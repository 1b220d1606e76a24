package catalog

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox"
)

// Outside are existing paths that a server's command names and its box does not reach, as
// far as that can be told.
func Outside(u config.Upstream) []string {
	if len(u.Command) == 0 {
		return nil
	}
	var roots []string
	for _, p := range slices.Concat(sandbox.Programs(), u.Read, u.Write) {
		if real, err := filepath.EvalSymlinks(config.AtHome(p)); err == nil {
			p = real
		}
		roots = append(roots, p)
	}
	var out []string
	for _, arg := range u.Command[1:] {
		if _, v, ok := strings.Cut(arg, "="); ok && strings.HasPrefix(arg, "-") {
			arg = v
		}
		arg = config.AtHome(arg)
		real, err := filepath.EvalSymlinks(arg)
		if err != nil || !filepath.IsAbs(arg) || slices.ContainsFunc(roots, func(root string) bool { return policy.Below(real, root) }) {
			continue
		}
		if !slices.Contains(out, arg) {
			out = append(out, arg)
		}
	}
	return out
}

// ScriptAt is which argument of a command is the script that an interpreter runs; 0: none.
func ScriptAt(command []string) int {
	if len(command) == 0 || !interprets(command[0]) {
		return 0
	}
	for i, arg := range command[1:] {
		switch {
		case arg == "-c" || arg == "-e" || arg == "-m" || arg == "--": // what follows is no script, or somebody took care
			return 0
		case !strings.HasPrefix(arg, "-"):
			return i + 1
		}
	}
	return 0
}

// Script is the path of the script that a server is, where it is one.
func Script(u config.Upstream) string {
	i := ScriptAt(u.Command)
	if i == 0 {
		return ""
	}
	path := config.AtHome(u.Command[i])
	if info, err := os.Stat(path); err != nil || !filepath.IsAbs(path) || !info.Mode().IsRegular() {
		return ""
	}
	return path
}

// interprets reports whether a program is one that runs a script.
func interprets(program string) bool {
	base := strings.TrimRight(filepath.Base(program), "0123456789.")
	return slices.Contains([]string{"node", "python", "deno", "bun", "ruby", "perl", "sh", "bash", "php"}, base)
}
