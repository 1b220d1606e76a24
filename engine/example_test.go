package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/action"
	"github.com/writ-run/writ/engine"
	"github.com/writ-run/writ/policy"
)

// A program that lets an agent write reports, and only below its workspace.
func Example() {
	dir := must(os.MkdirTemp("", "reports-"))
	defer os.RemoveAll(dir)
	check(os.Mkdir(filepath.Join(dir, "ws"), 0o700))
	check(os.WriteFile(filepath.Join(dir, "writ.yaml"), fmt.Appendf(nil, `
version: 1
store: {path: %[1]s/state}
workspaces: {reports: {path: %[1]s/ws}}
agents: {reporter: {workspace: reports}}`, dir), 0o600))

	ctx := context.Background()
	e := must(engine.Open(ctx, engine.Options{Config: filepath.Join(dir, "writ.yaml")}))
	defer e.Close()
	check(e.Register(ctx, engine.Tool{
		Name: "write_report", Category: action.FileSystem, Action: "docs:write", Class: writ.ClassNone,
		Policy:     policy.Policy{Risk: action.Low, Files: policy.Files{Write: policy.Paths("/**")}},
		Parameters: json.RawMessage(`{"type":"object","required":["path"],"properties":{"path":{"type":"string","x-writ-path":"write"}}}`),
		Run: func(_ context.Context, args json.RawMessage) (writ.Result, error) {
			return writ.Result{Content: "wrote " + string(args)}, nil
		},
	}))
	for _, path := range []string{"q3.md", "/etc/passwd"} {
		out, err := e.Do(ctx, engine.Call{Agent: "reporter", Tool: "write_report", Args: fmt.Appendf(nil, `{"path":%q}`, path)})
		fmt.Println(out.Content, err)
	}
	// Output:
	// wrote {"path":"q3.md"} <nil>
	//  denied: argument /path: "/etc/passwd" is outside file_system: project_directory
}

// An interceptor of the program's own, and what it hears of.
func ExampleHooks() {
	hooks := engine.Hooks{
		OnBeforeCall: []func(context.Context, writ.Call) engine.Verdict{
			func(_ context.Context, c writ.Call) engine.Verdict {
				if c.Tool == "delete_file" {
					return engine.Refuse("not on Fridays")
				}
				return engine.Proceed()
			},
		},
		OnDenied: func(c writ.Call, reasons []writ.Reason) { fmt.Println("denied", c.Tool, "because", reasons[0].Text) },
		OnCalled: func(c writ.Call, res writ.Result, err error) { fmt.Println("called", c.Tool) },
	}
	e, end := scratch(hooks)
	defer end()
	for _, tool := range []string{"list_directory", "delete_file"} {
		e.Do(context.Background(), engine.Call{Agent: "reporter", Tool: tool, Args: []byte(`{"path":"."}`)})
	}
	// Output:
	// called list_directory
	// denied delete_file because not on Fridays
}

// Several calls of one turn: reads at once, answers in the order of the calls.
func ExampleEngine_DoAll() {
	e, end := scratch(engine.Hooks{})
	defer end()
	answers, err := e.DoAll(context.Background(), engine.Batch{Calls: []engine.Call{
		{Agent: "reporter", Tool: "write_file", Args: []byte(`{"path":"a.txt","content":"one"}`)},
		{Agent: "reporter", Tool: "read_file", Args: []byte(`{"path":"a.txt"}`)},
		{Agent: "reporter", Tool: "read_file", Args: []byte(`{"path":"/etc/shadow"}`)},
	}})
	for _, a := range answers {
		fmt.Println(a.Content, a.Err)
	}
	fmt.Println(err)
	// Output:
	// created a.txt (3 bytes) <nil>
	// one <nil>
	//  denied: argument /path: "/etc/shadow" is outside file_system: project_directory
	// <nil>
}

// scratch is an engine in a directory of its own.
func scratch(h engine.Hooks) (*engine.Engine, func()) {
	dir := must(os.MkdirTemp("", "writ-example-"))
	check(os.Mkdir(filepath.Join(dir, "ws"), 0o700))
	text := fmt.Appendf(nil, "version: 1\nstore: {path: %[1]s/state}\nworkspaces: {ws: {path: %[1]s/ws}}\nagents: {reporter: {workspace: ws}}\n", dir)
	check(os.WriteFile(filepath.Join(dir, "writ.yaml"), text, 0o600))
	e := must(engine.Open(context.Background(), engine.Options{Config: filepath.Join(dir, "writ.yaml"), Hooks: h}))
	return e, func() { check(e.Close()); check(os.RemoveAll(dir)) }
}

func must[T any](v T, err error) T { check(err); return v }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
