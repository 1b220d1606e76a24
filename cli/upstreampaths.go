package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/writ-run/writ/catalog"
	"github.com/writ-run/writ/config"
	"github.com/writ-run/writ/policy"
	"github.com/writ-run/writ/sandbox"
)

// full is a path that means the same wherever it is read.
func full(p string) string {
	if strings.HasPrefix(p, "~/") {
		return p
	}
	abs, err := filepath.Abs(p)
	if err != nil {
		return p // the check of the configuration refuses it
	}
	return abs
}

// startable makes a program's path absolute and lets its box read what the program is, and
// where it starts: without those nothing would run. What it gave without being asked for is
// returned, as it is to be said.
func startable(u *config.Upstream) (notes []string) {
	if len(u.Command) == 0 {
		return nil
	}
	u.Command, u.Read = slices.Clone(u.Command), slices.Clone(u.Read)
	reaches := func(p string) bool {
		return slices.ContainsFunc(slices.Concat(sandbox.Programs(), u.Read, u.Write), func(dir string) bool { return policy.Below(config.AtHome(p), config.AtHome(dir)) })
	}
	if u.Dir != "" && !reaches(u.Dir) {
		u.Read = append(u.Read, u.Dir)
	}
	if strings.Contains(u.Command[0], "/") {
		u.Command[0] = full(u.Command[0])
	}
	notes = wholeScript(u)
	program, script := config.AtHome(u.Command[0]), catalog.Script(*u)
	if filepath.IsAbs(program) && !reaches(program) {
		u.Read = append(u.Read, startsFrom(program, false))
	}
	if script != "" && !reaches(script) {
		from := startsFrom(script, true)
		u.Read = append(u.Read, from)
		notes = append(notes, fmt.Sprintf("its box reads %s, for the script %s", from, filepath.Base(script)))
	}
	return notes
}

// wholeScript writes out where a script lies that is named from here: the server starts
// elsewhere.
func wholeScript(u *config.Upstream) (notes []string) {
	for i, arg := range u.Command {
		info, err := os.Stat(arg)
		if i == 0 || u.Dir != "" || filepath.IsAbs(arg) || strings.HasPrefix(arg, "-") || !strings.ContainsAny(arg, "/.") || strings.Trim(arg, "./") == "" || err != nil {
			continue
		}
		if i == catalog.ScriptAt(u.Command) && info.Mode().IsRegular() {
			u.Command[i] = full(arg)
			notes = append(notes, fmt.Sprintf("its script %s is written out as %s: it does not start here", arg, u.Command[i]))
			continue
		}
		notes = append(notes, fmt.Sprintf("its argument %s is a path from here, and it does not start here; where the path is meant, write it out: %s", arg, full(arg)))
	}
	return notes
}

// startsFrom is what a program or a script needs to be read: with what lies beside it where
// that is the rest of it, and alone where the directory has more in it than that: a home, a
// directory of many things, secrets.
func startsFrom(path string, script bool) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path
	}
	dir := filepath.Dir(real)
	above, _, packages := strings.Cut(path, "/node_modules/")
	environment := filepath.Dir(filepath.Dir(path))
	_, venv := os.Stat(filepath.Join(environment, "pyvenv.cfg"))
	switch {
	case packages:
		return above + "/node_modules"
	case venv == nil && !broad(environment):
		return environment
	case script && !broad(dir):
		return dir
	case script:
		return real
	}
	return path
}

// broad reports whether a directory has more in it than a program.
func broad(dir string) bool {
	home, err := os.UserHomeDir()
	if err != nil || policy.Below(home, dir) || filepath.Dir(dir) == "/" || dir == "/var/tmp" || policy.Secret(dir) != "" || filepath.Base(dir) == ".config" {
		return true
	}
	there, err := os.ReadDir(dir)
	return err != nil || slices.ContainsFunc(there, func(e os.DirEntry) bool { return policy.Secret(e.Name()) != "" })
}
