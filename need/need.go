// Package need is how a test says what it cannot do without. What is missing skips
// the test; with WRIT_NEED=all, as in CI, it fails: a missing component is not a pass.
package need

import (
	"os"
	"path/filepath"
	"testing"
)

// Lacking ends a test whose surroundings lack something.
func Lacking(t testing.TB, format string, args ...any) {
	t.Helper()
	if os.Getenv("WRIT_NEED") == "all" {
		t.Fatalf("WRIT_NEED=all, and "+format, args...)
	}
	t.Skipf(format, args...)
}

// Programs needs programs, where boxes look for them or in the PATH.
func Programs(t testing.TB, names ...string) {
	t.Helper()
	dirs := append([]string{"/usr/local/bin", "/usr/bin", "/bin"}, filepath.SplitList(os.Getenv("PATH"))...)
	for _, name := range names {
		found := false
		for _, dir := range dirs {
			info, err := os.Stat(filepath.Join(dir, name))
			found = found || err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
		}
		if !found {
			Lacking(t, "%s is not installed", name)
		}
	}
}

// Root needs to be root: for mounts, other users and owners.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Lacking(t, "this takes root")
	}
}
