//go:build unix

package sandboxtest

import (
	"os"
	"syscall"
	"testing"
)

// makeFIFO makes a pipe that anyone may write to, and keeps it open for reading.
func makeFIFO(t testing.TB, path string) {
	must(t, syscall.Mkfifo(path, 0o666))
	must(t, os.Chmod(path, 0o666))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	t.Cleanup(func() { f.Close() })
}
