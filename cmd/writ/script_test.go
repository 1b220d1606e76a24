package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the command line as a person types it, on a real terminal
// where one is needed.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.RunT(inTurn{t}, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			home := filepath.Join(e.WorkDir, "home")
			workspace := filepath.Join(e.WorkDir, "ws")
			e.Setenv("HOME", home)
			e.Setenv("WORKSPACE", workspace)
			e.Setenv("PATH", filepath.Dir(program)+":"+e.Getenv("PATH"))
			return os.MkdirAll(home, 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
	})
}

// inTurn runs scripts one after the other: their daemons have the port that init gives.
type inTurn struct{ *testing.T }

func (inTurn) Parallel() {}

func (inTurn) Verbose() bool { return testing.Verbose() }

func (t inTurn) Run(name string, f func(testscript.T)) {
	t.T.Run(name, func(t *testing.T) { f(inTurn{t}) })
}

// exits runs writ and demands an exit code: exits CODE ARGS…
func exits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("writ", args[1:]...)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		ts.Fatalf("%v", err)
	}
	got := 0
	if exit != nil {
		got = exit.ExitCode()
	}
	if (got == want) == neg {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}
