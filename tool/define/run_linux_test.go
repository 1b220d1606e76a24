package define

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
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
	os.Exit(m.Run())
}

var boxes = sandbox.Set{subprocess.New(subprocess.Options{})}

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

// workspace is a directory that boxes write in.
func workspace(t *testing.T) string {
	t.Helper()
	ws, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	if os.Geteuid() == 0 {
		must(t, os.Chown(ws, 65534, 65534))
	}
	return ws
}

// do takes one call of a definition through a gate into a real box.
func do(t *testing.T, ws, definition, args string) (writ.Result, error) {
	t.Helper()
	l, err := Load(document{text: definition}.files(t, t.TempDir(), "t.yaml"), registry(t))
	must(t, err)
	x, err := l.Tool(boxes)
	must(t, err)
	c := call(t, x, args)
	for i, target := range c.Targets {
		path, err := filepath.EvalSymlinks(filepath.Join(ws, target.Value))
		must(t, err)
		c.Targets[i].Path = path
	}
	c.ID, c.Agent, c.Definition, c.Dir = "call_1", "coder", x.Digest, ws
	g := gate{writ.Confinement{Backend: "subprocess",
		Write: []string{ws}, Exec: writ.Exec{Mode: writ.ExecAny}, Isolation: writ.Process,
		Limits: writ.Limits{Wall: cmp.Or(x.Limits.Wall, 20*time.Second), Grace: 50 * time.Millisecond},
	}, x.Run}
	return writ.NewGate(g, g, g, g).Do(t.Context(), c)
}

const scriptIn = "<< head\nparameters: {type: object, properties: {name: {type: string, x-writ-text: true}}}\nrunner: {script: {language: "

func TestRunsInBoxes(t *testing.T) {
	need.Programs(t, "bash", "cat", "python3")
	ws := workspace(t)
	must(t, os.WriteFile(filepath.Join(ws, "real"), []byte("text\n"), 0o644))
	must(t, os.Symlink("real", filepath.Join(ws, "link")))
	must(t, os.WriteFile(filepath.Join(ws, "json.py"), []byte("print('not the json of python')\n"), 0o644))
	for _, row := range []struct {
		name, definition, args string
		want                   string
		isError                bool
	}{
		{"element", "<< head\nparameters: {type: object, properties: {a: {type: string}}}\nrunner: {process: {argv: [echo, {arg: a}]}}\n", `{"a":"$(id) 'x'"}`, "$(id) 'x'\n", false},
		{"resolved path", "<< head\nparameters: {type: object, properties: {a: {type: string, x-writ-path: read}}}\nrunner: {process: {argv: [echo, {arg: a}]}}\n", `{"a":"link"}`, ws + "/real\n", false},
		{"path that is read", "<< head\nparameters: {type: object, properties: {a: {type: string, x-writ-path: read}}}\nrunner: {process: {argv: [cat, --, {arg: a}]}}\n", `{"a":"link"}`, "text\n", false},
		{"input", "<< head\nparameters: {type: object, properties: {a: {type: string}}}\nrunner: {process: {argv: [cat], stdin: {arg: a}}}\n", `{"a":"in\n"}`, "in\n", false},
		{"arguments as input", "<< head\nparameters: {type: object, properties: {a: {type: array}}}\nrunner: {process: {argv: [cat], stdin: json}}\n", `{"a":[1, "x"]}`, `{"a":[1,"x"]}` + "\n", false},
		{"status", "<< head\nrunner: {process: {argv: [\"false\"]}}\n", `{}`, "[exit status 1]\n", true},
		{"no input", "<< head\nrunner: {process: {argv: [cat]}}\n", `{}`, "[no output]\n", false},
		{"bash", scriptIn + "bash, code: 'cat; false | true'}}\n", `{"name":"x"}`, "{\"name\":\"x\"}\n[exit status 1]\n", true},
		{"python", scriptIn + "python, code: \"import json,sys\\nprint(json.load(sys.stdin)['name'])\"}}\n", `{"name":"Ada"}`, "Ada\n", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, err := do(t, ws, row.definition, row.args)
			must(t, err)
			if got.Content != row.want || got.IsError != row.isError || got.Metadata["driver"] != "subprocess" {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestRunsJavaScript(t *testing.T) {
	need.Programs(t, "node")
	got, err := do(t, workspace(t), scriptIn+"javascript, code: \"console.log(JSON.parse(require('fs').readFileSync(0)).name)\"}}\n", `{"name":"Ada"}`)
	must(t, err)
	if got.Content != "Ada\n" || got.IsError {
		t.Errorf("%+v", got)
	}
}

// The limits of a definition are what a box is held to.
func TestTimeout(t *testing.T) {
	need.Programs(t, "sleep")
	began := time.Now()
	got, err := do(t, workspace(t), "<< head\nlimits: {timeout: 1s}\nrunner: {process: {argv: [sleep, \"15\"]}}\n", `{}`)
	must(t, err)
	if !got.IsError || got.Metadata["limit"] != "timeout" || !strings.HasPrefix(got.Content, "[ended after ") || time.Since(began) > 12*time.Second {
		t.Errorf("%+v", got)
	}
}

// A value that is refused starts nothing.
func TestRefusedValueRunsNothing(t *testing.T) {
	ws := workspace(t)
	const touch = "<< head\nparameters: {type: object, properties: {a: {type: string}}}\nrunner: {process: {argv: [touch, made, {arg: a}]}}\n"
	_, err := do(t, ws, touch, `{"a":"-x"}`)
	if _, msg := writ.Public(err); writ.KindOf(err) != writ.Invalid || !strings.Contains(msg, `argument "a" begins with -`) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(ws, "made")); err == nil {
		t.Error("it ran")
	}
	need.Programs(t, "touch")
	if _, err := do(t, ws, touch, `{"a":"x"}`); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(ws, "made")); err != nil {
		t.Error("it did not run with a value that is taken")
	}
}
