package secret

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// File is files that nobody but the daemon's user, or root, can read.
type File struct{}

func (File) Read(_ context.Context, r Ref) (Value, error) {
	f, err := openPlain(r.Name) // a pipe that nobody writes to must not hold up a call
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Value{}, missing(r, "there is no such file; make it, with mode 0600", nil)
	case err != nil:
		return Value{}, missing(r, "the file cannot be read by the daemon's user", err)
	}
	defer f.Close()
	if why := exposed(f); why != "" {
		return Value{}, missing(r, why, nil)
	}
	text, err := io.ReadAll(io.LimitReader(f, MaxBytes+3))
	if err != nil {
		return Value{}, missing(r, "the file cannot be read", err)
	}
	line := strings.TrimSuffix(string(text), "\n")
	return New(strings.TrimSuffix(line, "\r")), nil
}

// exposed is why a file is no place for a secret, or "". It is asked of the open file:
// the name may lead elsewhere a moment later.
func exposed(f *os.File) string {
	info, err := f.Stat()
	switch {
	case err != nil:
		return "the file cannot be looked at"
	case !info.Mode().IsRegular():
		return "it is not a regular file; name one"
	case info.Mode().Perm()&0o077 != 0 && (!mine(info) || systems(f.Name())):
		return fmt.Sprintf("others can read or change the file (mode %04o), and it is not yours alone; copy the secret to a file of its own that only the daemon's user can read (mode 0600)", info.Mode().Perm())
	case info.Mode().Perm()&0o077 != 0:
		return fmt.Sprintf("others can read or change the file (mode %04o); run: chmod 600 %s", info.Mode().Perm(), f.Name())
	case !ours(info):
		return "the file belongs to somebody else; give it to the daemon's user or to root"
	}
	return ""
}

// systems says whether a file is one of the system's, whose mode programs count on.
func systems(name string) bool {
	for _, dir := range []string{"/etc/", "/usr/", "/lib/", "/bin/", "/sbin/", "/boot/", "/proc/", "/sys/"} {
		if strings.HasPrefix(filepath.Clean(name), dir) {
			return true
		}
	}
	return false
}
