//go:build unix

package engine

import (
	"errors"
	"os"
	"syscall"
)

// openRegular opens a file without following a link that took its place and without
// waiting for the other end of a pipe.
func openRegular(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, errors.New("not a regular file"), f.Close())
	}
	return f, nil
}
