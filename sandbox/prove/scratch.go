package prove

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// where boxes look for programs.
var systemPath = []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}

// Missing is an error that names the programs the suite cannot do without and that boxes
// would not find, or nil.
func Missing() error { return missingIn(systemPath) }

func missingIn(dirs []string) error {
	var missing []string
	for _, name := range []string{"bash", "cat", "python3"} {
		if realIn(dirs, name) == "" {
			missing = append(missing, name)
		}
	}
	if missing == nil {
		return nil
	}
	return fmt.Errorf("the suite needs %s in %s; install it with the system's packages (Debian: apt-get install bash coreutils python3)",
		strings.Join(missing, " and "), strings.Join(dirs, ", "))
}

// real is the file that the name of a program leads to in a box; empty: none.
func real(name string) string { return realIn(systemPath, name) }

func realIn(dirs []string, name string) string {
	for _, dir := range dirs {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path
		}
	}
	return ""
}

// named is the file of a program as it is found by name, and what that leads to.
func named(name string) []string {
	for _, dir := range systemPath {
		path := filepath.Join(dir, name)
		if to, err := filepath.EvalSymlinks(path); err == nil {
			return []string{path, to}
		}
	}
	return nil
}

// private are the directories that every box has of its own: worlds below them would not
// be where the host has them.
var private = []string{"/tmp", "/var/tmp", "/dev/shm"}

// scratch makes a directory of this run: in the one given, or else in the first in which
// it can be made and which the user of the box can get to.
func scratch(parent string) (string, error) {
	parents := []string{parent}
	if parent == "" {
		home, _ := os.UserHomeDir()
		cache, _ := os.UserCacheDir()
		cwd, _ := os.Getwd()
		parents = []string{"/srv", "/opt", "/var/lib", cache, home, cwd}
	}
	var failed error
	for _, parent := range parents {
		real, err := filepath.EvalSymlinks(parent)
		if err == nil {
			err = reachable(real)
		}
		if err == nil {
			real, err = os.MkdirTemp(real, "writ-prove-")
		}
		if err == nil {
			return real, os.Chmod(real, 0o755)
		}
		failed = errors.Join(failed, err)
	}
	return "", fmt.Errorf("there is no place for scratch directories (%w); run it in a directory of yours that is not below /tmp and that everybody may enter", failed)
}

// reachable says why boxes of the suite could not work below a directory.
func reachable(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("%q is not an absolute path", dir)
	}
	for _, p := range private {
		if dir == p || strings.HasPrefix(dir, p+"/") {
			return fmt.Errorf("%s lies in %s, which every box has of its own", dir, p)
		}
	}
	for at := dir; os.Geteuid() == 0; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if info.Mode()&0o001 == 0 {
			return fmt.Errorf("%s cannot be entered by others, as whom boxes run when this is root", at)
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	return nil
}

// first is the first of some paths that everybody can read as a file; empty: none.
func first(paths ...string) string {
	i := slices.IndexFunc(paths, func(path string) bool {
		info, err := os.Lstat(path)
		return err == nil && info.Mode().IsRegular() && info.Mode()&0o004 != 0
	})
	if i < 0 {
		return ""
	}
	return paths[i]
}

// loader is the ELF loader, if there is one.
func loader() string {
	for _, pattern := range []string{"/lib64/ld-linux*.so.*", "/lib/ld-linux*.so.*", "/lib/ld-musl*.so.*"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	return ""
}
