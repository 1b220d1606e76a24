package engine

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
)

// mostSecret bounds what is read of a file of one secret.
const mostSecret = 64 << 10

// secretOf reads a secret by its reference. Errors name the reference, never the value.
func secretOf(_ context.Context, ref string) ([]byte, error) {
	if name, ok := strings.CutPrefix(ref, "env:"); ok {
		v, set := os.LookupEnv(name)
		if !set || v == "" {
			return nil, fmt.Errorf("%s is not set where the daemon runs; start 'writ serve' with it, or use file:/path", ref)
		}
		return []byte(v), nil
	}
	path, ok := strings.CutPrefix(ref, "file:")
	if !ok {
		return nil, fmt.Errorf("%q is no reference; write env:NAME or file:/path", ref)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can read or write %s (mode %04o); run: chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return io.ReadAll(io.LimitReader(f, mostSecret))
}
