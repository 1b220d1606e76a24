package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/sandbox/subprocess"
	"github.com/writ-run/writ/sandbox/wrapped"
	"github.com/writ-run/writ/store"
	"github.com/writ-run/writ/tool"
)

func TestMain(m *testing.M) {
	wrapped.Main()
	subprocess.Main() // the tests' own program becomes the boxes
	os.Exit(m.Run())
}

// fixture is an engine over a configuration in a directory of its own, with a clock
// that only a test moves.
type fixture struct {
	*Engine
	t     *testing.T
	dir   string
	there bool // alice

	mu  sync.Mutex
	now time.Time
}

const (
	passphrase = "correct horse battery"
	agentsText = `version: 1
listen: 127.0.0.1:0
store: {path: $DIR/state}
workspaces: {main: {path: $DIR/ws}}
agents:
  coder: {workspace: main}
`
)

func newFixture(t *testing.T, text string, o Options) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir(), now: time.Date(2026, 3, 1, 10, 0, 0, 0, time.UTC)}
	f.dir, _ = filepath.EvalSymlinks(f.dir)
	for _, d := range []string{"ws", "state"} {
		f.must(os.Mkdir(filepath.Join(f.dir, d), 0o700))
	}
	f.write("writ.yaml", text)
	f.reopen(o)
	return f
}

// alice is the person there is, once somebody asks for her.
func (f *fixture) alice() Credentials {
	f.t.Helper()
	c := Credentials{Name: "alice", Passphrase: passphrase}
	if !f.there {
		f.there = true
		f.must(f.AddFirstPerson(f.t.Context(), c))
	}
	return c
}

// reopen opens the engine, again after the first time.
func (f *fixture) reopen(o Options) {
	f.t.Helper()
	if f.Engine != nil {
		f.must(f.Engine.Close())
	}
	o.Config, o.Now, o.Log = filepath.Join(f.dir, "writ.yaml"), f.clock, slog.New(slog.DiscardHandler)
	e, err := Open(f.t.Context(), o)
	f.must(err)
	if f.Engine == nil {
		f.t.Cleanup(func() { f.must(f.Engine.Close()) })
	}
	f.Engine = e
}

func (f *fixture) clock() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

func (f *fixture) pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

func (f *fixture) must(err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) write(name, text string) {
	f.t.Helper()
	path := filepath.Join(f.dir, name)
	f.must(os.MkdirAll(filepath.Dir(path), 0o700))
	f.must(os.WriteFile(path, []byte(strings.ReplaceAll(text, "$DIR", f.dir)), 0o600))
}

// call makes a call of the agent coder, or of the one named in c.
func (f *fixture) call(toolName string, args any, change ...func(*Call)) (Outcome, error) {
	f.t.Helper()
	b, err := json.Marshal(args)
	f.must(err)
	c := Call{Agent: "coder", Tool: toolName, Args: b}
	for _, ch := range change {
		ch(&c)
	}
	return f.Do(f.t.Context(), c)
}

func in(session, task string) func(*Call) {
	return func(c *Call) { c.Session, c.Task = session, task }
}

func wants(t *testing.T, err error, kind writ.Kind, text string) {
	t.Helper()
	got, msg := writ.Public(err)
	if err == nil || got != kind || !strings.Contains(msg, text) {
		t.Errorf("got %q (%s), want %s with %q", msg, got, kind, text)
	}
}

// kinds counts the entries of the ledger by kind.
func (f *fixture) kinds() map[string]int {
	f.t.Helper()
	out := map[string]int{}
	for e, err := range f.store.Entries(f.t.Context()) {
		f.must(err)
		out[e.Kind]++
	}
	return out
}

// probe is a registered tool that a test steers.
func probe(name string, act action.Type, run func(context.Context, json.RawMessage) (writ.Result, error)) Tool {
	if run == nil {
		run = func(context.Context, json.RawMessage) (writ.Result, error) { return writ.Result{Content: name}, nil }
	}
	return Tool{Name: name, Category: action.FileSystem, Action: act, Class: writ.ClassNone,
		Parameters: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}}}`), Run: run}
}

func bounded(t Tool, c tool.Constraints) Tool {
	t.Constraints = c
	return t
}

func each(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}

func args(n int) map[string]any { return map[string]any{"n": n} }

func text(format string, a ...any) writ.Result {
	return writ.Result{Content: fmt.Sprintf(format, a...)}
}

// pending is the requests that wait, the newest first.
func (f *fixture) pending() []store.Invocation {
	f.t.Helper()
	all, err := f.Store().InvocationsBefore(context.Background(), store.InvocationsOf{State: "pending", Now: f.ledger.Now()}, 0, 100)
	f.must(err)
	return all
}
