package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The program that people type hands over to the one beside it, with what it was given, and
// says what is missing where there is none.
func TestHandOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, standard, "")
	alone := filepath.Join(w.home, "alone")
	if err := os.Mkdir(alone, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", program, filepath.Join(alone, "writ")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	in := func(args ...string) (string, int) {
		t.Helper()
		cmd := exec.Command(filepath.Join(alone, "writ"), args...)
		cmd.Env, cmd.Dir = w.env(), w.ws
		out, err := cmd.CombinedOutput()
		var ended *exec.ExitError
		if err != nil && !errors.As(err, &ended) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	hint := "writ: " + filepath.Join(alone, "writd") + " cannot be started, to which this is handed over: "
	if out, code := in("--version"); code != 0 || !strings.HasPrefix(out, "writ version ") {
		t.Errorf("its version: exit %d: %s", code, out)
	}
	heavy := [][]string{{"serve"}, {"doctor"}, {"nonsense"}, {}, {"--config", "/x", "call", "y"}, {"__complete", ""}}
	for _, args := range heavy {
		if out, code := in(args...); code != 1 || !strings.HasPrefix(out, hint+"no such file or directory; 'make build' makes both") {
			t.Errorf("%q alone: exit %d: %s", args, code, out)
		}
	}
	if out, code := in("tool", "list"); code != 1 || !strings.Contains(out, "start the daemon: ") {
		t.Errorf("no daemon to be started: exit %d: %s", code, out)
	}
	if out, code := in("config", "check"); code != 0 {
		t.Errorf("what needs no engine: exit %d: %s", code, out)
	}
	if err := os.Symlink("writ", filepath.Join(alone, "writd")); err != nil {
		t.Fatal(err)
	}
	if out, code := in("doctor"); code != 1 || !strings.HasPrefix(out, hint+"it is the same program") {
		t.Errorf("to itself: exit %d: %s", code, out)
	}
	if out, err := exec.Command("cp", "--remove-destination", program, filepath.Join(alone, "writd")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if out, code := in("doctor"); code != 1 || !strings.HasPrefix(out, hint+"it is the same program") {
		t.Errorf("to a copy of itself: exit %d: %s", code, out)
	}
	if err := os.Remove(filepath.Join(alone, "writd")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(filepath.Dir(program), "writd"), filepath.Join(alone, "writd")); err != nil {
		t.Fatal(err)
	}
	if out, code := in("--version"); code != 0 || !strings.HasPrefix(out, "writ version ") {
		t.Errorf("with it: exit %d: %s", code, out)
	}
	if out, code := in("nonsense"); code != 2 || !strings.Contains(out, `unknown command "nonsense"`) {
		t.Errorf("with it, nonsense: exit %d: %s", code, out)
	}
	if out, code := in("__complete", "ser"); code != 0 || !strings.HasPrefix(out, "serve\t") {
		t.Errorf("completion: exit %d: %s", code, out)
	}
	out, _ := in("--help")
	for _, name := range []string{"call", "doctor", "run", "serve"} {
		if !strings.Contains(out, "\n  "+name+" ") {
			t.Errorf("the help has no %s:\n%s", name, out)
		}
	}
}
