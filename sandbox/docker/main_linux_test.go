package docker

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/writ-run/writ/sandbox/probe"
)

// program is the one that ships. The tests' own would do in boxes as well, but watched
// for races it takes four times as long to begin, and every box begins it several times.
var program string

func TestMain(m *testing.M) {
	probe.Main()
	Main()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("/srv", "writ-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	program = filepath.Join(dir, "writd")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "../../cmd/writd")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile has it: it is built already
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}
