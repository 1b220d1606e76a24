package wrapped

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/writ-run/writ"
)

// systemDirs are where wrappers are looked for. Never in PATH: whoever chooses the
// wrapper chooses the box.
var systemDirs = []string{"/usr/bin", "/bin", "/usr/local/bin"}

// find is the wrapper of a name: a program of root's that nobody else can change, nor the
// directories that it is in. hint says how to get it.
func find(dirs []string, name, hint string) (string, error) {
	var why error
	for _, dir := range dirs {
		path, err := filepath.EvalSymlinks(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		if err = trusted(path); err == nil {
			return path, nil
		}
		why = err
	}
	if why != nil {
		return "", writ.Fail(writ.SandboxUnavailable, "sandbox_unavailable: "+why.Error()+"; reinstall it", nil)
	}
	return "", writ.Fail(writ.SandboxUnavailable, fmt.Sprintf("sandbox_unavailable: %s is not installed in %v; %s", name, dirs, hint), nil)
}

// trusted refuses a program that somebody besides root could put another in the place of.
func trusted(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not a program", path)
	}
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return fmt.Errorf("%s cannot be looked at", at)
		}
		st := info.Sys().(*syscall.Stat_t)
		if st.Uid != 0 || info.Mode()&0o022 != 0 && (st.Gid != 0 || info.Mode()&0o002 != 0) {
			return fmt.Errorf("%s can be changed by others than root", at)
		}
		if at == "/" {
			return nil
		}
	}
}
