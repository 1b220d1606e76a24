package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/need"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/sandbox/subprocess"
	"github.com/writ-run/writ/tool"
)

func TestMain(m *testing.M) {
	subprocess.Main()
	if ws := os.Getenv("WRIT_TEST_DAEMON"); ws != "" {
		daemon(ws)
	}
	os.Exit(m.Run())
}

type m = map[string]any

// driver is shared, since its probe takes a while.
var driver = sandbox.Set{subprocess.New(subprocess.Options{})}

// world is the tools of the family over real boxes, with a clock that stands still.
type world struct {
	ws      string // its working directory
	confine writ.Confinement
	jobs    *Jobs
	tools   map[string]*tool.Tool
	clock   atomic.Int64 // nanoseconds that the test let pass

	mu    sync.Mutex
	ended []Ended // what OnEnd was told
}

func newWorld(t testing.TB) *world {
	t.Helper()
	need.Programs(t, "bash", "sleep")
	ws, err := filepath.EvalSymlinks(t.TempDir())
	if err == nil && os.Geteuid() == 0 {
		err = os.Chown(ws, 65534, 65534)
	}
	if err != nil {
		t.Fatal(err)
	}
	w, err := worldIn(ws)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.jobs.Close)
	return w
}

func worldIn(ws string) (*world, error) {
	w := &world{ws: ws, tools: map[string]*tool.Tool{}, confine: writ.Confinement{Backend: "subprocess",
		Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process,
		Limits: writ.Limits{Wall: 20 * time.Second, Grace: 50 * time.Millisecond},
	}}
	now := func() time.Time { return time.Unix(1_800_000_000, w.clock.Load()) }
	w.jobs = NewJobs(driver, now, slog.New(slog.NewTextHandler(io.Discard, nil)))
	w.jobs.OnEnd = func(e Ended) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.ended = append(w.ended, e)
	}
	tools, err := Tools(Options{Boxes: driver, Jobs: w.jobs})
	for _, t := range tools {
		w.tools[t.Name] = t
	}
	return w, err
}

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

// coder is the caller of most tests.
var coder = writ.Call{ID: "call_1", Agent: "coder", Session: "s1", Task: "t1"}

// do takes one call of a tool through a gate, as the engine would.
func (w *world) do(ctx context.Context, who writ.Call, name string, args m) (writ.Result, error) {
	t := w.tools[name]
	raw, err := json.Marshal(args)
	if err != nil {
		return writ.Result{}, err
	}
	if who.Args, _, err = t.Args(raw); err != nil {
		return writ.Result{}, err
	}
	return w.under(ctx, who, t.Run)
}

// under runs something under a writ for a call.
func (w *world) under(ctx context.Context, who writ.Call, run tool.Func) (writ.Result, error) {
	who.Tool, who.Definition, who.Dir, who.Resolved = "test", writ.Digest{1}, w.ws, true
	g := gate{w.confine, run}
	return writ.NewGate(g, g, g, g).Do(ctx, who)
}

// start starts a job that must start.
func (w *world) start(t testing.TB, who writ.Call, command string) string {
	t.Helper()
	return w.startFor(t, who, m{"command": command, "background": true})
}

func (w *world) startFor(t testing.TB, who writ.Call, args m) string {
	t.Helper()
	res, err := w.do(t.Context(), who, "shell_command", args)
	if err != nil {
		t.Fatal(err)
	}
	id, _ := res.Metadata["job"].(string)
	if want := fmt.Sprintf("[job %s started; shell_job reads it]\n", id); id == "" || res.Content != want || res.IsError {
		t.Fatalf("started: %+v", res)
	}
	return id
}

// job is what shell_job answers, with the job's id written as JOB.
func (w *world) job(t testing.TB, who writ.Call, do, id string, more m) string {
	t.Helper()
	args := m{"do": do}
	if id != "" {
		args["job"] = id
	}
	for k, v := range more {
		args[k] = v
	}
	res, err := w.do(t.Context(), who, "shell_job", args)
	said := res.Content
	if err != nil {
		kind, msg := writ.Public(err)
		said = string(kind) + ": " + msg
	}
	if id != "" {
		said = strings.ReplaceAll(said, id, "JOB")
	}
	return said
}

// registered is the job itself.
func (w *world) registered(id string) *job {
	w.jobs.mu.Lock()
	defer w.jobs.mu.Unlock()
	return w.jobs.byID[id]
}

// over waits until a job is over.
func (w *world) over(id string) { <-w.registered(id).gone }

// ends is what OnEnd was told of a job.
func (w *world) ends(id string) []Ended {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []Ended
	for _, e := range w.ended {
		if e.Job == id {
			out = append(out, e)
		}
	}
	return out
}

// put makes a file that a command waits for.
func (w *world) put(t testing.TB, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.ws, name), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
}

// eventually waits for something that another process does.
func eventually(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
