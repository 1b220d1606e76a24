package files

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/tool"
)

// canary is in every file that no call may read or change.
const canary = "CANARY-51e7"

// A world is a workspace, and beside it a directory out of reach.
type world struct {
	ws, out string
	confine writ.Confinement
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return worldIn(t, t.TempDir())
}

func worldIn(t testing.TB, dir string) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(dir)
	must(t, err)
	w := &world{ws: filepath.Join(base, "ws"), out: filepath.Join(base, "out")}
	must(t, os.Mkdir(w.ws, 0o755))
	must(t, os.Mkdir(w.out, 0o755))
	must(t, os.WriteFile(filepath.Join(w.out, "canary"), []byte(canary), 0o644))
	w.confine = writ.Confinement{Read: []string{w.ws}, Write: []string{w.ws}}
	return w
}

// put writes a file of the workspace, with the directories above it.
func (w *world) put(t testing.TB, name, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(w.path(name)), 0o755))
	must(t, os.WriteFile(w.path(name), []byte(text), 0o644))
}

func (w *world) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(w.ws, name)
}

func (w *world) get(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(w.path(name))
	must(t, err)
	return string(b)
}

// safe fails the test if what lies outside was changed, or shows in text.
func (w *world) safe(t testing.TB, text string) {
	t.Helper()
	entries, err := os.ReadDir(w.out)
	must(t, err)
	if len(entries) != 1 || w.get(t, filepath.Join(w.out, "canary")) != canary {
		t.Fatalf("what lies outside was changed: %v", entries)
	}
	if strings.Contains(text, canary) {
		t.Fatalf("what lies outside was read: %q", text)
	}
}

// gate allows everything, within one confinement.
type gate struct {
	confine writ.Confinement
	run     tool.Func
}

func (g gate) Decide(context.Context, writ.Call) (writ.Decision, error) {
	return writ.Decision{Effect: writ.Allow, Confine: g.confine}, nil
}
func (g gate) Approve(context.Context, writ.Call, writ.Decision) (writ.Approval, error) {
	return writ.Approval{}, errors.New("nobody is asked")
}
func (g gate) Record(context.Context, writ.Event) error                  { return nil }
func (g gate) Run(ctx context.Context, w writ.Writ) (writ.Result, error) { return g.run(ctx, w) }

var tools = sync.OnceValues(Tools)

func named(t testing.TB, name string) *tool.Tool {
	t.Helper()
	all, err := tools()
	must(t, err)
	for _, tl := range all {
		if tl.Name == name {
			return tl
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

// try calls a tool through a gate. Paths are resolved against the workspace and
// no further: what stands there when the tool runs has come since.
func (w *world) try(t testing.TB, name string, args map[string]any) (writ.Result, error) {
	t.Helper()
	tl := named(t, name)
	raw, err := json.Marshal(args)
	must(t, err)
	canonical, value, err := tl.Args(raw)
	if err != nil {
		return writ.Result{}, err
	}
	c := writ.Call{ID: "c", Agent: "a", Tool: name, Definition: tl.Digest, Args: canonical, Dir: w.ws, Resolved: true}
	for _, found := range tl.Shape.Candidates(value) {
		c.Targets = append(c.Targets, writ.Target{Pointer: found.Pointer, Value: found.Value, Kind: found.Kind, Side: found.Side, Path: w.path(found.Value)})
	}
	g := gate{w.confine, tl.Run}
	return writ.NewGate(g, g, g, g).Do(t.Context(), c)
}

// ok is try for what must work.
func (w *world) ok(t testing.TB, name string, args map[string]any) string {
	t.Helper()
	res, err := w.try(t, name, args)
	if err != nil || res.IsError {
		t.Fatalf("%s %v: %q, %v", name, clipped(args), res.Content, err)
	}
	return res.Content
}

// fails is try for what must fail in the tool, in these words.
func (w *world) fails(t testing.TB, name string, args map[string]any, want string) {
	t.Helper()
	res, err := w.try(t, name, args)
	if err != nil || !res.IsError || strings.ReplaceAll(res.Content, w.ws, "$WS") != want {
		t.Errorf("%s %v:\n  got  %q, %v\n  want %q", name, clipped(args), res.Content, err, want)
	}
}

// denied is try for what the confinement must not let happen.
func (w *world) denied(t testing.TB, name string, args map[string]any) {
	t.Helper()
	if res, err := w.try(t, name, args); writ.KindOf(err) != writ.Denied {
		t.Errorf("%s %v: %q, %v", name, clipped(args), res.Content, err)
	}
}

func clipped(args map[string]any) string {
	b, _ := json.Marshal(args)
	return string(b[:min(len(b), 200)])
}

// leftovers are temporary files that a tool left.
func (w *world) leftovers(t testing.TB) []string {
	t.Helper()
	var found []string
	must(t, filepath.WalkDir(filepath.Dir(w.ws), func(p string, _ os.DirEntry, err error) error {
		if strings.Contains(filepath.Base(p), ".writ-") {
			found = append(found, p)
		}
		return err
	}))
	return found
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type m = map[string]any
