package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/writ-run/writ/need"
)

// clientSays runs a client's own program in a world's home, and gives what it prints.
func (w *world) clientSays(dir string, argv ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = append(w.env(), "DISABLE_TELEMETRY=1", "DISABLE_AUTOUPDATER=1"), dir
	out, _ := cmd.Output() // that there is no such server is an exit code, too
	return string(out)
}

// connectWorld is a world whose program lies where a person would install it.
func connectWorld(t *testing.T) *world {
	w := newWorld(t, "", "")
	w.install(filepath.Join(w.home, "bin"))
	return w
}

// install puts the program into a directory, as a link to a version of it.
func (w *world) install(bin string) {
	t := w.t
	t.Helper()
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	// Not by this process: while it has the file open, a program that it starts may have too.
	for from, to := range map[string]string{program: "writ-1.0", program + "d": "writd"} {
		if out, err := exec.Command("cp", from, filepath.Join(bin, to)).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if err := os.Symlink("writ-1.0", filepath.Join(bin, "writ")); err != nil {
		t.Fatal(err)
	}
	w.path = bin + ":" + os.Getenv("PATH")
}

// connect runs 'writ connect' as it is found in the world's PATH, in a directory.
func (w *world) connect(dir string, args ...string) string {
	w.t.Helper()
	cmd := exec.CommandContext(w.t.Context(), filepath.Join(filepath.SplitList(w.path)[0], "writ"), append([]string{"connect"}, args...)...)
	cmd.Env, cmd.Dir = append(w.env(), "CLAUDE_CONFIG_DIR="+os.Getenv("CLAUDE_CONFIG_DIR")), dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		w.t.Fatalf("connect %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// The link that a package manager moves is named, not what it leads to today, and an
// installed program is not warned about.
func TestConnectNamesTheLink(t *testing.T) {
	t.Parallel()
	w := connectWorld(t)
	if out := w.connect(w.home, "claude-code", "--yes"); strings.Contains(out, "warning") {
		t.Errorf("it warns:\n%s", out)
	}
	var got struct {
		McpServers map[string]struct{ Command string }
	}
	text, err := os.ReadFile(filepath.Join(w.home, ".claude.json"))
	if err == nil {
		err = json.Unmarshal(text, &got)
	}
	if want := filepath.Join(w.home, "bin/writ"); err != nil || got.McpServers["writ"].Command != want {
		t.Errorf("%v\n%s\nwant %s", err, text, want)
	}
}

// A link that an agent can move is not named, and a file that it can change is warned
// about.
func TestConnectInAWorkspace(t *testing.T) {
	w := connectWorld(t)
	if err := os.Symlink(filepath.Join(w.home, "bin/writ-1.0"), filepath.Join(w.ws, "writ")); err != nil {
		t.Fatal(err)
	}
	w.path = w.ws + ":" + os.Getenv("PATH")
	t.Setenv("CLAUDE_CONFIG_DIR", w.ws)
	out := w.connect(w.home, "claude-code", "--yes")
	for _, want := range []string{
		`"command": "` + filepath.Join(w.home, "bin/writ-1.0") + `"`,
		"warning: " + filepath.Join(w.ws, ".claude.json") + " lies in the workspace of agent coder, which can change it\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	t.Setenv("CLAUDE_CONFIG_DIR", filepath.Join(w.ws, ".claude"))
	if out := w.connect(w.home, "claude-code", "--yes"); strings.Contains(out, ".claude.json lies in") {
		t.Errorf("what lies in .claude is protected:\n%s", out)
	}
}

func TestConnectRealClaudeCode(t *testing.T) {
	t.Parallel()
	need.Programs(t, "claude")
	w := connectWorld(t)
	dir := filepath.Join(w.home, "here")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for scope, says := range map[string]string{"user": "Scope: User config", "local": "Scope: Local config", "project": "Scope: Project config"} {
		w.connect(dir, "claude-code", "--yes", "--scope", scope)
		got := w.clientSays(dir, "claude", "mcp", "get", "writ")
		for _, want := range []string{says, "Type: stdio", "Command: " + filepath.Join(w.home, "bin/writ"), "Args: mcp --agent coder"} {
			if !strings.Contains(got, want) {
				t.Errorf("%s: there is no %q in\n%s", scope, want, got)
			}
		}
		if out := w.connect(dir, "claude-code", "--yes", "--scope", scope); !strings.Contains(out, "already connected") {
			t.Errorf("%s, after Claude Code wrote its file: %s", scope, out)
		}
		w.connect(dir, "claude-code", "--yes", "--scope", scope, "--remove")
		if got := w.clientSays(dir, "claude", "mcp", "get", "writ"); strings.Contains(got, "Command:") {
			t.Errorf("%s, removed:\n%s", scope, got)
		}
	}
}

func TestConnectRealCodex(t *testing.T) {
	t.Parallel()
	need.Programs(t, "codex")
	w := connectWorld(t)
	file := filepath.Join(w.home, ".codex/config.toml")
	const before = "# mine\nmodel = \"x\"\n[mcp_servers]\nother.command = \"true\"\n"
	if err := os.Mkdir(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}
	type server struct {
		Name      string
		Transport struct {
			Type, Command, URL string
			Args               []string
			Token              string `json:"bearer_token_env_var"`
		}
	}
	listed := func() map[string]server {
		var all []server
		if out := w.clientSays(w.home, "codex", "mcp", "list", "--json"); json.Unmarshal([]byte(out), &all) != nil {
			t.Fatalf("codex mcp list: %q", out)
		}
		by := map[string]server{}
		for _, s := range all {
			by[s.Name] = s
		}
		return by
	}
	w.connect(w.home, "codex", "--yes")
	if got := listed(); got["writ"].Transport.Command != filepath.Join(w.home, "bin/writ") || strings.Join(got["writ"].Transport.Args, " ") != "mcp --agent coder" || got["other"].Transport.Command != "true" {
		t.Errorf("stdio: %+v", got)
	}
	w.edit("127.0.0.1:0", "127.0.0.1:7323")
	w.connect(w.home, "codex", "--yes", "--http")
	if got := listed()["writ"].Transport; got.Type != "streamable_http" || got.URL != "http://127.0.0.1:7323/mcp" || got.Token != "WRIT_TOKEN" {
		t.Errorf("http: %+v", got)
	}
	w.connect(w.home, "codex", "--yes", "--remove")
	if got, err := os.ReadFile(file); err != nil || string(got) != before || len(listed()) != 1 {
		t.Errorf("removed: %v %q", err, got)
	}
}
