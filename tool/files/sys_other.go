//go:build !unix

package files

import (
	"io/fs"
	"os"
	"path/filepath"
)

const nonblock = 0

func rename(from, to place, _ bool) error {
	return os.Rename(filepath.Join(from.dir.Name(), from.name), filepath.Join(to.dir.Name(), to.name))
}

func adopt(*os.File, fs.FileInfo) error { return nil }

func give(*os.Root, fs.FileInfo) error { return nil }
