//go:build !unix

package sqlite

import (
	"errors"
	"os"
)

// lock takes the file by making it. Elsewhere than on Unix writ is a client, and
// the store is opened by tests only.
func lock(path string) (release func() error, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, lockedBy(err)
	}
	return func() error { return errors.Join(f.Close(), os.Remove(path)) }, nil
}
