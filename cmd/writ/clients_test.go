package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/writ-run/writ/need"
)

// TestRealClients has clients that people use, configured by 'writ connect', list
// writ's tools, make a call, be denied one, and come back for one that a person had to
// agree to. The model that they ask is the test's.
func TestRealClients(t *testing.T) {
	for name, c := range map[string]struct {
		program string
		start   func(ctx context.Context, w *world, model string) *exec.Cmd
	}{
		"claude-code": {"claude", startClaude},
		"codex":       {"codex", startCodex},
	} {
		t.Run(name, func(t *testing.T) {
			need.Programs(t, c.program)
			w := newWorld(t, asksToDelete, "").init()
			w.install(filepath.Join(w.home, "bin"))
			doomed := filepath.Join(w.ws, "doomed.txt")
			w.write(doomed, "x")
			model := newModel(t, w.conversation())
			w.connect(w.home, name, "--yes")
			ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
			defer cancel()
			out := w.converse(c.start(ctx, w, model.URL))
			offered, results := model.seen()
			for tool, want := range map[string]bool{"write_file": true, "delete_file": true, "move_file": false} {
				if offered[tool] != want {
					t.Errorf("%s offered: %v, want %v", tool, offered[tool], want)
				}
			}
			if len(results) != 4 {
				t.Fatalf("%d results, want 4: %q\n%s", len(results), results, out)
			}
			if b, err := os.ReadFile(filepath.Join(w.ws, "made.txt")); string(b) != "by a model" {
				t.Errorf("the file is %q, %v; the result was %q", b, err, results[0])
			}
			if !strings.Contains(results[1], `denied: argument /path: "/etc/shadow"`) {
				t.Errorf("denied: %q", results[1])
			}
			if !strings.Contains(results[2], "approval_pending: ") {
				t.Errorf("asked: %q", results[2])
			}
			if _, err := os.Stat(doomed); !os.IsNotExist(err) {
				t.Errorf("the file is still there: %v; the result was %q", err, results[3])
			}
			w.verifies()
		})
	}
}

var requestID = regexp.MustCompile(`call_[0-9a-z]+`)

// conversation is what the model says. When it hears that a person has to agree, the
// person does, and it comes back in the way that it was told.
func (w *world) conversation() func([]string) (string, map[string]any) {
	return func(results []string) (string, map[string]any) {
		switch len(results) {
		case 0:
			return "write_file", map[string]any{"path": "made.txt", "content": "by a model"}
		case 1:
			return "read_file", map[string]any{"path": "/etc/shadow"}
		case 2:
			return "delete_file", map[string]any{"path": "doomed.txt"}
		case 3:
			id := requestID.FindString(results[2])
			if o := w.run(pass+"\n", "approval", "approve", id, "--passphrase-stdin"); o.code != 0 {
				w.t.Errorf("approve %q: %s", id, o.err)
			}
			if strings.Contains(results[2], "writ_resume") {
				return "writ_resume", map[string]any{"id": id}
			}
			return "delete_file", map[string]any{"path": "doomed.txt"}
		}
		return "", nil
	}
}

// converse runs a client to its end.
func (w *world) converse(cmd *exec.Cmd) string {
	w.t.Helper()
	cmd.WaitDelay = time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Errorf("%s: %v\n%s", filepath.Base(cmd.Path), err, out)
	}
	return string(out)
}

// startClaude runs Claude Code with its tools of MCP alone, none of them put off.
func startClaude(ctx context.Context, w *world, model string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "claude", "-p", "go", "--tools", "", "--allowedTools", "mcp__writ")
	cmd.Dir = w.home
	cmd.Env = append(w.env(), "ANTHROPIC_BASE_URL="+model, "ANTHROPIC_API_KEY=of-nobody", "ENABLE_TOOL_SEARCH=false",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1")
	return cmd
}

// startCodex runs Codex. Its own question about each call is answered beforehand:
// nobody is there to be asked.
func startCodex(ctx context.Context, w *world, model string) *exec.Cmd {
	file := filepath.Join(w.home, ".codex/config.toml")
	before, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	text := fmt.Sprintf(`model = "scripted"
model_provider = "loop"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.loop]
name = "loop"
base_url = "%s/v1"
wire_api = "responses"
env_key = "LOOP_KEY"
request_max_retries = 0
stream_max_retries = 0
`, model)
	if err := os.WriteFile(file, append([]byte(text), before...), 0o600); err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "codex", "exec", "--skip-git-repo-check", "--json", "-c", `mcp_servers.writ.default_tools_approval_mode="approve"`, "go")
	cmd.Dir, cmd.Env = w.home, append(w.env(), "LOOP_KEY=of-nobody")
	return cmd
}
