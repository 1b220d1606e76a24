//go:build !linux

package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// direct looks at a directory by an absolute path that must have no symlink on it.
func direct(path string) (fs.FileInfo, error) {
	for at := path; at != filepath.Dir(at); at = filepath.Dir(at) {
		info, err := os.Lstat(at)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			return nil, errMoved
		}
	}
	return os.Lstat(path)
}

func kernelOwned(*os.File) bool { return false }

func renameNew(int, string, int, string) error { return errors.ErrUnsupported }
