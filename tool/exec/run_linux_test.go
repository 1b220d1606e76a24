package exec

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/writ-run/writ"
	"github.com/writ-run/writ/sandbox"
	"github.com/writ-run/writ/tool"
)

// What a model is told of a command in the foreground.
func TestRun(t *testing.T) {
	w := newWorld(t)
	for _, tc := range []struct {
		command, want string
		fails         bool
	}{
		{"echo hi", "hi\n", false},
		{"printf hi", "hi\n", false},
		{"true", "[no output]\n", false},
		{"echo out; echo err >&2", "out\n[stderr]\nerr\n", false},
		{`printf 'a\377b'`, "a\uFFFDb\n", false},
		{"echo out; false | true", "out\n[exit status 1]\n", true}, // pipefail
		{"exit 7", "[exit status 7]\n", true},
		{"kill -9 $$", "[ended by signal: killed]\n", true},
	} {
		res, err := w.do(t.Context(), coder, "shell_command", m{"command": tc.command})
		if err != nil || res.Content != tc.want || res.IsError != tc.fails {
			t.Errorf("%s: %q, error %v, %v", tc.command, res.Content, res.IsError, err)
		}
	}
}

// What was written before the time limit is kept.
func TestRunTimeout(t *testing.T) {
	w := newWorld(t)
	res, err := w.under(t.Context(), coder, func(ctx context.Context, order writ.Writ) (writ.Result, error) {
		return Run(ctx, driver, order, sandbox.Spec{Argv: []string{"bash", "-c", "echo so far; sleep 1000"}, Timeout: time.Second})
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Duration(res.Metadata["elapsed_ms"].(int64)) * time.Millisecond
	want := fmt.Sprintf("so far\n[ended after %s: the time limit; a tool that takes timeout_seconds can be given more, up to its own limit]\n", took.Round(100*time.Millisecond))
	if diff := cmp.Diff(want, res.Content); diff != "" || !res.IsError || res.Metadata["limit"] != "timeout" {
		t.Errorf("%v: -want +got\n%s", res.Metadata, diff)
	}
}

func TestCode(t *testing.T) {
	w := newWorld(t)
	bash := m{"language": "bash", "code": "read x; echo $0 $x\nin"}
	if res, err := w.do(t.Context(), coder, "code_runner", bash); err != nil || res.Content != "bash in\n" {
		t.Errorf("%q, %v", res.Content, err)
	}
	call := coder
	call.Args = `{"code":"true","language":"bash"}`
	w.confine.Exec.Mode = writ.ExecNone
	_, err := w.under(t.Context(), call, w.tools["code_runner"].Run)
	if kind, msg := writ.Public(err); kind != writ.Denied || msg != "denied: with terminal: none there is no bash" {
		t.Errorf("terminal none: %v", err)
	}
}

// Without a registry of jobs nothing runs in the background, and nothing is found.
func TestNoJobs(t *testing.T) {
	w := newWorld(t)
	tools, err := Tools(Options{Boxes: driver})
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		tool *tool.Tool
		args string
		want string
	}{
		{tools[0], `{"background":true,"command":"true"}`, "background jobs are not set up here; run the command without background"},
		{tools[1], `{"do":"list"}`, "background jobs are not set up here"},
		{tools[0], `{"command":"true"}`, ""},
	} {
		call := coder
		call.Args = row.args
		said := ""
		if _, err := w.under(t.Context(), call, row.tool.Run); err != nil {
			_, said = writ.Public(err)
		}
		if said != row.want {
			t.Errorf("%s: %q", row.args, said)
		}
	}
}
