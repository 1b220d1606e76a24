// Package sandboxtest is the suite that every sandbox driver passes. Each attack
// has a control: the same kind of thing, allowed, done by the same means. An
// attack whose control does not work proves nothing and fails the test.
//
// The suite needs bash, coreutils and python3 in the box's PATH. A missing one
// skips a test, or fails it when WRIT_NEED=all.
package sandboxtest

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
)

// Run runs the suite on a driver. Tests of features that its probe does not show
// are not run; that what they would need is refused is.
func Run(t *testing.T, d sandbox.Driver) {
	have, err := d.Probe(t.Context())
	if err != nil {
		t.Fatalf("driver %s cannot start boxes here: %v", d.Name(), err)
	}
	for _, f := range have {
		t.Logf("%-16s %-5v %s", f.Feature, f.Enforced, f.Evidence)
	}
	need.Programs(t, "bash", "cat", "python3")
	t.Run("refuse", func(t *testing.T) { testRefuse(t, d, have) })
	t.Run("read", func(t *testing.T) { testRead(t, d) })
	t.Run("write", func(t *testing.T) { testWrite(t, d) })
	t.Run("hide", func(t *testing.T) { testHide(t, d) })
	t.Run("exec", func(t *testing.T) { testExec(t, d) })
	t.Run("network", func(t *testing.T) { testNetwork(t, d) })
	t.Run("kernel", func(t *testing.T) { testKernel(t, d, have) })
	t.Run("processes", func(t *testing.T) { testProcesses(t, d) })
	t.Run("tree", func(t *testing.T) { testTree(t, d) })
	t.Run("limits", func(t *testing.T) { testLimits(t, d) })
	t.Run("environment", func(t *testing.T) { testEnvironment(t, d) })
	t.Run("io", func(t *testing.T) { testIO(t, d) })
}

// With calls f with a writ for c, as the gate gives one to a tool.
func With(t testing.TB, c writ.Confinement, dir string, f func(context.Context, writ.Writ)) {
	t.Helper()
	g := gate{c, f}
	_, err := writ.NewGate(g, g, g, g).Do(t.Context(), writ.Call{
		ID: "test", Agent: "test", Tool: "test", Definition: writ.Digest{1}, Dir: dir, Resolved: true,
	})
	if err != nil {
		t.Fatalf("the gate refused: %v", err)
	}
}

type gate struct {
	confine writ.Confinement
	run     func(context.Context, writ.Writ)
}

func (g gate) Decide(context.Context, writ.Call) (writ.Decision, error) {
	return writ.Decision{Effect: writ.Allow, Confine: g.confine}, nil
}
func (g gate) Approve(context.Context, writ.Call, writ.Decision) (writ.Approval, error) {
	return writ.Approval{}, errors.New("nobody is asked")
}
func (g gate) Record(context.Context, writ.Event) error { return nil }
func (g gate) Run(ctx context.Context, w writ.Writ) (writ.Result, error) {
	g.run(ctx, w)
	return writ.Result{}, nil
}

// An Outcome is how one command in one box went.
type Outcome struct {
	Out, Err string
	Exit     sandbox.Exit
	Error    error
}

// Command runs argv in a box and waits for it. Output beyond a mebibyte is cut.
func Command(t testing.TB, d sandbox.Driver, c writ.Confinement, spec sandbox.Spec) Outcome {
	t.Helper()
	var o Outcome
	out, errs := sandbox.NewTail(1<<20), sandbox.NewTail(1<<20)
	With(t, c, "", func(ctx context.Context, w writ.Writ) {
		if spec.Stdout == nil {
			spec.Stdout = out
		}
		spec.Stderr = errs
		b, err := d.Start(ctx, w, spec)
		if err != nil {
			o.Error = err
			return
		}
		o.Exit, o.Error = b.Wait(ctx)
	})
	o.Out, o.Err = out.String(), errs.String()
	return o
}

// canary is in everything that a box must not see.
const canary = "CANARY-7f1c"

// A world is what a box has and does not have, on a disk that is not /tmp. All
// of it belongs to the user of the box, so that owners and modes stop nothing.
type world struct {
	base, ws, ro, out  string
	hidden, hiddenFile string // in ro
}

func newWorld(t testing.TB) *world {
	t.Helper()
	base := scratch(t)
	w := &world{base, filepath.Join(base, "ws"), filepath.Join(base, "ro"), filepath.Join(base, "out"), filepath.Join(base, "ro/hidden"), filepath.Join(base, "ro/hiddenfile")}
	for _, dir := range []string{w.ws, w.ro, w.out, w.hidden, filepath.Join(w.ws, "keep/hidden")} {
		must(t, os.MkdirAll(dir, 0o755))
	}
	for path, text := range map[string]string{
		"ws/file": "mine\n", "ro/file": "shared\n", "out/canary": canary, "out/link-to-me": canary,
		"ro/hidden/canary": canary, "ro/hiddenfile": canary, "ws/keep/hidden/canary": canary,
	} {
		must(t, os.WriteFile(filepath.Join(base, path), []byte(text), 0o644))
	}
	if os.Geteuid() == 0 {
		must(t, filepath.WalkDir(base, func(path string, _ os.DirEntry, err error) error {
			return errors.Join(err, os.Lchown(path, 65534, 65534))
		}))
	}
	return w
}

// scratch is a directory of this test that is not below /tmp, which is the
// box's own.
func scratch(t testing.TB) string {
	t.Helper()
	home, _ := os.UserHomeDir()
	cwd, _ := os.Getwd()
	for _, parent := range []string{os.Getenv("WRIT_TEST_DIR"), "/srv", "/opt", "/var/lib", home, cwd} {
		if parent == "" {
			continue
		}
		if dir, err := os.MkdirTemp(parent, "writ-test-"); err == nil {
			must(t, os.Chmod(dir, 0o755))
			t.Cleanup(func() { os.RemoveAll(dir) })
			return dir
		}
	}
	t.Fatal("no directory for the test; set WRIT_TEST_DIR")
	return ""
}

// confinement lets a box read ro and write ws.
func (w *world) confinement() writ.Confinement {
	return writ.Confinement{
		Read: []string{w.ro}, Write: []string{w.ws}, Hide: []string{w.hidden, w.hiddenFile, filepath.Join(w.ws, "keep/hidden")},
		Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process,
		Limits: writ.Limits{Wall: 20 * time.Second, Grace: 100 * time.Millisecond},
	}
}

// bash runs a script in a box of d. $WS, $RO, $OUT, $BASE and $HID name the world.
func (w *world) bash(t testing.TB, d sandbox.Driver, c writ.Confinement, script string, env ...string) Outcome {
	t.Helper()
	vars := map[string]string{"WS": w.ws, "RO": w.ro, "OUT": w.out, "BASE": w.base, "HID": w.hidden, "HIDFILE": w.hiddenFile}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		maps.Copy(vars, map[string]string{name: value})
	}
	return Command(t, d, c, sandbox.Spec{Argv: []string{"bash", "-c", script}, Dir: w.ws, Env: vars})
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
