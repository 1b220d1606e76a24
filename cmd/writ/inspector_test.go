package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/need"
)

// inspect runs the MCP inspector's command line against a target, and gives its exit
// code and what it prints. It hangs on what it does not know, so it is bounded.
func (w *world) inspect(target []string, args ...string) (code int, out string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mcp-inspector", append(append([]string{"--cli", "--format", "json"}, target...), args...)...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = w.env(), w.home, time.Second
	var both bytes.Buffer
	cmd.Stdout, cmd.Stderr = &both, &both
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		w.t.Fatalf("the inspector: %v %v\n%s", err, ctx.Err(), both.String())
	}
	return cmd.ProcessState.ExitCode(), both.String()
}

// Exit codes of the inspector.
const (
	inspectedOK    = 0
	inspectedError = 5 // the result is an error
)

func (w *world) inspectCall(target []string, tool, args string) (int, string) {
	w.t.Helper()
	return w.inspect(target, "--method", "tools/call", "--tool-name", tool, "--tool-args-json", args)
}

// overStdio is how the inspector is told of 'writ mcp'.
func (w *world) overStdio() []string {
	w.t.Helper()
	path := filepath.Join(w.home, "servers.json")
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"writ": map[string]any{"type": "stdio", "command": program, "args": []string{"mcp", "--agent", "coder", "--wait", "1s"}},
	}})
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return []string{"--config", path, "--server", "writ"}
}

func (w *world) overHTTP(addr string) []string {
	return []string{"http://" + addr + "/mcp", "--transport", "http", "--header", "Authorization: Bearer " + w.token, "--header", "Writ-Wait: 1"}
}

// TestInspector has a client of somebody else's list, call, be denied, be asked, and
// come back after the daemon was killed and a person agreed.
func TestInspector(t *testing.T) {
	t.Parallel()
	need.Programs(t, "mcp-inspector")
	for _, way := range []string{"stdio", "http"} {
		t.Run(way, func(t *testing.T) {
			w := newWorld(t, asksToDelete, "").init()
			w.run("", "serve", "--stop")
			w.daemonGone()
			addr, kill := w.serve()
			target := func() []string {
				if way == "stdio" {
					return w.overStdio()
				}
				return w.overHTTP(addr)
			}
			for _, era := range []string{"legacy", "modern"} {
				w.inspectsEra(era, append(target(), "--protocol-era", era))
			}
			path := filepath.Join(w.ws, "doomed.txt")
			w.write(path, "x")
			code, out := w.inspectCall(target(), "delete_file", `{"path":"doomed.txt"}`)
			if code != inspectedError || !strings.Contains(out, "approval_pending: ") {
				t.Fatalf("asked: exit %d\n%s", code, out)
			}
			id := w.pending()
			kill()
			w.must(pass+"\n", "approval", "approve", id, "--passphrase-stdin")
			if way == "http" { // the command started a daemon, which listens elsewhere
				w.run("", "serve", "--stop")
				w.daemonGone()
				addr, _ = w.serve()
			}
			if code, out := w.inspectCall(target(), "writ_resume", fmt.Sprintf(`{"id":%q}`, id)); code != inspectedOK {
				t.Errorf("resumed: exit %d\n%s", code, out)
			}
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				t.Errorf("the file is still there: %v", err)
			}
			w.verifies()
		})
	}
}

// inspectsEra lists, calls and is denied, in one kind of the protocol.
func (w *world) inspectsEra(era string, target []string) {
	w.t.Helper()
	code, out := w.inspect(target, "--method", "tools/list")
	if code != inspectedOK || !strings.Contains(out, `"write_file"`) || strings.Contains(out, `"move_file"`) {
		w.t.Fatalf("%s, listed: exit %d\n%s", era, code, out)
	}
	code, out = w.inspectCall(target, "write_file", fmt.Sprintf(`{"path":"%s.txt","content":"hi"}`, era))
	if b, err := os.ReadFile(filepath.Join(w.ws, era+".txt")); code != inspectedOK || string(b) != "hi" {
		w.t.Errorf("%s, called: exit %d, the file is %q, %v\n%s", era, code, b, err, out)
	}
	code, out = w.inspectCall(target, "read_file", `{"path":"/etc/shadow"}`)
	if code != inspectedError || !strings.Contains(out, "denied: ") {
		w.t.Errorf("%s, denied: exit %d\n%s", era, code, out)
	}
}
